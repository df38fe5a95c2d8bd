/**
 * Parts of a JSON text as they stand in it. To parse them and write them again would round numbers beyond 2^53 and make
 * 1.0 a 1. Nothing here recurses, however deep the text is nested. All of it takes valid JSON.
 */

/** The text of an object's member; null where it has none of that name. Of equal names the last, as `JSON.parse` does. */
export function memberText(objectJson: string, name: string): string | null {
  const open = skipSpace(objectJson, 0);
  if (objectJson[open] !== '{') return null;
  let found: string | null = null;
  let at = skipSpace(objectJson, open + 1);
  while (objectJson[at] === '"') {
    const nameEnd = endOfString(objectJson, at);
    const start = skipSpace(objectJson, skipSpace(objectJson, nameEnd) + 1);
    const end = endOfValue(objectJson, start);
    if (JSON.parse(objectJson.slice(at, nameEnd)) === name) found = objectJson.slice(start, end);
    // Behind the comma; behind the closing brace there is nothing that looks like a name.
    at = skipSpace(objectJson, skipSpace(objectJson, end) + 1);
  }
  return found;
}

/** The text of a list's first element; null for an empty list and for what is no list. */
export function firstElementText(arrayJson: string): string | null {
  const open = skipSpace(arrayJson, 0);
  if (arrayJson[open] !== '[') return null;
  const start = skipSpace(arrayJson, open + 1);
  return arrayJson[start] === ']' ? null : arrayJson.slice(start, endOfValue(arrayJson, start));
}

const SPACE = /[ \t\n\r]*/y;
const BRACKET_OR_STRING = /["[\]{}]/g;
const END_OF_SCALAR = /[ \t\n\r,\]}]|$/g;

function skipSpace(json: string, from: number): number {
  SPACE.lastIndex = from;
  SPACE.test(json);
  return SPACE.lastIndex;
}

function endOfValue(json: string, from: number): number {
  const first = json[from];
  if (first === '"') return endOfString(json, from);
  if (first !== '{' && first !== '[') {
    END_OF_SCALAR.lastIndex = from;
    return END_OF_SCALAR.exec(json)?.index ?? json.length;
  }
  let depth = 0;
  let at = from;
  do {
    BRACKET_OR_STRING.lastIndex = at;
    const mark = BRACKET_OR_STRING.exec(json);
    if (mark === null) return json.length;
    at = mark.index + 1;
    if (mark[0] === '"') at = endOfString(json, mark.index);
    else depth += mark[0] === '{' || mark[0] === '[' ? 1 : -1;
  } while (depth > 0);
  return at;
}

/** Behind the closing quote of the string that opens here. */
export function endOfString(json: string, open: number): number {
  let close = json.indexOf('"', open + 1);
  while (close !== -1 && isEscaped(json, close)) close = json.indexOf('"', close + 1);
  return close === -1 ? json.length : close + 1;
}

function isEscaped(json: string, quote: number): boolean {
  let backslashes = 0;
  while (json.charCodeAt(quote - 1 - backslashes) === 0x5c) backslashes += 1;
  return backslashes % 2 === 1;
}
