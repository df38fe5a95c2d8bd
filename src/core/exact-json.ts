/**
 * JSON that keeps whole numbers exact. `JSON.parse` rounds integers beyond 2^53, which would turn the ids of
 * many databases and social networks into the ids of other rows.
 */

import { DEEPEST_NESTING } from './json.js';
import { endOfString } from './json-text.js';

/** As `JSON.parse` gives it, but an integer that a double cannot hold is a `bigint`. */
export type ExactJson = null | boolean | number | bigint | string | ExactJson[] | ExactObject;
export type ExactObject = { [key: string]: ExactJson };

const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const INTEGER = /^-?\d+$/;

/**
 * Marks digits that wait to become a bigint. A lone surrogate can stand in no well-formed string, so no string of
 * a document can be mistaken for one (documents that escape lone surrogates are refused: lone-surrogate.ts).
 */
const MARK = '\ud800';
/** Not the mark alone: it is also the first half of U+10000 and those after it. */
const MARKED = /^\ud800-?\d+$/;
const MARKED_IN_JSON = /"\\ud800(-?\d+)"/g;

export type JsonTraits = 'plain' | 'unusual_numbers' | 'too_deep';

/**
 * What `JSON.parse` has left to be done: `unusual_numbers` where a number is beyond 2^53 (a rounded integer still is),
 * `too_deep` where recursion over the value would not be safe.
 */
export function surveyJson(value: ExactJson, depth = 0): JsonTraits {
  if (typeof value === 'number')
    return Math.abs(value) > Number.MAX_SAFE_INTEGER ? 'unusual_numbers' : 'plain';
  if (typeof value !== 'object' || value === null) return 'plain';
  if (depth >= DEEPEST_NESTING) return 'too_deep';
  let traits: JsonTraits = 'plain';
  for (const member of Array.isArray(value) ? value : Object.values(value)) {
    const found = surveyJson(member, depth + 1);
    if (found === 'too_deep') return found;
    if (found !== 'plain') traits = found;
  }
  return traits;
}

/** JSON text that is well-formed, whole numbers with all their digits. */
export function parseExact(text: string): ExactJson {
  const rounded = JSON.parse(text) as ExactJson;
  return surveyJson(rounded) === 'unusual_numbers' ? parseExactJson(text) : rounded;
}

/** Parses again what `unusual_numbers` was found in. @param text JSON whose strings are well-formed */
export function parseExactJson(text: string): ExactJson {
  const marked = replaceNumbers(text, (token) =>
    INTEGER.test(token) && !Number.isSafeInteger(Number(token)) ? `"${MARK}${token}"` : token,
  );
  return unmark(JSON.parse(marked) as ExactJson);
}

/** Steps over strings with `indexOf`: one regular expression for both runs out of stack on a long string. */
function replaceNumbers(json: string, replace: (token: string) => string): string {
  let result = '';
  let outside = 0;
  for (;;) {
    const open = json.indexOf('"', outside);
    if (open === -1) return result + json.slice(outside).replace(NUMBER, replace);
    const end = endOfString(json, open);
    result += json.slice(outside, open).replace(NUMBER, replace) + json.slice(open, end);
    outside = end;
  }
}

function unmark(value: ExactJson): ExactJson {
  if (typeof value === 'string') return MARKED.test(value) ? BigInt(value.slice(1)) : value;
  if (Array.isArray(value)) return value.map(unmark);
  if (typeof value !== 'object' || value === null) return value;
  // fromEntries defines properties, so that a field called __proto__ stays a field.
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, unmark(member)]));
}

/** JSON text of a value, integers with all their digits. */
export function stringifyExact(value: ExactJson): string {
  if (typeof value === 'bigint') return value.toString();
  const text = JSON.stringify(value, (_name, member: unknown) =>
    typeof member === 'bigint' ? `${MARK}${member}` : member,
  );
  return text.replace(MARKED_IN_JSON, '$1');
}

/**
 * Text that is the same for the same content, however its fields are ordered, spaced and escaped, and another for any
 * other content; for hashing. Strings stand as they are behind their length: escaping them as JSON would take
 * longer than to hash them.
 * @param omit a top-level field to leave out
 */
export function canonicalText(value: ExactJson, omit?: string): string {
  return contentText(value, true, omit);
}

/** As `canonicalText`, but other text for another order of fields. */
export function orderedText(value: ExactJson): string {
  return contentText(value, false);
}

function contentText(value: ExactJson, sorted: boolean, omit?: string): string {
  if (typeof value === 'string') return `"${value.length}:${value}`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (Array.isArray(value)) return `[${value.map((member) => contentText(member, sorted)).join(',')}]`;
  const names = Object.keys(value);
  if (sorted) names.sort();
  let text = '{';
  for (const name of names) {
    if (name === omit) continue;
    text += `${name.length}:${name}=${contentText(value[name] as ExactJson, sorted)},`;
  }
  return `${text}}`;
}
