/** `list`: the runs of the store. */
import type { Command } from 'commander';
import { withStore } from '../app/open-store.js';
import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import type { Appearance } from '../ui/colours.js';
import { renderRunList } from '../ui/run-list.js';
import type { Action, Verb } from './action.js';
import { printPage } from './print-page.js';
import { addSettingFlags, readSettings } from './setting-flags.js';

const EXAMPLES = `
Examples:
  llm-batch list
  llm-batch list --db /data/reviews.db`;

export function registerList(program: Command, action: Action): void {
  const command = program
    .command('list')
    .description('the runs of the store, newest first: state, documents, cost, age')
    .addHelpText('after', EXAMPLES);
  addSettingFlags(command, ['store', 'display']).action(action(list));
}

async function list(verb: Verb): Promise<ExitCode> {
  const { context } = verb;
  const { settings } = await readSettings(verb);
  const { stderr, clock, workingFolder } = context;
  return withStore(context, settings, 'read', async (store) => {
    const runs = await Promise.all(
      (await store.listRuns()).map(async (run) => ({
        run,
        summary: await store.summarizeRun(run.id),
        isBusy: (await store.readOwner(run.name))?.runName === run.name,
      })),
    );
    const page = (appearance: Appearance): string[] =>
      renderRunList(runs, clock.now(), workingFolder, appearance);
    if (runs.length === 0) stderr.write('The store holds no run yet.\n');
    else printPage(context, settings, page);
    return EXIT_CODES.completed;
  });
}
