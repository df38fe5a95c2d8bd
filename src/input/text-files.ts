/** Text files, each a document with the fields `id` and `path` (as the user would type it), `name` and `text`. */
import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { notUtf8, tooLong } from './bad-line.js';
import { unreadable } from './bytes.js';
import { DEFAULT_MAX_LINE_BYTES } from './lines.js';
import type { InputRecord, RecordOptions, RecordSource } from './source.js';
import { decodeUtf8 } from './utf8.js';

export interface TextFile {
  readonly absolutePath: string;
  /** Its identity: with forward slashes, and relative if it lies inside the working folder. */
  readonly path: string;
}

const PAGE_FILES = 100;
const BYTE_ORDER_MARK = '\ufeff';

/** @param files in the order in which their documents are to come */
export async function openTextFiles(name: string, files: readonly TextFile[]): Promise<RecordSource> {
  let totalBytes = 0;
  for (const file of files) totalBytes += await readable(file, async (path) => (await stat(path)).size);
  let bytesRead = 0;
  return {
    name,
    description: { format: 'text', files: true },
    totalBytes,
    bytesRead: () => bytesRead,
    records: (options) =>
      readFiles(files, options, (bytes) => {
        bytesRead += bytes;
      }),
    async close() {},
  };
}

async function* readFiles(
  files: readonly TextFile[],
  { maxLineBytes = DEFAULT_MAX_LINE_BYTES }: RecordOptions,
  onRead: (bytes: number) => void,
): AsyncGenerator<InputRecord[]> {
  let page: InputRecord[] = [];
  let pageBytes = 0;
  for (const [index, file] of files.entries()) {
    const size = await readable(file, async (path) => (await stat(path)).size);
    page.push(await recordOf(file, index + 1, size, maxLineBytes));
    onRead(size);
    pageBytes += size;
    if (page.length < PAGE_FILES && pageBytes < maxLineBytes) continue;
    yield page;
    page = [];
    pageBytes = 0;
  }
  if (page.length > 0) yield page;
}

async function recordOf(file: TextFile, line: number, size: number, maxBytes: number): Promise<InputRecord> {
  const { path } = file;
  const bad = (reason: string): InputRecord => ({ line, reason, text: null, place: path });
  if (size > maxBytes) return bad(tooLong(size, maxBytes));
  const bytes = await readable(file, (absolutePath) => readFile(absolutePath));
  if (bytes.includes(0)) return bad('a binary file: it holds a NUL byte');
  const decoded = decodeUtf8(bytes);
  if (decoded === null) return bad(notUtf8(bytes, 'file'));
  const text = decoded.startsWith(BYTE_ORDER_MARK) ? decoded.slice(1) : decoded;
  return { line, text: JSON.stringify({ id: path, path, name: basename(path), text }), place: path };
}

async function readable<Result>(
  { absolutePath, path }: TextFile,
  read: (absolutePath: string) => Promise<Result>,
): Promise<Result> {
  try {
    return await read(absolutePath);
  } catch (error) {
    throw unreadable(error, path, absolutePath);
  }
}
