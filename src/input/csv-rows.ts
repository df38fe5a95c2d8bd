/**
 * Bytes to the rows of a table of delimited text (RFC 4180, and what is found in practice): a quote opens a value only
 * where the value begins, so that `5" pipe` is text, and a quoted value may hold delimiters, quotes written twice
 * and line ends. A row ends at `\n`, `\r\n` or `\r`.
 *
 * csv-parse 7 was tried in its place. With `skip_records_with_error` a row over `max_record_size` takes the rest of its
 * chunk with it, good rows too, and a row with one stray quote is told twice or more, by the line it ends on. It reads
 * 12 to 18 MB per second of processor time (100 MB, a third of the rows quoted), and this 60, in less memory.
 */
import { constants } from 'node:buffer';

/** Bytes are good until the next chunk is pushed. */
export interface CsvRow {
  /** 1-based line of the file on which the row begins. */
  readonly line: number;
  /** On which it ends: a later one if a quoted value holds line ends. */
  readonly lastLine: number;
  readonly byteLength: number;
  /** Without the line end; null for a row longer than the cap. */
  readonly bytes: Buffer | null;
  /** False: no value is quoted, so every delimiter separates two values. */
  readonly hasQuotedValue: boolean;
}

export interface CsvRowOptions {
  /** One ASCII character. */
  readonly delimiter: string;
  readonly maxRowBytes: number;
}

const QUOTE = 0x22;
const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** States of the scan. */
const AT_VALUE_START = 0;
const IN_PLAIN_VALUE = 1;
const IN_QUOTES = 2;
/** Just past a quote inside a quoted value: either its end, or the first of two. */
const AFTER_QUOTE = 3;
/** Just past the `\r` that ended a row: a `\n` here belongs to the same line end. */
const AFTER_RETURN = 4;

export class CsvRowSplitter {
  readonly #delimiter: number;
  readonly #maxRowBytes: number;
  #state: number = AT_VALUE_START;
  #rows: CsvRow[] = [];
  #line = 1;
  /** Line ends within the row so far. */
  #innerLines = 0;
  #hasQuotedValue = false;
  #openQuoteLine = 0;
  /** The parts of the current row that came in earlier chunks. */
  #carried: Buffer[] = [];
  #carriedBytes = 0;

  constructor({ delimiter, maxRowBytes }: CsvRowOptions) {
    this.#delimiter = delimiter.charCodeAt(0);
    this.#maxRowBytes = Math.min(maxRowBytes, constants.MAX_STRING_LENGTH);
  }

  /** The rows that end in this chunk. An empty line is not a row, but counts as a line. */
  push(chunk: Buffer): CsvRow[] {
    let rowStart = 0;
    let at = 0;
    while (at < chunk.length) {
      switch (this.#state) {
        case AFTER_RETURN:
          if (chunk[at] === NEWLINE) at += 1;
          rowStart = at;
          this.#state = AT_VALUE_START;
          break;
        case IN_QUOTES: {
          const quote = chunk.indexOf(QUOTE, at);
          const end = quote === -1 ? chunk.length : quote;
          this.#innerLines += countLines(chunk, at, end);
          if (quote !== -1) this.#state = AFTER_QUOTE;
          at = quote === -1 ? end : end + 1;
          break;
        }
        case AFTER_QUOTE:
          if (chunk[at] === QUOTE) {
            this.#state = IN_QUOTES;
            at += 1;
          } else {
            this.#state = IN_PLAIN_VALUE;
          }
          break;
        case AT_VALUE_START:
          if (chunk[at] === QUOTE) {
            this.#hasQuotedValue = true;
            this.#openQuoteLine = this.#line + this.#innerLines;
            this.#state = IN_QUOTES;
            at += 1;
            break;
          }
          this.#state = IN_PLAIN_VALUE;
          break;
        default: {
          const end = this.#endOfPlain(chunk, at);
          at = end + 1;
          if (end === chunk.length) break;
          if (chunk[end] === this.#delimiter) {
            this.#state = AT_VALUE_START;
            break;
          }
          this.#finishRow(chunk.subarray(rowStart, end));
          rowStart = at;
          this.#state = chunk[end] === CARRIAGE_RETURN ? AFTER_RETURN : AT_VALUE_START;
        }
      }
    }
    if (rowStart < chunk.length) this.#carry(chunk.subarray(rowStart));
    return this.#takeRows();
  }

