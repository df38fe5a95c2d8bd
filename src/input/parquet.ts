/** Parquet files, read a part of a row group at a time: each row is a document, and the columns are its fields. */
import { type FileHandle, open } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import * as zlib from 'node:zlib';
import {
  type AsyncBuffer,
  type Compressors,
  type FileMetaData,
  parquetMetadataAsync,
  parquetScan,
  parquetSchema,
  type RowGroup,
} from 'hyparquet';
import { snappyUncompress } from 'hyparquet/src/snappy.js';
import { LlmBatchError, usageError } from '../core/errors.js';
import { showName } from '../core/field.js';
import { theInput } from '../core/input-name.js';
import { cappedRow } from './bad-line.js';
import { statInput, unreadable } from './bytes.js';
import { memberStarts, refuseRepeated } from './columns.js';
import { DEFAULT_MAX_LINE_BYTES } from './lines.js';
import { columnToJson, type ValueToJson } from './parquet-column.js';
import { InvalidText, rawElement, UnusableValue } from './parquet-leaf.js';
import type { InputRecord, RecordOptions, RecordSource } from './source.js';
import { decodeUtf8 } from './utf8.js';

/** Decoded values held at once, all columns together; a row group may be as large as the file. */
const DECODED_BYTES = 8 * 1024 * 1024;
/** What a value takes on top of its own bytes: an object's header and its place in a list. */
const VALUE_BYTES = 40;
const PAGE_ROWS = 1_000;
/** Keeps a page of long rows small. */
const PAGE_CHARACTERS = 8 * 1024 * 1024;
/** Most writers make pages of a mebibyte; some put all rows of a group into one. */
const MOST_PAGE_BYTES = 512 * 1024 * 1024;

/**
 * Reads the file's footer.
 * @throws LlmBatchError (exit 2) for a file that is not Parquet, that is compressed in a way that cannot be unpacked here,
 *   or that has columns of bytes
 */
