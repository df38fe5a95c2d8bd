/** `retry`: failed tasks go back to pending; nothing is called until `resume`. */
import { type Command, Option } from 'commander';
import { ownStore, withStore } from '../app/open-store.js';
import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import { FAILURE_KINDS, type FailureKind } from '../core/failure.js';
import { printable } from '../core/foreign-text.js';
import { findRunAlive } from '../runs/find-run.js';
import { retryRun } from '../runs/retry-run.js';
import { shellWord } from '../ui/next-command.js';
import type { Action, Verb } from './action.js';
import { addSettingFlags, readSettings } from './setting-flags.js';

const EXAMPLES = `
Examples:
  llm-batch retry && llm-batch resume
  llm-batch retry reviews --kind timeout
  llm-batch retry reviews --id doc-17`;

export function registerRetry(program: Command, action: Action): void {
  const command = program
    .command('retry')
    .argument('[run]', 'name of the run; default: the newest unfinished one, else the newest')
    .description('put failed documents back to pending; `resume` then sends them again')
    .addHelpText('after', EXAMPLES)
    .addOption(
      new Option('--kind <kind>', 'only failures of this kind, as `failures` lists them').choices(
        FAILURE_KINDS,
      ),
    )
    .option('--id <id>', 'only the document with this id');
  addSettingFlags(command, ['store', 'display']).action(action(retry));
}

interface RetryOptions {
  readonly kind?: FailureKind;
  readonly id?: string;
}

async function retry(verb: Verb, runName: string | undefined, options: RetryOptions): Promise<ExitCode> {
  const { context } = verb;
  const { settings } = await readSettings(verb);
  const { kind = null, id = null } = options;
  return withStore(context, settings, 'change', async (store) => {
    const run = await findRunAlive(store, runName);
    await ownStore(context, store, run.name);
    const count = await retryRun(store, run, { kind, id });
    context.stderr.write(
      count === 0
        ? `No failed document of run '${printable(run.name)}' matches; nothing changed.\n`
        : `${count} ${count === 1 ? 'document' : 'documents'} of run '${printable(run.name)}' back to pending. Next: ${context.command(`llm-batch resume ${shellWord(run.name)}`)}\n`,
    );
    return EXIT_CODES.completed;
  });
}
