/** A file, a gzip file or standard input as one stream of bytes. */
import type { Stats } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { isAbsolute, resolve } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { type LlmBatchError, usageError } from '../core/errors.js';
import { STANDARD_INPUT_NAME, theInput } from '../core/input-name.js';

export interface ByteOptions {
  /** What a relative path starts from. */
  readonly cwd: string;
  /** Read when the path is `-`. */
  readonly stdin: AsyncIterable<Uint8Array | string>;
}

export interface ByteInput {
  /** As messages call it: the path as given, or `standard input`. */
  readonly name: string;
  /** Uncompressed bytes. Each chunk is overwritten once the next is asked for. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Bytes to be read from the source, as compressed as it is; null when the length is not known in advance. */
  readonly totalBytes: number | null;
  /** Bytes read from the source so far, counted like `totalBytes`. */
  bytesRead(): number;
  /** `-` for standard input. */
  readonly absolutePath: string;
  /** Frees the file; safe to call at any time and twice. */
  close(): Promise<void>;
}

const STANDARD_INPUT = '-';
/** Larger chunks are no faster and cost memory; smaller ones cut more lines in two. */
const CHUNK_BYTES = 256 * 1024;

/** As long as the longest of the signatures below. */
const SIGNATURE_BYTES = 6;

/**
 * Opens an input and looks at its first bytes. Gzip is recognised by its first two bytes, whatever the name.
 * @throws LlmBatchError (exit 2) for a file that is missing, a folder, unreadable, empty or not text.
 *   Damage that shows later (a gzip file cut off) is thrown while `chunks` is read.
 */
export async function openBytes(path: string, options: ByteOptions): Promise<ByteInput> {
  if (path === STANDARD_INPUT) {
    return inspectInput({
      name: STANDARD_INPUT_NAME,
      absolutePath: STANDARD_INPUT,
      source: new ByteSource(toBytes(options.stdin)),
      totalBytes: null,
      release: async () => {},
    });
  }
  const absolutePath = isAbsolute(path) ? path : resolve(options.cwd, path);
  const handle = await openFile(path, absolutePath);
  try {
    const status = await handle.stat();
    return await inspectInput({
      name: path,
      absolutePath,
      source: new ByteSource(readFile(handle, path)),
      // The size of a named pipe is 0, which says nothing.
      totalBytes: status.isFile() ? status.size : null,
      release: () => handle.close(),
    });
  } catch (error) {
    await handle.close();
    throw error;
  }
}

interface OpenedSource {
  /** As messages call it. */
  readonly name: string;
  readonly absolutePath: string;
  readonly source: ByteSource;
  readonly totalBytes: number | null;
  readonly release: () => Promise<void>;
}

async function inspectInput(opened: OpenedSource): Promise<ByteInput> {
  const { name, absolutePath, source, totalBytes } = opened;
  const head = await source.peek();
  if (head.length === 0) {
    throw usageError('INPUT_EMPTY', `${theInput(name)} is empty.`, 'Give a file with at least one document.');
  }
  refuseFileFormats(head, name, absolutePath === STANDARD_INPUT);
  refuseOtherEncodings(head, name);
  const zipped = isGzip(head) || absolutePath.toLowerCase().endsWith('.gz');
  let closed = false;
  return {
    name,
    chunks: zipped ? gunzip(source, name) : source,
    totalBytes,
    bytesRead: () => source.bytesRead,
    absolutePath,
    async close() {
      if (closed) return;
      closed = true;
      source.stop();
      await opened.release();
    },
  };
}

/** Counts bytes, and shows the first ones before they are consumed. */
class ByteSource implements AsyncIterable<Uint8Array> {
  readonly #chunks: AsyncGenerator<Uint8Array>;
  #head: Uint8Array = new Uint8Array();
  bytesRead = 0;

  constructor(chunks: AsyncGenerator<Uint8Array>) {
    this.#chunks = chunks;
  }

  /** The first bytes, enough to recognise a format by; fewer if the input is shorter. */
  async peek(): Promise<Uint8Array> {
    while (this.#head.length < SIGNATURE_BYTES) {
      const next = await this.#chunks.next();
      if (next.done) break;
      this.#head = Buffer.concat([this.#head, next.value]);
    }
    return this.#head;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    this.bytesRead += this.#head.length;
    yield this.#head;
    this.#head = new Uint8Array();
    for await (const chunk of this.#chunks) {
      this.bytesRead += chunk.length;
      yield chunk;
    }
  }

  /** Does not wait for the source: a terminal or a pipe may never send another byte. */
  stop(): void {
    this.#chunks.return(undefined).catch(() => {});
  }
}

async function openFile(name: string, absolutePath: string): Promise<FileHandle> {
  await statInput(name, absolutePath);
  return open(absolutePath, 'r').catch((error: unknown) => {
    throw unreadable(error, name, absolutePath);
  });
}

/** What is there. @throws LlmBatchError (exit 2) for a folder, and where there is nothing */
export async function statInput(name: string, absolutePath: string): Promise<Stats> {
  const status = await stat(absolutePath).catch((error: unknown) => {
    throw unreadable(error, name, absolutePath);
  });
  if (status.isDirectory()) throw inputIsFolder(name);
  return status;
}