  /** The last row, if the input does not end with a line end. */
  end(): CsvRow[] {
    if (this.#carriedBytes > 0) this.#finishRow(Buffer.alloc(0));
    return this.#takeRows();
  }

  /** After `end`: the line of a quote that was never closed, or null. */
  get unclosedQuoteLine(): number | null {
    return this.#state === IN_QUOTES ? this.#openQuoteLine : null;
  }

  #endOfPlain(chunk: Buffer, from: number): number {
    const delimiter = this.#delimiter;
    let at = from;
    while (at < chunk.length) {
      const byte = chunk[at];
      if (byte === delimiter || byte === NEWLINE || byte === CARRIAGE_RETURN) break;
      at += 1;
    }
    return at;
  }

  #carry(part: Buffer): void {
    this.#carriedBytes += part.length;
    if (this.#carriedBytes > this.#maxRowBytes) this.#carried = [];
    // A copy, because the source may reuse its buffer.
    else this.#carried.push(Buffer.from(part));
  }

  #finishRow(tail: Buffer): void {
    const byteLength = this.#carriedBytes + tail.length;
    const line = this.#line;
    const lastLine = line + this.#innerLines;
    if (byteLength > 0) {
      const isTooLong = byteLength > this.#maxRowBytes;
      const bytes = isTooLong
        ? null
        : this.#carriedBytes === 0
          ? tail
          : Buffer.concat([...this.#carried, tail]);
      this.#rows.push({ line, lastLine, byteLength, bytes, hasQuotedValue: this.#hasQuotedValue });
    }
    this.#line = lastLine + 1;
    this.#innerLines = 0;
    this.#hasQuotedValue = false;
    this.#carried = [];
    this.#carriedBytes = 0;
  }

  #takeRows(): CsvRow[] {
    const rows = this.#rows;
    this.#rows = [];
    return rows;
  }
}

function countLines(chunk: Buffer, from: number, to: number): number {
  const part = chunk.subarray(from, to);
  let lines = 0;
  for (let at = part.indexOf(NEWLINE); at !== -1; at = part.indexOf(NEWLINE, at + 1)) lines += 1;
  return lines;
}

/** @returns the values of a row, or the 1-based number of the first value with broken quotes */
export function splitValues(text: string, delimiter: string, hasQuotedValue: boolean): string[] | number {
  if (!hasQuotedValue) return text.split(delimiter);
  const values: string[] = [];
  let at = 0;
  for (;;) {
    if (text[at] === '"') {
      const end = closingQuote(text, at);
      values.push(text.slice(at + 1, end).replaceAll('""', '"'));
      at = end + 1;
      while (text[at] === ' ' || (text[at] === '\t' && delimiter !== '\t')) at += 1;
      if (at < text.length && text[at] !== delimiter) return values.length;
    } else {
      const next = text.indexOf(delimiter, at);
      const end = next === -1 ? text.length : next;
      values.push(text.slice(at, end));
      at = end;
    }
    if (at >= text.length) return values;
    at += 1;
  }
}

/** The quote that closes the one at `open`. It is there, since the splitter saw it, unless the file ended first. */
function closingQuote(text: string, open: number): number {
  let quote = text.indexOf('"', open + 1);
  while (quote !== -1 && text[quote + 1] === '"') quote = text.indexOf('"', quote + 2);
  return quote === -1 ? text.length : quote;
}
