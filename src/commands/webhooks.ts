/** `webhooks`: those that were given up, and sending them again. */
import type { Command } from 'commander';
import { withStore } from '../app/open-store.js';
import { EXIT_CODES, type ExitCode, usageError } from '../core/errors.js';
import { printable } from '../core/foreign-text.js';
import type { ServedStore } from '../store/served-store.js';
import { writeNotice } from '../ui/notice.js';
import { formatCount, formatQuantity } from '../ui/numbers.js';
import type { Action, Verb } from './action.js';
import { addSettingFlags, readSettings } from './setting-flags.js';

const EXAMPLES = `
Examples:
  llm-batch webhooks list
  llm-batch webhooks retry
  llm-batch webhooks retry task_01982f3a4b5c0011223344556677889900`;

export function registerWebhooks(program: Command, action: Action): void {
  const command = program
    .command('webhooks')
    .argument(
      '<list|retry>',
      'list those that were given up as JSON lines, or have the service send them again',
    )
    .argument('[task]', 'only that of this task')
    .description('look at webhooks that no receiver took, and send them again')
    .addHelpText('after', EXAMPLES);
  addSettingFlags(command, ['store', 'display']).action(action(webhooks));
}

const PAGE_ROWS = 500;

async function webhooks(verb: Verb, what: string, named: string | undefined): Promise<ExitCode> {
  const { command, context } = verb;
  const task = named ?? null;
  const { settings } = await readSettings(verb);
  if (what !== 'retry' && what !== 'list') {
    command.error(`error: expected list or retry, got ${printable(what)}`);
  }
  const say = (sentence: string): void => {
    if (!settings.quiet) writeNotice(context.stderr, context.command(sentence));
  };
  if (what === 'retry') {
    return withStore(context, settings, 'change', async ({ served }) => {
      const count = await served.retryWebhooks(task);
      const again = `${formatQuantity(count, 'webhook')} to be sent again by \`llm-batch serve\`.`;
      say(count > 0 ? again : await nothingGivenUp(served, task));
      return EXIT_CODES.completed;
    });
  }
  return withStore(context, settings, 'read', async ({ served }) => {
    let listed = 0;
    let page = await served.listWebhooks(0, PAGE_ROWS);
    while (page.length > 0) {
      for (const { publicId, messageId, url, attempts, httpStatus, problem } of page) {
        if (task !== null && publicId !== task) continue;
        const ids = { task: publicId, webhook_id: messageId };
        const line = { ...ids, url, attempts, http_status: httpStatus, problem };
        context.stdout.write(`${JSON.stringify(line)}\n`);
        listed += 1;
      }
      page = await served.listWebhooks(page.at(-1)?.taskId ?? 0, PAGE_ROWS);
    }
    if (listed === 0) say(await nothingGivenUp(served, task));
    return EXIT_CODES.completed;
  });
}

/** Where nothing is to be done: that this is so, and what there is. @throws LlmBatchError TASK_MISSING (exit 2) */
async function nothingGivenUp(served: ServedStore, task: string | null): Promise<string> {
  if (task !== null) {
    if ((await served.find(task)) === null) {
      throw usageError('TASK_MISSING', `The store has no task ${JSON.stringify(task)} of a service.`);
    }
    return `The webhook of ${printable(task)} was not given up.`;
  }
  const { due, delivered } = await served.countWebhooks();
  return `No webhook was given up; ${formatCount(due)} to be sent, ${formatCount(delivered)} delivered.`;
}
