/** `results [run]`: writes results again from the store, in any format, to a file or to standard output. */
import { type Command, Option } from 'commander';
import type { CommandContext } from '../app/context.js';
import { homeFolders, withStore } from '../app/open-store.js';
import type { Settings } from '../config/settings.js';
import { EXIT_CODES, type ExitCode, LlmBatchError, usageError } from '../core/errors.js';
import { printable } from '../core/foreign-text.js';
import type { ResultFilter } from '../core/result-row.js';
import type { RunRecord } from '../core/run.js';
import type { InputDescription } from '../input/input-description.js';
import { digestedFileAt } from '../results/atomic-file.js';
import { type ResultDestination, writeResults } from '../results/export.js';
import { writeJoined } from '../results/join.js';
import { joinedPathFor, outputPathsFor } from '../results/output-paths.js';
import { ENDINGS, formatFor, RESULT_FORMATS, type ResultFormat } from '../results/result-format.js';
import { findRun, givenName } from '../runs/find-run.js';
import { claimFiles, noteWrittenFile } from '../runs/outputs.js';
import { settingsOfRun } from '../runs/run-settings.js';
import type { Store } from '../store/store.js';
import { formatCount, formatQuantity } from '../ui/numbers.js';
import type { Action, Verb } from './action.js';
import { addSettingFlags, readSettings } from './setting-flags.js';
import { refuseForeignPlace } from './stored-reach.js';

const EXAMPLES = `
Examples:
  llm-batch results                          beside the input, as run does
  llm-batch results reviews -o - | jq .output
  llm-batch results --include-input -o answers.csv
  llm-batch results --only failed -o failed.jsonl
  llm-batch results -o answers.jsonl.gz
  llm-batch results --join -o reviews-with-answers.csv     the input, answers in columns of their own`;

const RESULT_PAGE_ROWS = 1_000;
/** Two numbers each. */
const LISTED_TASKS = 10_000;

export function registerResults(program: Command, action: Action): void {
  const command = program
    .command('results')
    .argument('[run]', 'name of the run; default: the newest unfinished one, else the newest')
    .description('write results again from the store')
    .addHelpText('after', EXAMPLES)
    .addOption(
      new Option(
        '--format <format>',
        'format of the file (default: by the ending of -o, else jsonl)',
      ).choices(RESULT_FORMATS),
    )
    .addOption(
      new Option('--only <which>', 'which documents')
        .choices(['completed', 'failed', 'all'])
        .default('completed'),
    )
    .option('-o, --output <file>', 'file to write, or - for standard output')
    .option('--include-input', 'each line carries its input document')
    .option(
      '--join',
      'the input in its own format with columns added: every document, those without an answer too',
    )
    .option('--csv-columns', 'CSV: the fields of answers that are JSON objects in columns of their own')
    .option(
      '--escape-formulas',
      "CSV for a spreadsheet program: a text that it would run as a formula (=, +, -, @ first) gets a ' in front",
    )
    .option('--force', 'overwrite a file that this run did not write');
  addSettingFlags(command, ['store', 'display']).action(action(results));
}

interface ResultsOptions {
  readonly format?: ResultFormat;
  readonly only: ResultFilter;
  readonly output?: string;
  readonly includeInput?: boolean;
  readonly join?: boolean;
  readonly csvColumns?: boolean;
  readonly escapeFormulas?: boolean;
  readonly force?: boolean;
}

async function results(verb: Verb, runName: string | undefined, options: ResultsOptions): Promise<ExitCode> {
  const { command, context } = verb;
  const { settings } = await readSettings(verb);
  const isGiven = (name: string): boolean => command.getOptionValueSource(name) === 'cli';
  if (options.join && ['format', 'only', 'includeInput'].some(isGiven)) {
    const problem = '--join writes every document of the input in its own format.';
    throw usageError('JOIN_WITH', problem, 'leave out --format, --only and --include-input');
  }
  const { run, path } = await withStore(context, settings, 'read', async (store) => {
    const run = await findRun(store, runName);
    if (options.join) return { run, path: await join(context, settings, store, run, options) };
    const { path, format } = placeOf(context, run, options);
    if (options.csvColumns && format !== 'csv' && format !== 'tsv') {
      throw usageError('CSV_COLUMNS', '--csv-columns is for tables of text.', 'add --format csv, or --join');
    }
    if (options.output === undefined) {
      const isDerived = path !== settingsOfRun(run).output;
      refuseForeignPlace(context, path, isDerived, await homeFolders(context, settings));
    }
    const destination = destinationOf(context, run, options, path);
    const { only, includeInput = false } = options;
    const includeResponse = options.format === 'openai';
    const wanted = {
      runId: run.id,
      only,
      limit: RESULT_PAGE_ROWS,
      includeBody: includeInput,
      includeResponse,
    };
    const written = await writeResults({
      ...{ format, only, includeInput, destination },
      spreadOutput: options.csvColumns ?? false,
      escapeFormulas: options.escapeFormulas ?? false,
      readPage: (afterLine) => store.readResults({ ...wanted, afterLine }),
    });
    const count = formatQuantity(written.completed + written.failed, 'document');
    tellWritten(context, settings, `${count} of run '${printable(run.name)}'`, path);
    return { run, path };
  });
  if (path !== null) await claim(context, settings, run, path);
  return EXIT_CODES.completed;
}