export async function openParquet(path: string, cwd: string): Promise<RecordSource> {
  const absolutePath = resolve(cwd, path);
  const handle = await openFile(path, absolutePath);
  try {
    return await describeFile(path, handle);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function openFile(name: string, absolutePath: string): Promise<FileHandle> {
  const status = await statInput(name, absolutePath);
  if (!status.isFile()) {
    throw usageError(
      'INPUT_UNREADABLE',
      `${theInput(name)} is no file, and Parquet is read from its end.`,
      'Save it to a file.',
    );
  }
  return open(absolutePath, 'r').catch((error: unknown) => {
    throw unreadable(error, name, absolutePath);
  });
}

async function describeFile(name: string, handle: FileHandle): Promise<RecordSource> {
  const { size: totalBytes } = await handle.stat();
  if (totalBytes === 0) throw usageError('INPUT_EMPTY', `${theInput(name)} is empty.`, 'Check the path.');
  const file = new GroupBuffer(handle, totalBytes);
  const metadata = await damageTold(name, () => parquetMetadataAsync(file, GENERAL));
  const totalRows = Number(metadata.num_rows);
  if (totalRows === 0) {
    throw usageError('INPUT_EMPTY', `${theInput(name)} has no rows.`, 'Check the path.');
  }
  refuseCodecs(metadata, name);
  const columns = columnsOf(metadata, name);
  let rowsRead = 0;
  let closed = false;
  return {
    name,
    description: { format: 'parquet', schema: metadata.schema },
    totalBytes,
    bytesRead: () => Math.round((totalBytes * rowsRead) / totalRows),
    records: (options) =>
      readRows({ name, file, metadata, columns, options }, (rows) => {
        rowsRead = rows;
      }),
    async close() {
      if (closed) return;
      closed = true;
      await handle.close();
    },
  };
}

interface Column {
  readonly name: string;
  /** See `memberStarts`. */
  readonly memberStart: string;
  readonly toJson: ValueToJson;
  /** Bytes that are not declared to be text. */
  readonly mayBeBytes: boolean;
}

function columnsOf(metadata: FileMetaData, inputName: string): Column[] {
  const trees = parquetSchema(metadata).children;
  const names = trees.map(({ element }) => element.name);
  const starts = memberStarts(names);
  const refused: string[] = [];
  const columns = trees.flatMap((tree, index): Column[] => {
    const { name, type, converted_type: converted, logical_type: logical } = tree.element;
    const toJson = columnToJson(tree);
    if (toJson === null) {
      refused.push(name);
      return [];
    }
    const mayBeBytes = type === 'BYTE_ARRAY' && converted === undefined && logical === undefined;
    return [{ name, memberStart: starts[index] ?? '', toJson, mayBeBytes }];
  });
  if (refused.length > 0) throw bytesColumns(refused, inputName);
  refuseRepeated(names, `${theInput(inputName)} has`);
  return columns;
}

function bytesColumns(names: readonly string[], inputName: string): LlmBatchError {
  const shown = names.map(showName).join(', ');
  return usageError(
    'INPUT_BINARY_COLUMN',
    `${theInput(inputName)} holds bytes or other values that are no text in ${names.length === 1 ? 'column' : 'columns'} ${shown}.`,
    `Leave ${names.length === 1 ? 'it' : 'them'} out, or store text: SELECT * EXCLUDE (${shown}) in DuckDB, df.drop(columns=[…]) in pandas.`,
  );
}

/** The decompressors that Node brings along; `zstdDecompressSync` came with Node 22.15. */
const COMPRESSORS: Compressors = {
  SNAPPY(input, length) {
    const output = new Uint8Array(boundOf(length) && length);
    snappyUncompress(input, output);
    return output;
  },
  GZIP: (input, length) => zlib.gunzipSync(input, boundOf(length)),
  BROTLI: (input, length) => zlib.brotliDecompressSync(input, boundOf(length)),
  ...zstdOfNode(),
};

function zstdOfNode(): Compressors {
  const { zstdDecompressSync } = zlib as {
    zstdDecompressSync?: (input: Uint8Array, bound: { maxOutputLength: number }) => Uint8Array;
  };
  return zstdDecompressSync === undefined
    ? {}
    : { ZSTD: (input, length) => zstdDecompressSync(input, boundOf(length)) };
}

/** A page (dictionaries have pages too) must unpack to the size it states, and may not state more than the cap. */
function boundOf(length: number): { maxOutputLength: number } {
  if (length > MOST_PAGE_BYTES) throw new Error(`a page of it has ${length} bytes`);
  // The decompressor refuses a bound of zero, as an empty page would need.
  return { maxOutputLength: Math.max(1, length) };
}

const READABLE_CODECS = ['UNCOMPRESSED', ...Object.keys(COMPRESSORS)];

function refuseCodecs({ row_groups: groups }: FileMetaData, name: string): void {
  const codecs = new Set(groups.flatMap(({ columns }) => columns.map((column) => column.meta_data?.codec)));
  const unknown = [...codecs].filter((codec) => codec !== undefined && !READABLE_CODECS.includes(codec));
  if (unknown.length === 0) return;
  const newerNode = unknown.includes('ZSTD') ? ' Node 22.15 and newer read zstd.' : '';
  throw usageError(
    'INPUT_CODEC',
    `${theInput(name)} is compressed with ${unknown.join(', ')}, which cannot be unpacked here.`,
    `Write it with one of ${READABLE_CODECS.join(', ')}.${newerNode}`,
  );
}

/** All other values come as they are stored; see `rawElement`. */
const PARSERS = {
  stringFromBytes: (bytes: Uint8Array | undefined) =>
    bytes === undefined
      ? undefined
      : (decodeUtf8(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)) ?? new InvalidText()),
  timestampFromNanoseconds: (nanoseconds: bigint) => nanoseconds,
};

const GENERAL = { geoparquet: false, parsers: PARSERS } as const;

interface RowReading {
  readonly name: string;
  readonly file: GroupBuffer;
  readonly metadata: FileMetaData;
  readonly columns: readonly Column[];
  readonly options: RecordOptions;
}

async function* readRows(reading: RowReading, onRows: (rows: number) => void): AsyncGenerator<InputRecord[]> {
  const { name, file, metadata, columns } = reading;
  const raw = { ...metadata, schema: metadata.schema.map(rawElement) };
  const scan = await damageTold(name, () =>
    parquetScan({ file, metadata: raw, utf8: false, ...GENERAL, compressors: COMPRESSORS }),
  );
  const groups = metadata.row_groups.filter(({ num_rows: rows }) => rows > 0n);
  for (const [index, { rowStart, rowEnd }] of scan.ranges.entries()) {
    file.forget();
    const windows = columns.map(
      ({ name: column }) =>
        new ColumnWindow(rowEnd, windowRows(groups[index], column, columns.length), (from, to) =>
          damageTold(name, () => scan.readColumn({ column, rowStart: from, rowEnd: to })),
        ),
    );
    for (let start = rowStart; start < rowEnd; start += PAGE_ROWS) {
      for (const window of windows) await window.reach(start);
      const end = Math.min(start + PAGE_ROWS, rowEnd);
      let page: InputRecord[] = [];
      let characters = 0;
      for (let row = start; row < end; row += 1) {
        const record = recordOf(reading, windows, row);
        page.push(record);
        characters += record.text?.length ?? 0;
        if (characters < PAGE_CHARACTERS && row + 1 < end) continue;
        onRows(row + 1);
        yield page;
        page = [];
        characters = 0;
      }
    }
  }
}

/**
 * How many rows of a column are decoded together: more of short values than of long ones, since a data page is decoded
 * as a whole each time and holds that many more of them.
 */
function windowRows(group: RowGroup | undefined, column: string, columns: number): number {
  const leaves = (group?.columns ?? []).flatMap(({ meta_data: leaf }) =>
    leaf?.path_in_schema[0] === column ? [leaf] : [],
  );
  const bytes = leaves.reduce(
    (sum, leaf) => sum + Number(leaf.total_uncompressed_size) + Number(leaf.num_values) * VALUE_BYTES,
    1,
  );
  const rows = (Number(group?.num_rows ?? 0) * DECODED_BYTES) / columns / bytes;
  return Math.max(1, Math.floor(rows / PAGE_ROWS)) * PAGE_ROWS;
}

/** The rows of a column that are decoded just now. */
class ColumnWindow {
  readonly #rowEnd: number;
  readonly #rows: number;
  readonly #read: (from: number, to: number) => Promise<ArrayLike<unknown>>;
  #from = 0;
  #to = 0;
  #values: ArrayLike<unknown> = [];

  /** @param rowEnd of the row group @param rows a multiple of a page's */
  constructor(rowEnd: number, rows: number, read: (from: number, to: number) => Promise<ArrayLike<unknown>>) {
    this.#rowEnd = rowEnd;
    this.#rows = rows;
    this.#read = read;
  }

  /** Decodes the window that holds the page beginning at `row`. */
  async reach(row: number): Promise<void> {
    if (row < this.#to) return;
    // Freed first, so that two windows are never held at once.
    this.#values = [];
    this.#from = row;
    this.#to = Math.min(row + this.#rows, this.#rowEnd);
    this.#values = await this.#read(this.#from, this.#to);
  }

  valueAt(row: number): unknown {
    return this.#values[row - this.#from];
  }
}

function recordOf(
  { name, columns, options }: RowReading,
  windows: readonly ColumnWindow[],
  row: number,
): InputRecord {
  const line = row + 1;
  const maxBytes = options.maxLineBytes ?? DEFAULT_MAX_LINE_BYTES;
  let text = '';
  for (const [at, column] of columns.entries()) {
    const value = windows[at]?.valueAt(row);
    if (column.mayBeBytes && value instanceof InvalidText) throw bytesColumns([column.name], name);
    try {
      text += column.memberStart + column.toJson(value);
    } catch (error) {
      if (!(error instanceof UnusableValue)) throw error;
      return { line, reason: `${showName(column.name)} ${error.message}`, field: column.name, text: null };
    }
  }
  return cappedRow(line, `${text}}`, maxBytes);
}

/** Whatever error the reader throws, the file is not what its footer says. */
async function damageTold<Result>(name: string, read: () => Promise<Result>): Promise<Result> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof LlmBatchError) throw error;
    throw usageError(
      'INPUT_DAMAGED_PARQUET',
      `The input ${basename(name)} cannot be read as Parquet: ${(error as Error).message}.`,
      'Fetch or write it again.',
    );
  }
}

/**
 * The file in the form that the reader wants. What was read of a row group is kept until the next group begins, since all
 * its windows are cut from the same column chunks.
 */
class GroupBuffer implements AsyncBuffer {
  readonly byteLength: number;
  readonly #handle: FileHandle;
  readonly #kept = new Map<string, ArrayBuffer>();

  constructor(handle: FileHandle, byteLength: number) {
    this.#handle = handle;
    this.byteLength = byteLength;
  }

  async slice(start: number, end = this.byteLength): Promise<ArrayBuffer> {
    const name = `${start}-${end}`;
    const kept = this.#kept.get(name);
    if (kept !== undefined) return kept;
    const buffer = new ArrayBuffer(end - start);
    for (let filled = 0; filled < buffer.byteLength; ) {
      const part = new Uint8Array(buffer, filled);
      const { bytesRead } = await this.#handle.read(part, 0, part.byteLength, start + filled);
      if (bytesRead === 0) throw new Error('it ends before its data do');
      filled += bytesRead;
    }
    this.#kept.set(name, buffer);
    return buffer;
  }

  forget(): void {
    this.#kept.clear();
  }
}
