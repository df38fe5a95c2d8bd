/** Input lines that cannot become tasks, and why. */
import type { LineProblem } from '../core/line-problem.js';
import { firstInvalidByte } from './utf8.js';

export interface BadLine extends LineProblem {
  /** 1-based. */
  readonly line: number;
  /** The line as it was, with U+FFFD for invalid bytes; null if it was too long to keep. */
  readonly text: string | null;
  /** The file's path, if each document is a file of its own. */
  readonly place?: string;
}

/** @param bytes of the line, or of what stands for one */
export function tooLong(bytes: number, mostBytes: number): string {
  return `${bytes} bytes long, over the cap of ${mostBytes}`;
}

/** @param bytes invalid UTF-8 @param of what they are, e.g. `line` */
export function notUtf8(bytes: Buffer, of: string): string {
  return `not valid UTF-8 at byte ${firstInvalidByte(bytes) + 1} of the ${of}`;
}

/** A row of the document's JSON text, unless that is too long. */
export function cappedRow(
  line: number,
  text: string,
  mostBytes: number,
): BadLine | { readonly line: number; readonly text: string } {
  const bytes = text.length * 3 > mostBytes ? Buffer.byteLength(text) : 0;
  return bytes > mostBytes ? { line, reason: tooLong(bytes, mostBytes), text: null } : { line, text };
}
