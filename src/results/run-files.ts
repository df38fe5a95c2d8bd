/** The files of a run: results in input order and, only while some documents have failed, errors. */
import { constants, existsSync } from 'node:fs';
import { access, stat, unlink } from 'node:fs/promises';
import { usageError } from '../core/errors.js';
import type { ResultRow } from '../core/result-row.js';
import type { RunRecord, WrittenFile } from '../core/run.js';
import { type AtomicFileOptions, inspectOutput, mayReplace, openAtomicFile } from './atomic-file.js';
import { errorCodeOf, outputError, outputExistsError } from './output-error.js';
import type { OutputPaths } from './output-paths.js';
import { openRowWriter, type ResultFormat } from './result-format.js';
import { type ReadResultPage, resultPages } from './result-pages.js';
import type { RowWriter } from './row-writer.js';
import { type OutputSink, openFileSink } from './sink.js';

export interface RunFileOwnership {
  readonly paths: OutputPaths;
  /** Files as the run left them; only what is still so may be replaced. */
  readonly ownFiles: readonly WrittenFile[];
  /** `--force`: anything may be replaced, except the input. */
  readonly force: boolean;
}

/** The run with the files that are there now: an errors file, say, is only written where documents failed. */
export function withPresentFiles(run: RunRecord): RunRecord {
  return { ...run, outputPaths: run.outputPaths.filter((path) => existsSync(path)) };
}

/**
 * Refuses a run whose outputs could not be written at its end, before any call is made: what would be written there is
 * begun and dropped again.
 * @throws LlmBatchError OUTPUT_EXISTS, OUTPUT_IS_INPUT, OUTPUT_PATH (exit 2), OUTPUT_WRITE (exit 5)
 */
export async function checkRunFiles(ownership: RunFileOwnership, inputPath: string): Promise<void> {
  const { paths } = ownership;
  for (const path of [paths.results, paths.errors]) {
    if (path === null) continue;
    const target = await inspectOutput(path);
    if (target.kind === 'file') {
      if (await isSameFile(target.path, inputPath)) {
        throw usageError('OUTPUT_IS_INPUT', `${path} is the input itself.`);
      }
      if (!(await mayReplace(replaceable(ownership), target.file))) throw outputExistsError(path);
    }
    if (target.kind === 'special') await checkSpecialFile(path);
    else await (await openAtomicFile(path, { mayReplace: true })).abort();
  }
}

/** Not opened: to open and close a pipe ends it for its reader. */
async function checkSpecialFile(path: string): Promise<void> {
  try {
    await access(path, constants.W_OK);
  } catch (error) {
    throw outputError(path, error);
  }
}

async function isSameFile(path: string, inputPath: string): Promise<boolean> {
  if (inputPath === '-') return false;
  try {
    const [one, other] = await Promise.all([stat(path), stat(inputPath)]);
    return one.dev === other.dev && one.ino === other.ino;
  } catch (error) {
    // `resume` needs no input file; what is not there cannot be overwritten.
    if (errorCodeOf(error) === 'ENOENT') return false;
    throw outputError(path, error);
  }
}

function replaceable({ force, ownFiles }: RunFileOwnership): Pick<AtomicFileOptions, 'mayReplace'> {
  return { mayReplace: force || ownFiles };
}

export interface WriteRunFilesOptions extends RunFileOwnership {
  /** Must read completed and failed tasks both. */
  readonly readPage: ReadResultPage;
  /** Told of each file when it is complete, before it gets its name: a crash between the two must not make it look foreign. */
  readonly onComplete: (file: WrittenFile) => Promise<void>;
  /** Called after each page with the rows written so far. */
  readonly onProgress?: (rows: number) => void;
}

export interface WrittenRunFiles {
  readonly completed: number;
  readonly failed: number;
  /** Null when answers go to standard output, or when nothing is settled yet and nothing was there to renew. */
  readonly resultsPath: string | null;
  /** Null when no document has failed. */
  readonly errorsPath: string | null;
}

/**
 * Writes both files in one pass over the run. An errors file of ours from an earlier time is removed when nothing has
 * failed any more; one that is not ours stays.
 * @throws LlmBatchError OUTPUT_EXISTS, OUTPUT_PATH (exit 2), OUTPUT_WRITE, RESULT_ROW_BROKEN (exit 5)
 */
export async function writeRunFiles(options: WriteRunFilesOptions): Promise<WrittenRunFiles> {
  const results = new LazyFile(options.paths.results, options.paths.format, options);
  const errors = new LazyFile(options.paths.errors, 'jsonl', options);
  let completed = 0;
  let failed = 0;
  try {
    for await (const page of resultPages(options.readPage, 'all')) {
      const answered = page.filter((row) => row.state === 'completed');
      const others = page.filter((row) => row.state !== 'completed');
      await results.write(answered);
      await errors.write(others);
      completed += answered.length;
      failed += others.length;
      options.onProgress?.(completed + failed);
    }
    // A run stopped at its first call leaves no empty file about, but an older file must not outlive its answers.
    if (completed + failed > 0 || (await ownsExistingFile(options, options.paths.results)))
      await results.open();
    const resultsPath = await results.finish();
    const errorsPath = await errors.finish();
    if (errorsPath === null) await removeOwnedFile(options, options.paths.errors);
    return { completed, failed, resultsPath, errorsPath };
  } catch (error) {
    await results.abort();
    await errors.abort();
    throw error;
  }
}

async function ownsExistingFile(ownership: RunFileOwnership, path: string | null): Promise<boolean> {
  if (path === null) return false;
  const target = await inspectOutput(path);
  return target.kind === 'file' && (await mayReplace({ mayReplace: ownership.ownFiles }, target.file));
}

async function removeOwnedFile(ownership: RunFileOwnership, path: string): Promise<void> {
  if (!(await ownsExistingFile(ownership, path))) return;
  try {
    await unlink(path);
  } catch (error) {
    if (errorCodeOf(error) !== 'ENOENT') throw outputError(path, error);
  }
}

/** A file that is made when its first row comes. */
class LazyFile {
  readonly #path: string | null;
  readonly #format: ResultFormat;
  readonly #options: AtomicFileOptions;
  #sink: OutputSink | null = null;
  #writer: RowWriter<ResultRow> | null = null;

  /** @param path null: its rows go nowhere */
  constructor(path: string | null, format: ResultFormat, options: WriteRunFilesOptions) {
    this.#path = path;
    this.#format = format;
    this.#options = { ...replaceable(options), onComplete: options.onComplete };
  }

  async write(rows: readonly ResultRow[]): Promise<void> {
    if (rows.length === 0) return;
    await this.open();
    await this.#writer?.write(rows);
  }

  async open(): Promise<void> {
    if (this.#path === null || this.#sink !== null) return;
    this.#sink = await openFileSink(this.#path, this.#options);
    const plain = { includeInput: false, outputFields: [] };
    this.#writer = await openRowWriter(this.#format, this.#sink, plain);
  }

  /** @returns the path, null when there was no such file to make */
  async finish(): Promise<string | null> {
    await this.#writer?.end();
    await this.#sink?.finish();
    return this.#sink === null ? null : this.#path;
  }

  async abort(): Promise<void> {
    await this.#sink?.abort();
  }
}
