/**
 * JSON that keeps whole numbers exact. `JSON.parse` rounds integers beyond 2^53, which would turn the ids of
 * many databases and social networks into the ids of other rows.
 */

/** As `JSON.parse` gives it, but an integer that a double can not hold is a `bigint`. */
export type ExactJson = null | boolean | number | bigint | string | ExactJson[] | ExactObject;
export type ExactObject = { [key: string]: ExactJson };

export interface ExactParse {
  readonly value: ExactJson;
  /** True when `value` holds a bigint or an infinite number somewhere; false for nearly every line. */
  readonly unusualNumbers: boolean;
}

const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const INTEGER = /^-?\d+$/;

/**
 * Marks digits that wait to become a bigint. A lone surrogate can stand in no well-formed string, so no string of
 * a document can be mistaken for one (documents that escape lone surrogates are refused: lone-surrogate.ts).
 */
const MARK = '\ud800';
const MARKED_IN_JSON = /"\\ud800(-?\d+)"/g;

/**
 * Parses JSON text whose strings are well-formed.
 * @throws SyntaxError as `JSON.parse` does
 */
export function parseExactJson(text: string): ExactParse {
  const rounded = JSON.parse(text) as ExactJson;
  if (!holdsUnusualNumber(rounded)) return { value: rounded, unusualNumbers: false };
  let unusualNumbers = false;
  const marked = replaceNumbers(text, (token) => {
    const number = Number(token);
    if (!Number.isFinite(number)) unusualNumbers = true;
    if (!INTEGER.test(token) || Number.isSafeInteger(number)) return token;
    unusualNumbers = true;
    return `"${MARK}${token}"`;
  });
  return { value: unmark(JSON.parse(marked) as ExactJson), unusualNumbers };
}

/** An integer beyond 2^53 is still beyond it when rounded. */
function holdsUnusualNumber(value: ExactJson): boolean {
  if (typeof value === 'number') return Math.abs(value) > Number.MAX_SAFE_INTEGER;
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(holdsUnusualNumber);
  for (const name in value) if (holdsUnusualNumber(value[name] as ExactJson)) return true;
  return false;
}

/** Steps over strings with `indexOf`: one regular expression for both runs out of stack on a long string. */
function replaceNumbers(json: string, replace: (token: string) => string): string {
  let result = '';
  let outside = 0;
  for (;;) {
    const open = json.indexOf('"', outside);
    if (open === -1) return result + json.slice(outside).replace(NUMBER, replace);
    let close = json.indexOf('"', open + 1);
    while (isEscaped(json, close)) close = json.indexOf('"', close + 1);
    result += json.slice(outside, open).replace(NUMBER, replace) + json.slice(open, close + 1);
    outside = close + 1;
  }
}

function isEscaped(json: string, quote: number): boolean {
  let backslashes = 0;
  while (json.charCodeAt(quote - 1 - backslashes) === 0x5c) backslashes += 1;
  return backslashes % 2 === 1;
}

function unmark(value: ExactJson): ExactJson {
  if (typeof value === 'string') return value.startsWith(MARK) ? BigInt(value.slice(1)) : value;
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