async function* readFile(handle: FileHandle, name: string): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  for (;;) {
    let bytesRead: number;
    try {
      ({ bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, null));
    } catch (error) {
      throw unreadable(error, name, name);
    }
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

async function* toBytes(stdin: AsyncIterable<Uint8Array | string>): AsyncGenerator<Uint8Array> {
  for await (const chunk of stdin) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
}

async function* gunzip(source: ByteSource, name: string): AsyncGenerator<Uint8Array> {
  const stream = createGunzip({ chunkSize: CHUNK_BYTES });
  // All errors, the source's own included, reach the reader through the stream.
  pipeline(Readable.from(copied(source)), stream, () => {});
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (!code.startsWith('Z_')) throw error;
    const what = code === 'Z_BUF_ERROR' ? 'ends in the middle' : 'is damaged or no gzip data';
    throw usageError(
      'INPUT_DAMAGED_GZIP',
      `The gzip input ${name} ${what}.`,
      'Fetch or write it again; `gzip -t` checks a file.',
    );
  }
}

/** Copies, since the decompressor still holds a chunk when the source overwrites it. */
async function* copied(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) yield Buffer.from(chunk);
}

function isGzip(head: Uint8Array): boolean {
  return head[0] === 0x1f && head[1] === 0x8b;
}

const ZIP = 'a ZIP archive (an Excel workbook is one too)';

const OTHER_ENCODINGS: readonly { readonly name: string; readonly bytes: readonly number[] }[] = [
  { name: 'UTF-16 text', bytes: [0xff, 0xfe] },
  { name: 'UTF-16 text', bytes: [0xfe, 0xff] },
  { name: ZIP, bytes: [0x50, 0x4b, 0x03, 0x04] },
  { name: 'Zstandard data', bytes: [0x28, 0xb5, 0x2f, 0xfd] },
  { name: 'bzip2 data', bytes: [0x42, 0x5a, 0x68] },
  { name: 'xz data', bytes: [0xfd, 0x37, 0x7a, 0x58, 0x5a] },
];

/** Every line of such a file would be a bad line; one sentence is clearer. */
function refuseOtherEncodings(head: Uint8Array, name: string): void {
  const found = OTHER_ENCODINGS.find(({ bytes }) => bytes.every((byte, index) => head[index] === byte));
  if (found === undefined) return;
  throw usageError(
    'INPUT_NOT_UTF8',
    `${theInput(name)} is ${found.name}, not UTF-8 text.`,
    'Save it as UTF-8 JSONL, CSV or text, plain or compressed with gzip.',
  );
}

/** Formats that are read by jumping about in a file: how they begin, and why a stream cannot be read so. */
const FILE_FORMATS = {
  parquet: {
    // The magic number and the first byte of a page's header (Parquet format specification, "File format").
    start: Buffer.from([0x50, 0x41, 0x52, 0x31, 0x15]),
    code: 'INPUT_IS_PARQUET',
    what: 'a Parquet file',
    inStream: 'A Parquet file is read from its end, which standard input does not have.',
  },
  sqlite: {
    // The first bytes of "SQLite format 3\\0" (Database File Format, 1.3.1).
    start: Buffer.from('SQLite'),
    code: 'INPUT_IS_SQLITE',
    what: 'a SQLite database',
    inStream: 'A SQLite database is read by jumping about in the file, which standard input does not allow.',
  },
} as const;

function refuseFileFormats(head: Uint8Array, name: string, isStandardInput: boolean): void {
  for (const format of ['parquet', 'sqlite'] as const) {
    const { start, code, what } = FILE_FORMATS[format];
    if (!start.equals(head.subarray(0, start.length))) continue;
    if (isStandardInput) throw noFile(format);
    throw usageError(code, `${theInput(name)} is ${what} and its name does not say so.`, { isNamed: false });
  }
}

/** Of standard input that is to be read as one of these. */
export function noFile(format: keyof typeof FILE_FORMATS): LlmBatchError {
  const { code, inStream } = FILE_FORMATS[format];
  return usageError(code, inStream, 'Save it to a file and name that.');
}

function inputIsFolder(name: string): LlmBatchError {
  const pattern = `${name.replace(/\/+$/, '')}/*.md`;
  return usageError(
    'INPUT_IS_FOLDER',
    `${theInput(name)} is a folder.`,
    `Name a file inside it, or its text files with a pattern in quotes: '${pattern}'.`,
  );
}

export function unreadable(error: unknown, name: string, absolutePath: string): LlmBatchError {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return usageError('INPUT_NOT_FOUND', `There is no input file ${absolutePath}.`, 'Check the path.');
    case 'EACCES':
    case 'EPERM':
      return usageError(
        'INPUT_UNREADABLE',
        `${theInput(name)} may not be read by this user.`,
        `Allow it: chmod u+r ${absolutePath}`,
      );
    default:
      return usageError(
        'INPUT_UNREADABLE',
        `${theInput(name)} cannot be read: ${message}.`,
        'Check the disk, or copy the file and try again.',
      );
  }
}
