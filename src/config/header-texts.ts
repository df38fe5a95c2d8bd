/**
 * Headers that go along with every call: `Name: value`, where `$NAME` stands for an environment variable. What is stored
 * and shown is the text with the variable's name; its value is filled in when a call leaves.
 */

import { isJsonObject } from '../core/json.js';
import { createRedactor } from '../core/redact.js';

/** Header name to its text, `$NAME` not yet filled in. */
export type HeaderTexts = Readonly<Record<string, string>>;

/** RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VARIABLE = /\$(?:\$|\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))/g;
/** Written by the connection itself: another value would break it, or lead the call elsewhere (RFC 9110, section 7.6.1). */
const OF_THE_CONNECTION =
  /^(?:host|content-length|content-type|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|accept-encoding|proxy-.*)$/i;
const SECRET_WORD =
  /(?:^|[-_])(?:api-?key|key|token|secret|auth|authorization|cookie|password|credentials?)$/i;
const looksForeign = createRedactor([]);

/**
 * Takes a list of `Name: value`, such text line by line, or an object of names and values.
 * @throws Error whose message completes "expected …"; it quotes no value
 */
export function parseHeaders(value: unknown): HeaderTexts {
  const entries = isJsonObject(value)
    ? Object.entries(value)
    : (Array.isArray(value) ? value : String(value).split('\n'))
        .filter((line) => String(line).trim() !== '')
        .map(splitLine);
  const headers: Record<string, string> = {};
  for (const [name, text] of entries) {
    if (typeof text !== 'string' || !TOKEN.test(name)) throw new Error(EXPECTED);
    headers[name] = text.trim();
  }
  return headers;
}

const EXPECTED = "headers such as 'X-Team: search' or 'X-Key: $NAME'";

function splitLine(line: unknown): [string, string] {
  const [, name, text] = /^\s*([^:\s]+)\s*:(.*)$/s.exec(String(line)) ?? [];
  if (name === undefined || text === undefined) throw new Error(EXPECTED);
  return [name, text];
}

/** The name alone of a header that holds a key. */
export function parseHeaderName(value: unknown): string {
  if (typeof value === 'string' && TOKEN.test(value)) return value;
  throw new Error("the name of a header, e.g. 'api-key'");
}

/** The variables that the texts name. */
export function variablesOf(headers: HeaderTexts): string[] {
  return Object.values(headers).flatMap((text) =>
    [...text.matchAll(VARIABLE)].flatMap(([, braced, bare]) => braced ?? bare ?? []),
  );
}

/** @param valueAt a variable's value; `$$` is a dollar sign */
export function fillHeaders(
  headers: HeaderTexts,
  valueAt: (variable: string) => string | undefined,
): Record<string, string> {
  const fill = (text: string): string =>
    text.replace(VARIABLE, (whole, braced: string | undefined, bare: string | undefined) => {
      const variable = braced ?? bare;
      return variable === undefined ? whole.slice(1) : (valueAt(variable)?.trim() ?? '');
    });
  return Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, fill(text)]));
}

export type HeaderTrouble = 'reserved' | 'secret' | 'unsendable';

/**
 * What is wrong with one header as it was written: one that the connection writes itself, a key in plain text, which
 * would be stored with the run, or characters that no header can carry.
 */
export function troubleOfHeader(name: string, text: string): HeaderTrouble | null {
  if (OF_THE_CONNECTION.test(name)) return 'reserved';
  if (!TOKEN.test(name) || !isSendable(text)) return 'unsendable';
  const plain = text
    .replace(VARIABLE, '')
    .replace(/^\s*(?:bearer|basic)\b/i, '')
    .trim();
  return plain !== '' && (SECRET_WORD.test(name) || looksForeign(text) !== text) ? 'secret' : null;
}

/** Visible ASCII, spaces and tabs. */
export function isSendable(value: string): boolean {
  return /^[\t\x20-\x7e]*$/.test(value);
}
