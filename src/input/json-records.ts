/**
 * JSON that is no JSON Lines: a list of documents, or documents that are written over several lines. A document is told by
 * its brackets, so that the file is never held whole and what is broken in one costs no other.
 */
import { constants } from 'node:buffer';
import { notUtf8, tooLong } from './bad-line.js';
import { pagesOf, type Splitter } from './chunks.js';
import { DEFAULT_MAX_LINE_BYTES } from './lines.js';
import type { InputRecord, RecordOptions } from './source.js';
import { decodeUtf8 } from './utf8.js';

const NEWLINE = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING = new Set([0x7b, 0x5b]);
const CLOSING = new Set([0x7d, 0x5d]);
const [LIST_START, LIST_END] = [0x5b, 0x5d];
/** Tab, carriage return, space, and the bytes of a byte order mark. */
const BLANK = new Set([0x09, 0x0d, 0x20, 0xef, 0xbb, 0xbf]);

/** Whether a file that begins so is read by its brackets rather than by its lines. @param head its first line at least */
export function isJsonOverLines(head: string): boolean {
  const text = head.trimStart();
  if (text.startsWith('[')) return true;
  const end = text.indexOf('\n');
  return text.startsWith('{') && end >= 0 && /[{[,:]$/.test(text.slice(0, end).trimEnd());
}

/**
 * Yields a page for each chunk in which a document ended. A document's line is the one on which it begins, or, where several
 * begin on one, the next number that is free. Its text is one line.
 */
export function readJsonRecords(
  chunks: AsyncIterable<Uint8Array>,
  { maxLineBytes = DEFAULT_MAX_LINE_BYTES }: RecordOptions,
): AsyncGenerator<InputRecord[]> {
  return pagesOf(chunks, new JsonSplitter(Math.min(maxLineBytes, constants.MAX_STRING_LENGTH)));
}

class JsonSplitter implements Splitter {
  readonly #maxBytes: number;
  #page: InputRecord[] = [];
  #line = 1;
  #lastRecordLine = 0;
  /** Where the list that is open began; null outside of one. */
  #listLine: number | null = null;
  /** Where the document that is open began; null between documents. */
  #startLine: number | null = null;
  /** Brackets that are open in it; 0 in what is neither an object nor a list. */
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** A line end inside a string is a mistake that must not be mended on the way. */
  #hasBrokenString = false;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(chunk: Buffer): InputRecord[] {
    let start = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] as number;
      if (this.#startLine === null) {
        if (this.#isBetween(byte)) {
          if (byte === NEWLINE) this.#line += 1;
          continue;
        }
        this.#startLine = this.#line;
        start = at;
      }
      if (at + this.#bytes > start && this.#isEndBefore(byte)) {
        this.#finish(chunk.subarray(start, at));
        // What ends a bare value is looked at again, as what stands between documents.
        at -= 1;
        continue;
      }
      if (byte === NEWLINE) this.#line += 1;
      if (this.#step(byte)) this.#finish(chunk.subarray(start, at + 1));
    }
    if (this.#startLine !== null) this.#keep(chunk.subarray(start));
    return this.#takePage();
  }

  end(): InputRecord[] {
    if (this.#startLine !== null && this.#depth === 0 && !this.#isInString) this.#finish(Buffer.alloc(0));
    if (this.#startLine !== null) {
      this.#add(
        this.#startLine,
        'the file ends before this document does: it is cut off, or a bracket is missing',
      );
    } else if (this.#listLine !== null) {
      this.#add(this.#line, `the file ends before the list does that begins on line ${this.#listLine}`);
    }
    return this.#takePage();
  }

  /** Between documents. @returns false where one begins */
  #isBetween(byte: number): boolean {
    if (byte === LIST_START && this.#listLine === null) this.#listLine = this.#line;
    else if (byte === LIST_END && this.#listLine !== null) this.#listLine = null;
    else return byte === NEWLINE || byte === COMMA || BLANK.has(byte);
    return true;
  }

  /** Of what is neither an object nor a list, which has no bracket to end with. */
  #isEndBefore(byte: number): boolean {
    if (this.#depth > 0 || this.#isInString) return false;
    return byte === NEWLINE || byte === COMMA || byte === LIST_END;
  }

  /** @returns whether the document ends with this byte */
  #step(byte: number): boolean {
    if (this.#isInString) {
      if (byte === NEWLINE) this.#hasBrokenString = true;
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) this.#isInString = false;
      return false;
    }
    if (byte === QUOTE) this.#isInString = true;
    else if (OPENING.has(byte)) this.#depth += 1;
    else if (CLOSING.has(byte) && this.#depth > 0) {
      this.#depth -= 1;
      return this.#depth === 0;
    }
    return false;
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#maxBytes) this.#parts = [];
    // A copy, because the source may reuse its buffer.
    else this.#parts.push(Buffer.from(part));
  }

  #finish(last: Buffer): void {
    this.#keep(last);
    const line = this.#startLine ?? this.#line;
    const bytes = Buffer.concat(this.#parts);
    const text = decodeUtf8(bytes);
    if (this.#bytes > this.#maxBytes) {
      this.#add(line, tooLong(this.#bytes, this.#maxBytes));
    } else if (text === null) {
      this.#add(line, notUtf8(bytes, 'document'));
    } else {
      const record = { line: this.#nextLine(line), text: this.#hasBrokenString ? text : onOneLine(text) };
      this.#page.push(record);
    }
    this.#startLine = null;
    this.#depth = 0;
    this.#isInString = false;
    this.#hasBrokenString = false;
    this.#parts = [];
    this.#bytes = 0;
  }

  #add(line: number, reason: string): void {
    this.#page.push({ line: this.#nextLine(line), reason, text: null });
  }

  #nextLine(line: number): number {
    this.#lastRecordLine = Math.max(line, this.#lastRecordLine + 1);
    return this.#lastRecordLine;
  }

  #takePage(): InputRecord[] {
    const page = this.#page;
    this.#page = [];
    return page;
  }
}

/** Outside of strings, where all its line ends are, JSON takes a blank for any of them. */
function onOneLine(text: string): string {
  if (!text.includes('\n')) return text;
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ');
}
