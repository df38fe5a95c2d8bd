/**
 * How values go to PostgreSQL and come back. Its text cannot hold NUL, which documents and answers can: so NUL goes by
 * another name, for every text on its way in and on its way out, and no column and no statement needs to know of it.
 */
import pg from 'pg';
import { storableText } from '../storable.js';

/** Begins a substitute; seldom enough in a text that what has none of it is not looked at further. */
const MARK = '\u001a';
const NUL_NAME = `${MARK}0`;
const MARK_NAME = `${MARK}s`;

/** Text as PostgreSQL can hold it. Two texts are equal if and only if they are equal so. */
export function toStoredText(text: string): string {
  const wellFormed = storableText(text);
  if (!wellFormed.includes('\0') && !wellFormed.includes(MARK)) return wellFormed;
  return wellFormed.replaceAll(MARK, MARK_NAME).replaceAll('\0', NUL_NAME);
}

export function fromStoredText(stored: string): string {
  if (!stored.includes(MARK)) return stored;
  return stored.replaceAll(NUL_NAME, '\0').replaceAll(MARK_NAME, MARK);
}

/** Lists and objects go as JSON, for `json_to_recordset` and its kin. */
export type Parameter = string | number | null | readonly unknown[] | object;

/** What makes JSON text unfit: NUL, the mark, and halves of surrogate pairs; a backslash before it may be one too many. */
const UNFIT_JSON = /\\u(?:0000|001a|d[89a-f])/i;

export function toWire(parameter: Parameter): string | number | null {
  if (typeof parameter === 'string') return toStoredText(parameter);
  if (parameter === null || typeof parameter === 'number') return parameter;
  const json = JSON.stringify(parameter);
  if (!UNFIT_JSON.test(json)) return json;
  return JSON.stringify(parameter, (_, value: unknown) =>
    typeof value === 'string' ? toStoredText(value) : value,
  );
}

const { INT8, FLOAT8, NUMERIC, TEXT, VARCHAR } = pg.types.builtins;
/** Numbers of rows, times and tokens are all such that a JavaScript number holds them exactly. */
const NUMBERS: readonly number[] = [INT8, FLOAT8, NUMERIC];
const TEXTS: readonly number[] = [TEXT, VARCHAR];

/** For the driver. */
export const COLUMN_TYPES: pg.CustomTypesConfig = {
  getTypeParser(oid, format) {
    if (format === 'binary') return pg.types.getTypeParser(oid, format);
    if (NUMBERS.includes(oid)) return Number;
    if (TEXTS.includes(oid)) return fromStoredText;
    return pg.types.getTypeParser(oid, 'text');
  },
};
