/** `compare <run> <run>…`: the same documents under several prompts or models, side by side. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { withStore } from '../app/open-store.js';
import { EXIT_CODES, type ExitCode, usageError } from '../core/errors.js';
import { printable } from '../core/foreign-text.js';
import { writeData } from '../core/terminal-gate.js';
import { openAtomicFile } from '../results/atomic-file.js';
import { comparisonCsv } from '../results/comparison-csv.js';
import { type Comparison, compareRuns } from '../runs/compare-runs.js';
import { renderComparison } from '../ui/comparison-page.js';
import type { Action, Verb } from './action.js';
import { printPage } from './print-page.js';
import { addSettingFlags, readSettings } from './setting-flags.js';

const EXAMPLES = `
Examples:
  llm-batch compare v1 v2
  llm-batch compare v1 v2 v3 --csv > comparison.csv
  llm-batch compare v1 v2 -o comparison.html

Compared are the documents that all of these runs have answered; answers agree that are the same text.`;

export function registerCompare(program: Command, action: Action): void {
  const command = program
    .command('compare')
    .argument('<run...>', 'names of two runs or more')
    .description(
      'the same documents under several prompts or models, side by side: answers, tokens, cost, time',
    )
    .addHelpText('after', EXAMPLES)
    .option('--csv', 'every document as a row of CSV on standard output')
    .option('-o, --output <file>', 'a page for a browser (.html) or CSV (.csv)')
    .option('--force', 'overwrite a file that is there');
  addSettingFlags(command, ['store', 'display']).action(action(compare));
}

interface CompareOptions {
  readonly csv?: boolean;
  readonly output?: string;
  readonly force?: boolean;
}

async function compare(verb: Verb, names: readonly string[], options: CompareOptions): Promise<ExitCode> {
  const { context } = verb;
  const { settings } = await readSettings(verb);
  const { stdout, stderr } = context;
  const { output } = options;
  if (output !== undefined && !/\.(html|csv)$/i.test(output)) {
    throw usageError('COMPARE_ENDING', `What ${output} is to hold its ending does not say.`);
  }
  return withStore(context, settings, 'read', async (store) => {
    const comparison = await compareRuns(store, names);
    if (output !== undefined) {
      const path = resolve(context.workingFolder, output);
      const file = await openAtomicFile(path, { mayReplace: options.force ?? false });
      try {
        await file.write(/\.html$/i.test(output) ? await pageOf(comparison) : csvOf(comparison));
        await file.commit();
      } finally {
        await file.abort();
      }
      if (!settings.quiet) stderr.write(`Comparison written to ${printable(path)}\n`);
    } else if (options.csv) {
      writeData(stdout, csvOf(comparison));
    } else {
      printPage(context, settings, (appearance) => renderComparison(comparison, appearance));
    }
    return EXIT_CODES.completed;
  });
}

async function pageOf(comparison: Comparison): Promise<string> {
  const { renderComparisonPage } = await import('../report/comparison.js');
  return renderComparisonPage(comparison);
}

function csvOf({ runs, documents }: Comparison): string {
  return comparisonCsv(
    runs.map(({ run }) => run.name),
    documents,
  );
}
