/** A JSON value as `JSON.parse` returns it. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type JsonObject = { [key: string]: Json };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object that a text is; null for any other JSON, and for what is none. */
export function parseJsonObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Far beyond any real document or answer, far below what makes recursion run out of stack. */
export const DEEPEST_NESTING = 500;

/** Of one text. In memory a value takes up to thirty times its two bytes; a long answer's logprobs have 3 million. */
const MOST_VALUES = 5_000_000;

/** JSON whose shape alone would do harm, whatever is in it. */
export class UnusualShape extends Error {}

/**
 * `JSON.parse` for text from outside.
 * @throws UnusualShape for what is nested too deeply or has too many values, SyntaxError for what is no JSON
 */
export function parseForeignJson(text: string): Json {
  refuseShape(text);
  return JSON.parse(text) as Json;
}

function refuseShape(text: string): void {
  // Below this no text can be so deep: each level is opened and closed.
  if (text.length <= 2 * DEEPEST_NESTING) return;
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case 0x22:
        at = endOfString(text, at);
        break;
      case 0x5b:
      case 0x7b:
        depth += 1;
        if (depth > DEEPEST_NESTING)
          throw new UnusualShape(`it is nested over ${DEEPEST_NESTING} levels deep`);
        values += 1;
        break;
      case 0x5d:
      case 0x7d:
        depth -= 1;
        break;
      case 0x2c:
        values += 1;
    }
    if (values > MOST_VALUES) throw new UnusualShape(`it holds over ${MOST_VALUES / 1e6} million values`);
  }
}

/** @param open where the string's first quote stands @returns where its last one does, or the end of the text */
function endOfString(text: string, open: number): number {
  for (let close = text.indexOf('"', open + 1); close !== -1; close = text.indexOf('"', close + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(close - 1 - backslashes) === 0x5c) backslashes += 1;
    if (backslashes % 2 === 0) return close;
  }
  return text.length;
}
