/** `report [run]`: a run as one HTML page, for people who would rather look than read. */
import { open, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { CommandContext } from '../app/context.js';
import { homeFolders, withStore } from '../app/open-store.js';
import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import { printable } from '../core/foreign-text.js';
import type { RunRecord } from '../core/run.js';
import { writeData } from '../core/terminal-gate.js';
import { openAtomicFile } from '../results/atomic-file.js';
import { fileNameOf, isStandardOutput, outputPathsFor } from '../results/output-paths.js';
import { withPresentFiles } from '../results/run-files.js';
import { findRun } from '../runs/find-run.js';
import { settingsOfRun } from '../runs/run-settings.js';
import type { Action, Verb } from './action.js';
import { addSettingFlags, readSettings } from './setting-flags.js';
import { refuseForeignPlace } from './stored-reach.js';

const EXAMPLES = `
Examples:
  llm-batch report                           beside where results go: reviews.report.html
  llm-batch report reviews -o today.html
  llm-batch report reviews -o - > report.html`;

export function registerReport(program: Command, action: Action): void {
  const command = program
    .command('report')
    .argument('[run]', 'name of the run; default: the newest unfinished one, else the newest')
    .description(
      'one HTML page with charts: throughput, limits, latency, money, failures; opens without a network',
    )
    .addHelpText('after', EXAMPLES)
    .option('-o, --output <file>', 'file to write, or - for standard output')
    .option('--force', 'overwrite a file that is no report of this run');
  addSettingFlags(command, ['store', 'display']).action(action(report));
}

interface ReportOptions {
  readonly output?: string;
  readonly force?: boolean;
}

async function report(verb: Verb, runName: string | undefined, options: ReportOptions): Promise<ExitCode> {
  const { context } = verb;
  const { readChartLibrary } = await import('../report/chart-library.js');
  const { renderReport, reportMark } = await import('../report/page.js');
  const { readReportFacts } = await import('../report/report-facts.js');
  const { settings } = await readSettings(verb);
  return withStore(context, settings, 'read', async (store) => {
    const run = await findRun(store, runName);
    const facts = await readReportFacts(store, withPresentFiles(run), context.clock);
    const page = renderReport(facts, await readChartLibrary());
    if (options.output !== undefined && isStandardOutput(options.output)) {
      writeData(context.stdout, page);
      return EXIT_CODES.completed;
    }
    const { output } = options;
    const path = output === undefined ? defaultPath(context, run) : resolve(context.workingFolder, output);
    if (output === undefined) {
      refuseForeignPlace(context, path, true, await homeFolders(context, settings));
    }
    const mayReplace = (options.force ?? false) || (await beginsWith(path, reportMark(run.name)));
    const file = await openAtomicFile(path, { mayReplace });
    try {
      await file.write(page);
      await file.commit();
    } finally {
      await file.abort();
    }
    if (!settings.quiet)
      context.stderr.write(`Report of run '${printable(run.name)}' written to ${printable(path)}\n`);
    return EXIT_CODES.completed;
  });
}

function defaultPath(context: CommandContext, run: RunRecord): string {
  const { output } = settingsOfRun(run);
  const paths = outputPathsFor(run.inputPath, {
    workingDirectory: context.workingFolder,
    ...(output === null ? {} : { output }),
  });
  return join(dirname(paths.results ?? paths.errors), `${fileNameOf(run.name)}.report.html`);
}

/** False for a file that is not there or cannot be read. */
async function beginsWith(path: string, text: string): Promise<boolean> {
  const expected = Buffer.from(text);
  // A pipe would wait for its writer.
  if (!(await stat(path).catch(() => null))?.isFile()) return false;
  const handle = await open(path, 'r').catch(() => null);
  if (handle === null) return false;
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(expected.length), 0, expected.length, 0);
    return bytesRead === expected.length && buffer.equals(expected);
  } catch {
    return false;
  } finally {
    await handle.close();
  }
}
