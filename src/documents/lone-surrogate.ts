/**
 * Lone surrogates: half of a UTF-16 pair, which is no character. JSON can smuggle them in as `\ud800`; UTF-8 has
 * no way to write them, so a store or a server would change or refuse the text.
 */
import type { ExactJson } from '../core/exact-json.js';
import { findField } from '../core/field.js';

const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/;
/** With the `u` flag a well-formed pair is one character and does not match. */
const LONE_SURROGATE = /[\ud800-\udfff]/u;

/** Whether JSON text that came from valid UTF-8 can hold a lone surrogate at all; a cheap first look. */
export function mayHoldLoneSurrogate(json: string): boolean {
  return json.includes('\\u') && ESCAPED_SURROGATE.test(json);
}

/** Dotted path of the first field whose value or name holds one, null when none does. */
export function findLoneSurrogate(value: ExactJson): string | null {
  return findField(
    value,
    (member, name) =>
      (typeof member === 'string' && LONE_SURROGATE.test(member)) || LONE_SURROGATE.test(name),
  );
}
