/** `results [run]`: writes results again from the store, in any format, to a file or to standard output. */
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { EXIT_CODES, type ExitCode } from '../core/errors.js';
import { writeResults } from '../results/export.js';
import { isStandardOutput, outputPathsFor } from '../results/output-paths.js';
import { RESULT_FORMATS, type ResultFormat } from '../results/result-format.js';
import { findRun } from '../runs/find-run.js';
import { settingsOfRun } from '../runs/run-settings.js';
import type { ResultFilter, RunRecord } from '../store/store.js';
import { formatQuantity } from '../ui/numbers.js';
import type { Action } from './action.js';
import type { CommandContext } from './context.js';
import { withStore } from './open-store.js';
import { addSettingFlags, readSettings } from './setting-flags.js';

const EXAMPLES = `
Examples:
  llm-batch results                          beside the input, as run does
  llm-batch results reviews -o - | jq .output
  llm-batch results --format csv --include-input -o answers.csv
  llm-batch results --only failed -o failed.jsonl`;

const RESULT_PAGE_ROWS = 1_000;

export function registerResults(program: Command, context: CommandContext, action: Action): void {
  const command = program
    .command('results')
    .argument('[run]', 'name of the run; default: the newest unfinished one, else the newest')
    .description('write results again from the store')
    .addHelpText('after', EXAMPLES)
    .addOption(new Option('--format <format>', 'format of the file').choices(RESULT_FORMATS).default('jsonl'))
    .addOption(
      new Option('--only <which>', 'which documents')
        .choices(['completed', 'failed', 'all'])
        .default('completed'),
    )
    .option('-o, --output <file>', 'file to write, or - for standard output')
    .option('--include-input', 'each line carries its input document')
    .option('--force', 'overwrite a file that this run did not write');
  addSettingFlags(command, ['store', 'display']);
  command.action(
    action((run: string | undefined, options: ResultsOptions) => results(command, context, run, options)),
  );
}

interface ResultsOptions {
  readonly format: ResultFormat;
  readonly only: ResultFilter;
  readonly output?: string;
  readonly includeInput?: boolean;
  readonly force?: boolean;
}

async function results(
  command: Command,
  context: CommandContext,
  runName: string | undefined,
  options: ResultsOptions,
): Promise<ExitCode> {
  const { settings } = readSettings(command, context);
  return withStore(context, settings, 'read', async (store) => {
    const run = await findRun(store, runName);
    const destination = destinationOf(context, run, options);
    const written = await writeResults({
      format: options.format,
      only: options.only,
      includeInput: options.includeInput ?? false,
      destination,
      readPage: (afterLine) =>
        store.readResults({
          runId: run.id,
          only: options.only,
          afterLine,
          limit: RESULT_PAGE_ROWS,
          includeBody: options.includeInput ?? false,
        }),
    });
    if (destination.kind === 'file' && !settings.quiet) {
      const count = formatQuantity(written.completed + written.failed, 'document');
      context.stderr.write(`${count} of run '${run.name}' written to ${destination.path}\n`);
    }
    return EXIT_CODES.completed;
  });
}

function destinationOf(context: CommandContext, run: RunRecord, options: ResultsOptions) {
  const { output } = options;
  if (output !== undefined && isStandardOutput(output)) {
    return { kind: 'stream', stream: context.stdout, name: 'standard output' } as const;
  }
  const path =
    output === undefined ? defaultPath(context, run, options) : resolve(context.workingFolder, output);
  return {
    kind: 'file',
    path,
    mayReplace: (options.force ?? false) || run.outputPaths.includes(path),
  } as const;
}

/** Failed documents alone are an errors file; everything else is a results file. */
function defaultPath(context: CommandContext, run: RunRecord, options: ResultsOptions): string {
  const output = options.format === 'jsonl' ? settingsOfRun(run).output : null;
  const paths = outputPathsFor(run.inputPath, {
    workingDirectory: context.workingFolder,
    format: options.format,
    ...(output === null ? {} : { output }),
  });
  return options.only === 'failed' || paths.results === null ? paths.errors : paths.results;
}
