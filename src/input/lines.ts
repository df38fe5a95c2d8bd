/**
 * Bytes to lines. Only `\n` ends a line, since JSON strings may hold U+2028 and U+2029. Most input is plain ASCII; a region
 * of it is decoded at once and cut as text. Elsewhere each line is decoded on its own, so that ASCII lines among others
 * stay strings of one byte per character, which are cheaper to parse and to hash.
 */
import { constants, isAscii } from 'node:buffer';
import { notUtf8, tooLong } from './bad-line.js';
import { pagesOf, type Splitter } from './chunks.js';
import type { InputRecord, RecordOptions } from './source.js';
import { decodeUtf8 } from './utf8.js';

/** A longer line is reported and skipped, and nothing of it is kept. */
export const DEFAULT_MAX_LINE_BYTES = 32 * 1024 * 1024;

/**
 * Splits a stream of bytes into lines and yields a page for each chunk that ended at least one. Blank lines are left out
 * but counted, a byte order mark at the start and a `\r` before `\n` are dropped, and the last line needs no `\n`. Memory
 * stays within about `maxLineBytes` and one chunk, whatever comes. The source may reuse a chunk once the next is asked for.
 */
export function readLines(
  chunks: AsyncIterable<Uint8Array>,
  { maxLineBytes = DEFAULT_MAX_LINE_BYTES }: RecordOptions = {},
): AsyncGenerator<InputRecord[]> {
  return pagesOf(chunks, new LineSplitter(maxLineBytes));
}

/** V8 treats longer strings as large objects, which cost more to make and to free. */
const REGION_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const BYTE_ORDER_MARK = '\ufeff';
const BLANK = /^[ \t\r]*$/;

class LineSplitter implements Splitter {
  readonly #maxLineBytes: number;
  #line = 0;
  /** The parts so far of a line that has not ended yet. */
  #carried: Buffer[] = [];
  #carriedBytes = 0;
  #carriedEndsInReturn = false;
  #page: InputRecord[] = [];

  constructor(maxLineBytes: number) {
    // V8 has no longer strings, whatever the user allows.
    this.#maxLineBytes = Math.min(maxLineBytes, constants.MAX_STRING_LENGTH);
  }

  push(chunk: Buffer): InputRecord[] {
    let start = 0;
    if (this.#carriedBytes > 0) {
      const end = chunk.indexOf(NEWLINE);
      if (end === -1) {
        this.#carry(chunk);
        return [];
      }
      this.#carry(chunk.subarray(0, end));
      this.#finishCarried();
      start = end + 1;
    }
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    if (end > start) {
      this.#splitRegion(chunk.subarray(start, end));
      start = end;
    }
    if (start < chunk.length) this.#carry(chunk.subarray(start));
    return this.#takePage();
  }

  end(): InputRecord[] {
    if (this.#carriedBytes > 0) this.#finishCarried();
    return this.#takePage();
  }

  #takePage(): InputRecord[] {
    const page = this.#page;
    this.#page = [];
    return page;
  }

  #carry(part: Buffer): void {
    if (part.length === 0) return;
    this.#carriedBytes += part.length;
    this.#carriedEndsInReturn = part[part.length - 1] === CARRIAGE_RETURN;
    // One byte more than the cap is kept: it may turn out to be the `\r` of the line end.
    if (this.#carriedBytes > this.#maxLineBytes + 1) this.#carried = [];
    // A copy, because the source may reuse its buffer.
    else this.#carried.push(Buffer.from(part));
  }

  #finishCarried(): void {
    const bytes = this.#carriedBytes;
    if (bytes > this.#maxLineBytes + 1) {
      this.#addTooLong(this.#carriedEndsInReturn ? bytes - 1 : bytes);
    } else {
      this.#splitLineByLine(Buffer.concat(this.#carried));
    }
    this.#carried = [];
    this.#carriedBytes = 0;
  }

  /** @param region ends with `\n` */
  #splitRegion(region: Buffer): void {
    let start = 0;
    while (start < region.length) {
      const lastNewline = region.lastIndexOf(NEWLINE, start + REGION_BYTES - 1);
      const end = (lastNewline >= start ? lastNewline : region.indexOf(NEWLINE, start)) + 1;
      const part = region.subarray(start, end);
      if (part.length - 1 <= this.#maxLineBytes && isAscii(part)) this.#splitText(part.toString('latin1'));
      else this.#splitLineByLine(part);
      start = end;
    }
  }

  /** @param text ends with `\n` */
  #splitText(text: string): void {
    let start = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      const contentEnd = end > start && text.charCodeAt(end - 1) === CARRIAGE_RETURN ? end - 1 : end;
      this.#addText(text.slice(start, contentEnd));
      start = end + 1;
    }
  }

  /** For a region in which a line is not ASCII, is invalid or may be too long. */
  #splitLineByLine(region: Buffer): void {
    let start = 0;
    while (start < region.length) {
      const newline = region.indexOf(NEWLINE, start);
      const lineEnd = newline === -1 ? region.length : newline;
      const endsInReturn = lineEnd > start && region[lineEnd - 1] === CARRIAGE_RETURN;
      const bytes = region.subarray(start, endsInReturn ? lineEnd - 1 : lineEnd);
      const isTooLong = bytes.length > this.#maxLineBytes;
      const text = isTooLong ? null : decodeUtf8(bytes);
      if (isTooLong) this.#addTooLong(bytes.length);
      else if (text === null) this.#addBad(notUtf8(bytes, 'line'), bytes.toString('utf8'));
      else this.#addText(text);
      start = lineEnd + 1;
    }
  }

  #addText(text: string): void {
    this.#line += 1;
    const line = this.#line;
    const content = line === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
    if (content.charCodeAt(0) > SPACE || !BLANK.test(content)) this.#page.push({ line, text: content });
  }

  #addTooLong(bytes: number): void {
    this.#addBad(tooLong(bytes, this.#maxLineBytes), null);
  }

  #addBad(reason: string, text: string | null): void {
    this.#line += 1;
    this.#page.push({ line: this.#line, reason, text });
  }
}
