/** CSV and TSV with a header: each row is a document, the columns are its fields and all values are strings. */
import { usageError } from '../core/errors.js';
import { describeFields, showName } from '../core/field.js';
import { theInput } from '../core/input-name.js';
import { notUtf8, tooLong } from './bad-line.js';
import type { ByteInput } from './bytes.js';
import { behind, headOf, pagesOf, type Splitter } from './chunks.js';
import { memberStarts, refuseRepeated } from './columns.js';
import { type CsvRow, CsvRowSplitter, splitValues } from './csv-rows.js';
import type { TableDescription } from './input-description.js';
import { DEFAULT_MAX_LINE_BYTES } from './lines.js';
import type { InputRecord, RecordOptions, RecordSource } from './source.js';
import { decodeUtf8 } from './utf8.js';

/** Delimiters to look for, likeliest first, when a CSV header has no comma. */
const OTHER_DELIMITERS = [';', '\t'];
/** Longer than any real header. A file without line ends is not read any further in search of one. */
const LONGEST_HEADER_BYTES = 1024 * 1024;
const BYTE_ORDER_MARK = Buffer.from('\ufeff');
const QUOTE = 0x22;
const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;

/**
 * Reads the header. A CSV file is separated by commas or, if its header has none, by semicolons or tabs.
 * @throws LlmBatchError (exit 2) for a header that is missing, is not UTF-8, repeats a name or leaves one out
 */
export async function openCsv(input: ByteInput, format: TableDescription['format']): Promise<RecordSource> {
  const chunks = input.chunks[Symbol.asyncIterator]();
  const { head, byteOrderMark } = await readHead(chunks);
  const delimiter = format === 'tsv' ? '\t' : guessDelimiter(head);
  const { columns, columnsLine } = readHeader(head, delimiter, input.name);
  const description: TableDescription = { format, columns, delimiter, byteOrderMark };
  return {
    name: input.name,
    description,
    totalBytes: input.totalBytes,
    bytesRead: input.bytesRead,
    records(options) {
      const reader = new RowReader(input.name, description, columnsLine, options);
      return pagesOf(behind(head, chunks), reader);
    },
    close: input.close,
  };
}

interface Head {
  /** A copy of the first bytes without the byte order mark, at least to the end of the header. */
  readonly head: Buffer;
  readonly byteOrderMark: boolean;
}

async function readHead(chunks: AsyncIterator<Uint8Array>): Promise<Head> {
  const isEnough = (start: Buffer): boolean =>
    start.length >= LONGEST_HEADER_BYTES || endOfFirstRow(start) !== null;
  const head = await headOf(chunks, isEnough);
  const byteOrderMark = head.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  return { head: byteOrderMark ? head.subarray(BYTE_ORDER_MARK.length) : head, byteOrderMark };
}

/** Where the first row ends; null if it goes on. The delimiter need not be known, since quotes come in pairs. */
function endOfFirstRow(head: Buffer): number | null {
  let inQuotes = false;
  let isEmpty = true;
  for (let at = 0; at < head.length; at += 1) {
    const byte = head[at];
    if (byte === QUOTE) inQuotes = !inQuotes;
    const isLineEnd = byte === NEWLINE || byte === CARRIAGE_RETURN;
    if (!isLineEnd) isEmpty = false;
    else if (!inQuotes && !isEmpty) return at;
  }
  return null;
}

function guessDelimiter(head: Buffer): string {
  const text = head.toString('latin1', 0, endOfFirstRow(head) ?? head.length);
  const unquoted = text.replace(/"[^"]*"/g, '');
  if (unquoted.includes(',')) return ',';
  return OTHER_DELIMITERS.find((delimiter) => unquoted.includes(delimiter)) ?? ',';
}

interface Header {
  readonly columns: readonly string[];
  readonly columnsLine: number;
}

function readHeader(head: Buffer, delimiter: string, inputName: string): Header {
  const splitter = new CsvRowSplitter({ delimiter, maxRowBytes: LONGEST_HEADER_BYTES });
  const row = [...splitter.push(head), ...splitter.end()].find(({ bytes }) => !isBlank(bytes, delimiter));
  if (row === undefined || row.bytes === null) {
    throw usageError(
      row === undefined ? 'INPUT_EMPTY' : 'INPUT_HEADER',
      `${theInput(inputName)} has ${row === undefined ? 'only blank lines' : `no header: its first row is over ${LONGEST_HEADER_BYTES} bytes long`}.`,
      'Put the names of the columns into the first row.',
    );
  }
  const text = decodeUtf8(row.bytes);
  if (text === null) {
    throw usageError(
      'INPUT_NOT_UTF8',
      `The header of ${inputName} is not valid UTF-8.`,
      `Save it as UTF-8, e.g. iconv -f windows-1252 -t utf-8 FILE > new.csv`,
    );
  }
  const columns = splitValues(text, delimiter, row.hasQuotedValue);
  if (typeof columns === 'number') {
    throw usageError(
      'INPUT_HEADER',
      `Column ${columns} of the header of ${inputName} goes on behind its closing quote.`,
      'Write a quote inside a quoted name twice.',
    );
  }
  // Those without a name get one each.
  refuseRepeated(
    columns.filter((name) => name !== ''),
    `The header of ${inputName} names`,
  );
  return { columns: named(columns), columnsLine: row.line };
}