/** @param path null for standard output, of which nothing is told */
function tellWritten(
  { stderr }: CommandContext,
  { quiet }: Settings,
  what: string,
  path: string | null,
): void {
  if (path !== null && !quiet) stderr.write(`${what} written to ${printable(path)}\n`);
}

/** From now on the file is the run's own, to be written again. A store that is not to be written needs `--force` then. */
async function claim(
  context: CommandContext,
  settings: Settings,
  run: RunRecord,
  path: string,
): Promise<void> {
  const file = await digestedFileAt(path);
  // A device is nobody's.
  if (file === null) return;
  try {
    await withStore(context, settings, 'change', async (store) => {
      await claimFiles(store, await findRun(store, run.name), [path]);
      await noteWrittenFile(store, run.id, file);
    });
  } catch (error) {
    if (!(error instanceof LlmBatchError)) throw error;
  }
}

async function join(
  context: CommandContext,
  settings: Settings,
  store: Store,
  run: RunRecord,
  options: ResultsOptions,
): Promise<string | null> {
  const input: InputDescription = settingsOfRun(run).input ?? { format: 'jsonl' };
  const isTable = input.format === 'csv' || input.format === 'tsv';
  if (options.csvColumns && !isTable) {
    throw usageError(
      'CSV_COLUMNS',
      `--csv-columns is for tables of text, and the input is ${input.format}.`,
      'leave it out: each answer is an object in the field output',
    );
  }
  const path = joinedPathFor(run.inputPath, input.format, {
    workingDirectory: context.workingFolder,
    runName: givenName(run),
    ...(options.output === undefined ? {} : { output: options.output }),
  });
  if (options.output === undefined) {
    refuseForeignPlace(context, path, true, await homeFolders(context, settings));
  }
  const destination = destinationOf(context, run, options, path);
  const written = await writeJoined({
    input,
    destination,
    spreadOutput: options.csvColumns ?? false,
    escapeFormulas: options.escapeFormulas ?? false,
    listTasks: (afterTaskId) => store.listTasks(run.id, afterTaskId, LISTED_TASKS),
    readTasks: (taskIds) => store.readTasks(run.id, taskIds),
  });
  const open = written.rows - written.settled;
  const pending = open === 0 ? '' : `, ${formatCount(open)} of them without an answer yet`;
  const count = formatQuantity(written.rows, 'document');
  tellWritten(context, settings, `${count} of run '${printable(run.name)}'${pending}`, path);
  return path;
}

/** @param path null for standard output */
function destinationOf(
  context: CommandContext,
  run: RunRecord,
  options: ResultsOptions,
  path: string | null,
): ResultDestination {
  if (path === null) return { kind: 'stream', stream: context.stdout, name: 'standard output' };
  return { kind: 'file', path, mayReplace: (options.force ?? false) || run.writtenFiles };
}

/**
 * Where results go that are asked for without `-o`: in the run's own format to the file that the run writes, in any other
 * to one beside the input. Failed documents alone are an errors file. The path is null for standard output.
 */
function placeOf(
  context: CommandContext,
  run: RunRecord,
  options: ResultsOptions,
): { readonly path: string | null; readonly format: ResultFormat } {
  const own = settingsOfRun(run).output;
  const isOwn = own !== null && (options.format ?? formatFor(own, null)) === formatFor(own, null);
  const output = options.output ?? (isOwn ? own : undefined);
  const { results, errors, format } = outputPathsFor(run.inputPath, {
    workingDirectory: context.workingFolder,
    runName: givenName(run),
    ...(options.format === undefined ? {} : { format: options.format }),
    ...(output === undefined ? {} : { output }),
  });
  if (options.output !== undefined || options.only !== 'failed') return { path: results, format };
  const failedFormat = options.format ?? 'jsonl';
  return { path: errors.replace(/\.jsonl$/, ENDINGS[failedFormat]), format: failedFormat };
}
