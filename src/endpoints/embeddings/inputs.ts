/** What an `input` asks vectors for. */
import type { Json } from '../../core/json.js';

/** Each text, or list of tokens, that a vector is asked for. A bare list of tokens is one. */
export function inputsOf(input: Json | undefined): readonly Json[] {
  if (!Array.isArray(input)) return input === undefined ? [] : [input];
  return typeof input[0] === 'number' ? [input] : input;
}

/** Whether the answer is one vector, and not a list of them. */
export function asksForOne(input: Json | undefined): boolean {
  return !Array.isArray(input) || typeof input[0] === 'number';
}