/** Some programs leave their index without a name: it is called by its place, `column_1`. */
function named(columns: readonly string[]): string[] {
  return columns.map((name, index) => {
    let own = name === '' ? `column_${index + 1}` : name;
    while (name === '' && columns.includes(own)) own += '_';
    return own;
  });
}

class RowReader implements Splitter {
  readonly #inputName: string;
  readonly #description: TableDescription;
  readonly #columnsLine: number;
  readonly #maxRowBytes: number;
  readonly #splitter: CsvRowSplitter;
  readonly #memberStarts: readonly string[];
  #hasRows = false;

  constructor(
    inputName: string,
    description: TableDescription,
    columnsLine: number,
    { maxLineBytes = DEFAULT_MAX_LINE_BYTES }: RecordOptions,
  ) {
    this.#inputName = inputName;
    this.#description = description;
    this.#columnsLine = columnsLine;
    this.#maxRowBytes = maxLineBytes;
    this.#splitter = new CsvRowSplitter({ delimiter: description.delimiter, maxRowBytes: maxLineBytes });
    this.#memberStarts = memberStarts(description.columns);
  }

  push(chunk: Buffer): InputRecord[] {
    return this.#recordsOf(this.#splitter.push(chunk));
  }

  end(): InputRecord[] {
    const rows = this.#splitter.end();
    const line = this.#splitter.unclosedQuoteLine;
    if (line !== null) {
      throw usageError(
        'INPUT_QUOTE_OPEN',
        `A quote that opens on line ${line} of ${this.#inputName} is never closed, so no row after it can be told.`,
        'Close it, or write a quote that is part of the text twice and the value in quotes.',
      );
    }
    const records = this.#recordsOf(rows);
    if (this.#hasRows) return records;
    throw usageError(
      'INPUT_EMPTY',
      `${theInput(this.#inputName)} has a header and no rows.`,
      'Check the path; the first row is taken for the names of the columns.',
    );
  }

  #recordsOf(rows: readonly CsvRow[]): InputRecord[] {
    const { delimiter } = this.#description;
    const kept = rows.filter(({ line, bytes }) => line > this.#columnsLine && !isBlank(bytes, delimiter));
    if (kept.length > 0) this.#hasRows = true;
    return kept.map((row) => this.#recordOf(row));
  }

  #recordOf(row: CsvRow): InputRecord {
    const { line, bytes } = row;
    if (bytes === null) return { line, reason: tooLong(row.byteLength, this.#maxRowBytes), text: null };
    const text = decodeUtf8(bytes);
    if (text === null) return { line, reason: notUtf8(bytes, 'row'), text: bytes.toString('utf8') };
    const { columns, delimiter } = this.#description;
    const values = splitValues(text, delimiter, row.hasQuotedValue);
    if (typeof values === 'number') {
      const field = columns[values - 1];
      const what = field === undefined ? `value ${values}` : showName(field);
      const reason = `${what} goes on behind its closing quote; write a quote inside a quoted value twice${spanOf(row)}`;
      return { line, reason, ...(field === undefined ? {} : { field }), text };
    }
    if (values.length !== columns.length) {
      return { line, reason: `${countOf(values.length, columns)}${spanOf(row)}`, text };
    }
    return { line, text: this.#documentOf(values) };
  }

  #documentOf(values: readonly string[]): string {
    let json = '';
    for (let index = 0; index < values.length; index += 1) {
      json += (this.#memberStarts[index] as string) + JSON.stringify(values[index]);
    }
    return `${json}}`;
  }
}

function countOf(values: number, columns: readonly string[]): string {
  const found = values === 1 ? '1 value' : `${values} values`;
  const expected = columns.length === 1 ? '1 column' : `${columns.length} columns`;
  return `${found}, where the header has ${expected}: ${describeFields(columns)}`;
}

/** A row that spans many lines often has a quote that was not meant to open a value. */
function spanOf({ line, lastLine }: CsvRow): string {
  return line === lastLine ? '' : ` (the row goes on to line ${lastLine})`;
}

/** White space alone is not a row. Tabs are not white space where they are the delimiter. */
function isBlank(bytes: Buffer | null, delimiter: string): boolean {
  if (bytes === null || (bytes[0] ?? 0) > SPACE) return false;
  return (delimiter === '\t' ? /^ *$/ : /^[ \t]*$/).test(bytes.toString('latin1'));
}
