/** Fields of a document: how they are found by name and how they are shown in messages. */
import type { ExactJson, ExactObject } from './exact-json.js';

const MOST_FIELDS_SHOWN = 12;
const LONGEST_NAME_SHOWN = 60;

/**
 * The value at `path`: a field of that very name, dots and all, else `a.b` inside objects and `items.0` inside
 * lists. Only what the document itself holds is found, never what JavaScript objects inherit.
 */
export function lookUpField(document: ExactObject, path: string): ExactJson | undefined {
  if (Object.hasOwn(document, path)) return document[path];
  if (!path.includes('.')) return undefined;
  let value: ExactJson = document;
  for (const step of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    // `length` is a list's own property, but no field of the document.
    if (Array.isArray(value) && step === 'length') return undefined;
    value = (value as ExactObject)[step] as ExactJson;
  }
  return value;
}

/** Dotted path of the first value for which `matches` holds, null when there is none. */
export function findField(
  value: ExactJson,
  matches: (member: ExactJson, name: string) => boolean,
  path = '',
): string | null {
  if (typeof value !== 'object' || value === null) return null;
  for (const [name, member] of Object.entries(value)) {
    const memberPath = path === '' ? name : `${path}.${name}`;
    if (matches(member, name)) return memberPath;
    const deeper = findField(member, matches, memberPath);
    if (deeper !== null) return deeper;
  }
  return null;
}

/** The names of a document's fields for a message: `id, text, stars`. */
export function describeFields(names: readonly string[]): string {
  if (names.length === 0) return 'none';
  const shown = names.slice(0, MOST_FIELDS_SHOWN).map(showName).join(', ');
  return names.length > MOST_FIELDS_SHOWN ? `${shown} and ${names.length - MOST_FIELDS_SHOWN} more` : shown;
}

/** A field's name as it can stand in one line of a terminal. */
export function showName(name: string): string {
  const short = name.length > LONGEST_NAME_SHOWN ? `${name.slice(0, LONGEST_NAME_SHOWN)}…` : name;
  return /^[\p{L}\p{N}_.$ -]+$/u.test(short) ? short : JSON.stringify(short);
}
