/** `copy --to`: the runs of a store in a file go on in one on a server. */
import type { Command } from 'commander';
import { ownStore, salvageFile, storeUrl, withStore } from '../app/open-store.js';
import { EXIT_CODES, type ExitCode, LlmBatchError } from '../core/errors.js';
import { copyRuns } from '../runs/copy-runs.js';
import { isServerUrl, serverPlace } from '../store/open.js';
import { wrongDirection } from '../store/row-copy.js';
import { writeNotice } from '../ui/notice.js';
import { formatQuantity } from '../ui/numbers.js';
import type { Action, Verb } from './action.js';
import { addSettingFlags, readSettings } from './setting-flags.js';

const EXAMPLES = `
Examples:
  llm-batch copy --to postgres://user@db.example/batches                        all runs of ./llm-batch.db
  llm-batch copy --db reviews.db --to postgres://… --schema-name reviews        into a schema of their own

The copies are there when all of them is, and go on there with nothing sent twice. The store in the file stays as it is.`;

export function registerCopy(program: Command, action: Action): void {
  const command = program
    .command('copy')
    .description('copy all runs of a store in a file to a store on a server, where they go on')
    .addHelpText('after', EXAMPLES)
    .requiredOption('--to <url>', 'the store on a server; its password is best in PGPASSWORD or ~/.pgpass');
  addSettingFlags(command, ['store', 'display']).action(action(copy));
}

/** Fewer are copied before anybody wonders. */
const LARGE_STORE_ROWS = 100_000;

interface CopyFlags {
  readonly to: string;
}

async function copy(verb: Verb, { to }: CopyFlags): Promise<ExitCode> {
  const { context } = verb;
  const { settings } = await readSettings(verb);
  const { stderr, interrupts } = context;
  const { schemaName } = settings;
  if (!isServerUrl(to) || isServerUrl(storeUrl(context, settings))) throw wrongDirection();
  const place = serverPlace(to, schemaName);
  const leave = new AbortController();
  const stopListening = interrupts.subscribe(() => leave.abort());
  let told = 0;
  const copied = await withStore(context, settings, 'change', async (source) => {
    await ownStore(context, source, null);
    const salvagePath = await salvageFile(context, settings);
    return withStore(context, { ...settings, store: to }, 'write', (target) =>
      copyRuns({
        ...{ source, target, salvagePath, signal: leave.signal },
        onProgress: (rows, total) => {
          const tenths = Math.floor((10 * rows) / total);
          if (tenths <= told || total < LARGE_STORE_ROWS || settings.quiet || settings.logJson) return;
          told = tenths;
          stderr.write(`${tenths}0 % of ${formatQuantity(total, 'row')} copied\n`);
        },
      }),
    );
  })
    .catch((error: unknown) => {
      throw ofCopy(error);
    })
    .finally(stopListening);
  if (copied === null) {
    stderr.write('Interrupted: nothing was copied.\n');
    return EXIT_CODES.interrupted;
  }
  const { runs, documents, results } = copied;
  writeNotice(
    stderr,
    context.command(
      `${formatQuantity(runs.length, 'run')} copied to ${place}: ${formatQuantity(documents, 'document')}, ${formatQuantity(results, 'result')}.\n` +
        `They go on there from now on; what goes on in ${storeUrl(context, settings)} as well is sent twice.\n` +
        'Next: `llm-batch resume`, with --store or LLM_BATCH_STORE naming that server',
    ),
  );
  return EXIT_CODES.completed;
}

/** Of the two stores only the one that is copied to is on a server: errors that name its place are of that one. */
function ofCopy(error: unknown): unknown {
  if (!(error instanceof LlmBatchError) || error.facts['place'] === undefined) return error;
  const { message, code, exitCode, hint, facts, cause } = error;
  return new LlmBatchError(message, {
    ...{ code, exitCode, cause, facts: { ...facts, flag: '--to' } },
    ...(hint === undefined ? {} : { hint }),
  });
}
