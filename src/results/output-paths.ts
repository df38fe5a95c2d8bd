/** Where a run writes: the rule that turns the input's path, or `-o`, into the paths of its outputs. */
import { basename, dirname, extname, join, resolve } from 'node:path';
import { usageError } from '../core/errors.js';
import type { InputFormat } from '../core/input-format.js';
import { formatOfEnding } from '../input/endings.js';
import { belongsToInput, folderOfTextFiles } from '../input/input-files.js';
import { ENDINGS, formatFor, type ResultFormat } from './result-format.js';

export interface OutputPaths {
  /** Absolute; null when the answers go to standard output. */
  readonly results: string | null;
  readonly errors: string;
  readonly rejects: string;
  /** Of the results; errors and rejects are JSON Lines. */
  readonly format: ResultFormat;
}

export interface OutputPathOptions {
  /** For relative paths, and for a run that reads standard input. */
  readonly workingDirectory: string;
  /** What `-o` says; `-` and `/dev/stdout` are standard output. */
  readonly output?: string;
  /** What `--format` says; by default what the ending of `output` says, else `jsonl`. */
  readonly format?: ResultFormat;
  /** Of a run that the user named: beside the input it has files of its own. */
  readonly runName?: string | null;
}

/** A device or a pipe: nothing is ever made in /dev or /proc. */
const HAS_NO_BESIDE = /^\/(dev|proc)\//;

/**
 * `reviews.jsonl` and `reviews.jsonl.gz` give `reviews.results.jsonl`, `reviews.errors.jsonl` and
 * `reviews.rejects.jsonl` beside the input; standard input (`-`) gives `stdin.results.jsonl` … in the working
 * directory; text files by a pattern, `notes/*.md`, give `notes/notes.results.jsonl` …; a run named `v2` has
 * `reviews.v2.results.jsonl` …; with `-o FILE` the errors stand beside FILE, the rejects stay beside the input.
 * @throws LlmBatchError OUTPUT_IS_INPUT, OUTPUT_COMPRESSED, FORMAT_ENDING (exit 2)
 */
export function outputPathsFor(inputPath: string, options: OutputPathOptions): OutputPaths {
  const stem = inputStem(inputPath, options);
  const format = formatFor(options.output ?? null, options.format ?? null);
  const beside = { errors: `${stem}.errors.jsonl`, rejects: `${stem}.rejects.jsonl`, format };

  if (options.output === undefined) return { results: `${stem}.results${ENDINGS[format]}`, ...beside };
  if (isStandardOutput(options.output)) return { results: null, ...beside };

  const results = resolve(options.workingDirectory, options.output);
  if (inputPath !== '-' && belongsToInput(results, resolve(options.workingDirectory, inputPath))) {
    const isOneOfMany = folderOfTextFiles(inputPath) !== null;
    throw usageError(
      'OUTPUT_IS_INPUT',
      isOneOfMany
        ? `${options.output} would be one of the inputs, ${inputPath}.`
        : `${options.output} is the input itself.`,
      { isOneOfMany },
    );
  }
  if (format === 'parquet' && extname(results) === '.gz') {
    throw usageError(
      'OUTPUT_COMPRESSED',
      `${options.output} ends in .gz, but Parquet is compressed as it is.`,
      `name it ${options.output.slice(0, -'.gz'.length)}`,
    );
  }
  if (HAS_NO_BESIDE.test(results)) return { results, ...beside };
  return { ...beside, results, errors: `${stemOf(results).replace(/\.results$/, '')}.errors.jsonl` };
}

/** What `--join` writes of inputs in a format. A database is only read: its rows become lines, which keep their types. */
const JOINED_FORMATS = {
  jsonl: 'jsonl',
  text: 'jsonl',
  csv: 'csv',
  tsv: 'tsv',
  parquet: 'parquet',
  sqlite: 'jsonl',
} as const;

/**
 * Where `results --join` writes: `reviews.csv` gives `reviews.joined.csv` beside it; null for standard output.
 * @param output what `-o` says
 * @throws LlmBatchError OUTPUT_IS_INPUT, OUTPUT_COMPRESSED, JOIN_FORMAT (exit 2)
 */
export function joinedPathFor(
  inputPath: string,
  format: InputFormat,
  options: Omit<OutputPathOptions, 'format'>,
): string | null {
  const { output } = options;
  const written = JOINED_FORMATS[format];
  if (output === undefined) return `${inputStem(inputPath, options)}.joined.${written}`;
  const said = formatOfEnding(output);
  if (said !== null && said !== 'text' && JOINED_FORMATS[said] !== written) {
    throw usageError(
      'JOIN_FORMAT',
      `The input with its answers is written as ${written.toUpperCase()} where the input is ${format === 'sqlite' ? 'a database' : format.toUpperCase()}, and ${output} says otherwise.`,
      { written, instead: said === 'parquet' ? 'parquet' : 'csv' },
    );
  }
  return outputPathsFor(inputPath, options).results;
}

/** Names of this process's standard output, which is written as a stream and never opened anew. */
export function isStandardOutput(output: string): boolean {
  return output === '-' || ['/dev/stdout', '/dev/fd/1', '/proc/self/fd/1'].includes(output);
}

/** Without the control and path characters that a name for people may have. */
export function fileNameOf(runName: string): string {
  return runName.replace(/[\p{Cc}/\\:*?"<>|]/gu, '_').slice(0, 100);
}

function inputStem(inputPath: string, { workingDirectory, runName = null }: OutputPathOptions): string {
  const stem = placeOf(inputPath, workingDirectory);
  if (inputPath === '-' && runName?.startsWith('stdin-')) return join(workingDirectory, fileNameOf(runName));
  return runName === null ? stem : `${stem}.${fileNameOf(runName)}`;
}

function placeOf(inputPath: string, workingDirectory: string): string {
  if (inputPath === '-') return join(workingDirectory, 'stdin');
  const path = resolve(workingDirectory, inputPath);
  if (HAS_NO_BESIDE.test(path)) return join(workingDirectory, basename(path));
  const folder = folderOfTextFiles(path);
  return folder === null ? stemOf(path) : join(folder, basename(folder) || 'documents');
}

function stemOf(path: string): string {
  const name = basename(path);
  const plain = extname(name) === '.gz' ? name.slice(0, -'.gz'.length) : name;
  const extension = extname(plain);
  const isOfData = extension !== '' && formatOfEnding(extension) !== null;
  return join(dirname(path), isOfData ? plain.slice(0, -extension.length) : plain);
}
