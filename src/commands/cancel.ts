/** `cancel [run]`: ends a run for good; its answers are kept. */
import type { Command } from 'commander';
import { checkConnection, connect } from '../app/composition.js';
import type { CommandContext } from '../app/context.js';
import { ownStore, salvageFile, withStore } from '../app/open-store.js';
import { senderOf } from '../app/send-run.js';
import { watchRun } from '../app/watch-run.js';
import type { ResolvedSettings } from '../config/load.js';
import { EXIT_CODES, type ExitCode, usageError } from '../core/errors.js';
import { printable } from '../core/foreign-text.js';
import type { RunRecord } from '../core/run.js';
import { cancelAtProviders, cancelRun } from '../runs/cancel-run.js';
import { findRun } from '../runs/find-run.js';
import { settingsOfRun } from '../runs/run-settings.js';
import { openBatches } from '../runs/ways.js';
import type { Store } from '../store/store.js';
import { shellWord } from '../ui/next-command.js';
import { formatCount, formatQuantity } from '../ui/numbers.js';
import { openOf } from '../ui/summary-facts.js';
import type { Action, Verb } from './action.js';
import { withGivenFlags } from './asked-settings.js';
import { confirm } from './confirm.js';
import { addSettingFlags, readSettings } from './setting-flags.js';
import { TRUST_STORE_FLAG, trustStoredRun } from './stored-reach.js';

const EXAMPLES = `
Examples:
  llm-batch cancel reviews          asks first
  llm-batch cancel reviews --yes    in a script

Answers are kept: \`llm-batch results reviews\` writes them. \`prune\` deletes runs, answers and all.`;

export function registerCancel(program: Command, action: Action): void {
  const command = program
    .command('cancel')
    .argument('[run]', 'name of the run; default: the newest unfinished one')
    .description('end a run for good: what is not answered yet is never sent, answers are kept')
    .addHelpText('after', EXAMPLES)
    .option('-y, --yes', 'do not ask')
    .option(...TRUST_STORE_FLAG);
  addSettingFlags(command, ['connection', 'store', 'display']).action(action(cancel));
}

interface CancelOptions {
  readonly yes?: boolean;
  readonly trustStore?: boolean;
}

async function cancel(verb: Verb, runName: string | undefined, options: CancelOptions): Promise<ExitCode> {
  const { context } = verb;
  const resolved = await readSettings(verb);
  const { settings } = resolved;
  const { stderr } = context;
  return withStore(context, settings, 'change', async (store) => {
    const run = await findRun(store, runName);
    if (run.status === 'cancelled') {
      stderr.write(`Run '${printable(run.name)}' is cancelled already; nothing changed.\n`);
      return EXIT_CODES.completed;
    }
    if (run.status === 'finished') {
      throw usageError(
        'RUN_FINISHED',
        `Run '${run.name}' is finished: there is nothing left to cancel.`,
        '`llm-batch prune --older-than 30d` deletes runs that are not needed any more',
      );
    }
    await ownStore(context, store, run.name);
    const before = await store.summarizeRun(run.id);
    const agrees = await confirm(
      context,
      `Cancel run '${run.name}' for good? ${formatQuantity(openOf(before), 'document')} will never be sent; ${formatQuantity(before.counts.completed, 'answer')} will be kept.`,
      options.yes ?? false,
    );
    if (!agrees) {
      stderr.write('Nothing was cancelled.\n');
      return EXIT_CODES.interrupted;
    }
    if (!(await cancelRemote(context, resolved, store, run, options))) {
      stderr.write(
        'Nothing was cancelled for good: the provider still works on something. Call this again later.\n',
      );
      return EXIT_CODES.interrupted;
    }
    const salvagePath = await salvageFile(context, settings);
    const { counts } = await cancelRun(store, run, salvagePath);
    stderr.write(
      `Run '${printable(run.name)}' is cancelled: ${formatQuantity(counts.cancelled, 'document')} will not be sent, ${formatCount(counts.completed)} answered and kept.\n` +
        `Next: ${context.command(`llm-batch results ${shellWord(run.name)}`)}\n`,
    );
    return EXIT_CODES.completed;
  });
}

/**
 * Where providers work for the run, they are asked to stop, and what they have answered is taken.
 * @returns false where that is still under way
 */
async function cancelRemote(
  context: CommandContext,
  resolved: ResolvedSettings,
  store: Store,
  run: RunRecord,
  options: CancelOptions,
): Promise<boolean> {
  if ((await openBatches(store, run)).length === 0) return true;
  const { settings } = resolved;
  const runSettings = withGivenFlags(settingsOfRun(run), resolved, context.workingFolder);
  await trustStoredRun(context, runSettings, resolved, options.trustStore);
  checkConnection(runSettings, context);
  const { lanes, close } = await connect(runSettings, context);
  try {
    return await cancelAtProviders({
      ...{ store, run, lanes, ...(await senderOf(context, settings)), tell: watchRun(context, settings) },
    });
  } finally {
    await close();
  }
}
