/** Where documents come from: a file of any format, text files, or standard input. */
import { stat } from 'node:fs/promises';
import { usageError } from '../core/errors.js';
import type { InputFormat } from '../core/input-format.js';
import { openApart } from './apart.js';
import { noFile, openBytes } from './bytes.js';
import { openCsv } from './csv-table.js';
import { locateInput } from './input-files.js';
import { openJsonl } from './jsonl.js';
import { openShards } from './shards.js';
import type { RecordSource } from './source.js';
import { openTextFiles } from './text-files.js';
import { openTextLines } from './text-lines.js';

export interface InputOptions {
  /** What relative paths start from. */
  readonly cwd: string;
  /** Read when the path is `-`. */
  readonly stdin: AsyncIterable<Uint8Array | string>;
  /** `--input-format`; null or absent: by the ending of the name, JSONL where it says nothing. */
  readonly format?: InputFormat | null;
  /** `--query`, for a database; null or absent: none was given. */
  readonly query?: string | null;
  /** Ends the reading of formats that are read in a process of their own. */
  readonly signal?: AbortSignal;
}

export type Input = RecordSource;

/**
 * Opens an input and looks at its beginning.
 * @param names a path, a pattern or `-`; or several files: text files, each a document, or shards of one format
 * @throws LlmBatchError (exit 2) for a file that is missing, a folder, unreadable, empty or of another format.
 *   Damage that shows later (a gzip file cut off) is thrown while its records are read.
 */
export async function openInput(names: string | readonly string[], options: InputOptions): Promise<Input> {
  const located = await locateInput(typeof names === 'string' ? [names] : names, options);
  const query = options.query ?? null;
  const format = located.kind === 'text_files' ? 'text' : located.format;
  if (query !== null && format !== 'sqlite') {
    throw usageError(
      'QUERY_UNUSED',
      `A query is for SQLite databases, and ${located.name} is read as ${format}.`,
    );
  }
  if (located.kind === 'text_files') return openTextFiles(located.name, located.files);
  if (located.kind === 'shards') {
    const { name, files } = located;
    const paths = files.map(({ path }) => path);
    let totalBytes = 0;
    for (const { absolutePath } of files) totalBytes += (await stat(absolutePath)).size;
    return openShards(name, paths, totalBytes, (path) => openFile(path, format, options));
  }
  return openFile(located.path, format, options);
}

async function openFile(path: string, format: InputFormat, options: InputOptions): Promise<Input> {
  if (format === 'parquet' || format === 'sqlite') {
    if (path === '-') throw noFile(format);
    const { cwd, signal, query = null } = options;
    return openApart({ format, path, cwd, query, ...(signal === undefined ? {} : { signal }) });
  }
  const bytes = await openBytes(path, options);
  try {
    switch (format) {
      case 'jsonl':
        return openJsonl(bytes);
      case 'text':
        return openTextLines(bytes);
      default:
        return await openCsv(bytes, format);
    }
  } catch (error) {
    await bytes.close();
    throw error;
  }
}
