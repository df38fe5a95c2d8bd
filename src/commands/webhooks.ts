/** `webhooks`: those that were given up, and sending them again. */
import type { Command } from 'commander';
import type { CommandContext } from '../app/context.js';
import { withStore } from '../app/open-store.js';
import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import { printable } from '../core/foreign-text.js';
import type { Action } from './action.js';
import { addSettingFlags, readSettings } from './setting-flags.js';

const EXAMPLES = `
Examples:
  llm-batch webhooks list
  llm-batch webhooks retry
  llm-batch webhooks retry task_01982f3a4b5c0011223344556677889900`;

export function registerWebhooks(program: Command, context: CommandContext, action: Action): void {
  const command = program
    .command('webhooks')
    .argument(
      '<list|retry>',
      'list those that were given up as JSON lines, or have the service send them again',
    )
    .argument('[task]', 'only that of this task')
    .description('look at webhooks that no receiver took, and send them again')
    .addHelpText('after', EXAMPLES);
  addSettingFlags(command, ['store', 'display']);
  command.action(
    action((verb: string, task: string | undefined) => webhooks(command, context, verb, task ?? null)),
  );
}

const PAGE_ROWS = 500;

async function webhooks(
  command: Command,
  context: CommandContext,
  verb: string,
  task: string | null,
): Promise<ExitCode> {
  const { settings } = await readSettings(command, context);
  if (verb === 'retry') {
    return withStore(context, settings, 'change', async ({ served }) => {
      const count = await served.retryWebhooks(task);
      const what = count === 1 ? 'webhook' : 'webhooks';
      context.stderr.write(context.command(`${count} ${what} to be sent again by \`llm-batch serve\`.\n`));
      return EXIT_CODES.completed;
    });
  }
  if (verb !== 'list') command.error(`error: expected list or retry, got ${printable(verb)}`);
  return withStore(context, settings, 'read', async ({ served }) => {
    let page = await served.listWebhooks(0, PAGE_ROWS);
    while (page.length > 0) {
      for (const { taskId: _, runId: _run, publicId, messageId, ...facts } of page) {
        if (task !== null && publicId !== task) continue;
        const { url, attempts, httpStatus, problem } = facts;
        const line = {
          task: publicId,
          webhook_id: messageId,
          url,
          attempts,
          http_status: httpStatus,
          problem,
        };
        context.stdout.write(`${JSON.stringify(line)}\n`);
      }
      page = await served.listWebhooks(page.at(-1)?.taskId ?? 0, PAGE_ROWS);
    }
    return EXIT_CODES.completed;
  });
}
