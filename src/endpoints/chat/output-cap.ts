/** The cap on an answer's tokens. */
import type { JsonObject } from '../../core/json.js';

/** One is the newer name of the other, and a server refuses both together. */
export const OUTPUT_CAPS = ['max_completion_tokens', 'max_tokens'];

/** The cap that a body states, null when it states none. */
export function outputCapOf(body: JsonObject): number | null {
  const cap = OUTPUT_CAPS.map((name) => body[name]).find((value) => value !== undefined && value !== null);
  return typeof cap === 'number' && cap >= 0 ? cap : null;
}
