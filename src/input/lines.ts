/**
 * Bytes to lines. Only `\n` ends a line, since JSON strings may hold U+2028 and U+2029. Most input is plain ASCII; a region
 * of it is decoded at once and cut as text. Elsewhere each line is decoded on its own, so that ASCII lines among others
 * stay strings of one byte per character, which are cheaper to parse and to hash.
 */
import { constants, isAscii } from 'node:buffer';
import type { InputRecord } from './source.js';
import { decodeUtf8, firstInvalidByte } from './utf8.js';

/** A longer line is reported and skipped, and nothing of it is kept. */
export const DEFAULT_MAX_LINE_BYTES = 32 * 1024 * 1024;

/** Blank lines are counted in the line numbers. The text of a good line has no line end. */
export type InputLine = InputRecord;

export interface LineOptions {
  /** Bytes of one line without its end. */
  readonly maxLineBytes?: number;
}

/**
 * Splits a stream of bytes into lines and yields a page for each chunk that ended at least one. Blank lines are left out
 * but counted, a byte order mark at the start and a `\r` before `\n` are dropped, and the last line needs no `\n`. Memory
 * stays within about `maxLineBytes` and one chunk, whatever comes. The source may reuse a chunk once the next is asked for.
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  options: LineOptions = {},
): AsyncGenerator<InputLine[]> {
  const splitter = new LineSplitter(options.maxLineBytes ?? DEFAULT_MAX_LINE_BYTES);
  for await (const chunk of chunks) {
    const page = splitter.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    if (page.length > 0) yield page;
  }
  const page = splitter.end();
  if (page.length > 0) yield page;
}

/** V8 treats longer strings as large objects, which cost more to make and to free. */
const REGION_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const BYTE_ORDER_MARK = '\ufeff';
const BLANK = /^[ \t\r]*$/;

class LineSplitter {
  readonly #maxLineBytes: number;
  #line = 0;
  /** The parts so far of a line that has not ended yet. */
  #carried: Buffer[] = [];
  #carriedBytes = 0;
  #carriedEndsInReturn = false;
  #page: InputLine[] = [];

  constructor(maxLineBytes: number) {
    // V8 has no longer strings, whatever the user allows.
    this.#maxLineBytes = Math.min(maxLineBytes, constants.MAX_STRING_LENGTH);
  }

  push(chunk: Buffer): InputLine[] {
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

  end(): InputLine[] {
    if (this.#carriedBytes > 0) this.#finishCarried();
    return this.#takePage();
  }

  #takePage(): InputLine[] {
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
      this.#line += 1;
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
      if (bytes.length > this.#maxLineBytes) {
        this.#line += 1;
        this.#addTooLong(bytes.length);
      } else {
        const text = decodeUtf8(bytes);
        if (text !== null) this.#addText(text);
        else this.#addInvalid(bytes);
      }
      start = lineEnd + 1;
    }
  }

  #addText(text: string): void {
    this.#line += 1;
    const line = this.#line;
    const content = line === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
    if (content.charCodeAt(0) > SPACE || !BLANK.test(content)) this.#page.push({ line, text: content });
  }

  #addInvalid(bytes: Buffer): void {
    this.#line += 1;
    this.#page.push({
      line: this.#line,
      reason: `not valid UTF-8 at byte ${firstInvalidByte(bytes) + 1} of the line`,
      text: bytes.toString('utf8'),
    });
  }

  #addTooLong(bytes: number): void {
    this.#page.push({
      line: this.#line,
      reason: `${bytes} bytes long, over the cap of ${this.#maxLineBytes}`,
      text: null,
    });
  }
}
