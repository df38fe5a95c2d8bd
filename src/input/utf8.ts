/** Bytes to text, and the place where bytes stop being text. */
import { isAscii, isUtf8 } from 'node:buffer';

/** The text; null if it is not UTF-8. Plain ASCII becomes a string of one byte per character, cheaper to parse and hash. */
export function decodeUtf8(bytes: Buffer): string | null {
  if (isAscii(bytes)) return bytes.toString('latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : null;
}

const SEARCH_BLOCK_BYTES = 4096;

/** The offset of the first byte that is not valid UTF-8. @param bytes invalid UTF-8 */
export function firstInvalidByte(bytes: Buffer): number {
  let offset = 0;
  for (;;) {
    let end = Math.min(offset + SEARCH_BLOCK_BYTES, bytes.length);
    while (end > offset && isContinuation(bytes[end])) end -= 1;
    if (end === offset || !isUtf8(bytes.subarray(offset, end))) break;
    offset = end;
  }
  for (;;) {
    let end = offset + 1;
    while (isContinuation(bytes[end])) end += 1;
    if (!isUtf8(bytes.subarray(offset, end))) return offset;
    offset = end;
  }
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
