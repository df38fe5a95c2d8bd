/**
 * How values go to PostgreSQL and come back. Its text cannot hold NUL, which documents and answers can: so NUL goes by
 * another name, for every text on its way in and on its way out, and no column and no statement needs to know of it.
 */
import pg from 'pg';
import type { StatementValue } from '../sql/steps.js';
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

/** What makes JSON text unfit: NUL, the mark, and halves of surrogate pairs; a backslash before it may be one too many. */
const UNFIT_JSON = /\\u(?:0000|001a|d[89a-f])/i;

/** Bytes go as they are, which is what `toColumns` gives. */
export function toWire(parameter: StatementValue): string | number | null | Buffer {
  if (typeof parameter === 'string') return toStoredText(parameter);
  if (parameter === null || typeof parameter === 'number' || Buffer.isBuffer(parameter)) return parameter;
  const json = JSON.stringify(parameter);
  if (!UNFIT_JSON.test(json)) return json;
  return JSON.stringify(parameter, (_, value: unknown) =>
    typeof value === 'string' ? toStoredText(value) : value,
  );
}

const { INT8, FLOAT8, NUMERIC, TEXT, VARCHAR, BYTEA } = pg.types.builtins;
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

type Value = string | number | Buffer;

interface ValueFormat {
  readonly oid: number;
  /** Before it is measured and written. */
  prepared?(value: string): string;
  bytes(value: never): number;
  write(value: never, into: Buffer, at: number): void;
}

/** The server's binary formats. */
const FORMATS = {
  bigint: { oid: INT8, bytes: () => 8, write: writeInteger },
  'double precision': {
    ...{ oid: FLOAT8, bytes: () => 8 },
    write: (value: number, into: Buffer, at: number) => into.writeDoubleBE(value, at),
  },
  text: {
    ...{ oid: TEXT, prepared: toStoredText, bytes: (text: string) => Buffer.byteLength(text) },
    write: (text: string, into: Buffer, at: number) => into.write(text, at),
  },
  bytea: {
    ...{ oid: BYTEA, bytes: (value: Buffer) => value.length },
    write: (value: Buffer, into: Buffer, at: number) => value.copy(into, at),
  },
} satisfies Record<string, ValueFormat>;

/** Safe integers only. */
function writeInteger(value: number, into: Buffer, at: number): void {
  const high = Math.floor(value / 2 ** 32);
  into.writeInt32BE(high, at);
  into.writeUInt32BE(value - high * 2 ** 32, at + 4);
}

/** Of rows that go to the server column by column, an array each: half the bytes of JSON, and nothing to parse. */
export type Columns = Readonly<Record<string, keyof typeof FORMATS>>;
export type ColumnRow<Names extends Columns> = { readonly [Name in keyof Names]?: Value | null | undefined };

/** For FROM: rows whose columns are the parameters from number `first` on, in the order in which they were given. */
export function rowsOf(columns: Columns, name: string, first = 1): string {
  const arrays = Object.values(columns).map((type, index) => `$${first + index}::${type}[]`);
  return `unnest(${arrays.join(', ')}) AS ${name} (${namesOf(columns)})`;
}

export function namesOf(columns: Columns, of = ''): string {
  return Object.keys(columns)
    .map((column) => of + column)
    .join(', ');
}

/** The parameters for `rowsOf`; what a row does not have is null. */
export function toColumns<Names extends Columns>(
  columns: Names,
  rows: readonly ColumnRow<Names>[],
): Buffer[] {
  return Object.entries(columns).map(([column, type]) =>
    toArray(
      FORMATS[type],
      rows.map((row) => row[column]),
    ),
  );
}

/** NaN is nothing to SQLite and to JSON either; a column that held it would spoil every sum. */
function isNothing(value: Value | null | undefined): boolean {
  return value === null || value === undefined || Number.isNaN(value);
}

const ARRAY_HEADER_BYTES = 20;
const LENGTH_BYTES = 4;

function toArray(format: ValueFormat, given: readonly (Value | null | undefined)[]): Buffer {
  const { oid, prepared } = format;
  const values =
    prepared === undefined
      ? given
      : given.map((value) => (isNothing(value) ? null : prepared(value as string)));
  const lengths = values.map((value) => (isNothing(value) ? -1 : format.bytes(value as never)));
  const size = lengths.reduce((sum, length) => sum + LENGTH_BYTES + Math.max(0, length), ARRAY_HEADER_BYTES);
  const array = Buffer.allocUnsafe(size);
  // One dimension, which begins at 1; some of it may be null.
  for (const [index, field] of [1, 1, oid, values.length, 1].entries()) array.writeInt32BE(field, index * 4);
  let at = ARRAY_HEADER_BYTES;
  for (const [index, length] of lengths.entries()) {
    array.writeInt32BE(length, at);
    at += LENGTH_BYTES;
    if (length < 0) continue;
    format.write(values[index] as never, array, at);
    at += length;
  }
  return array;
}
