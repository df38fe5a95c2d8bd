/** Short hashes of text, for keys and requests. */
import * as crypto from 'node:crypto';

/** Of base64url: 132 bits, beyond any accident. */
const HASH_CHARACTERS = 22;

/** SHA-256 in base64url, cut to what no accident makes equal. */
export function digest(text: string): string {
  return sha256Base64Url(text).slice(0, HASH_CHARACTERS);
}

/** `crypto.hash` (Node 20.12) takes 1.1 µs for 1 KB where a hash object takes 1.7 µs. */
const sha256Base64Url: (text: string) => string =
  typeof crypto.hash === 'function'
    ? (text) => crypto.hash('sha256', text, 'base64url')
    : (text) => crypto.createHash('sha256').update(text).digest('base64url');
