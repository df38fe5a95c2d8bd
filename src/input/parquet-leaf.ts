/**
 * What the values of a Parquet column are (Parquet format specification, "Logical types"), and how each is written
 * as JSON: whole numbers and decimals with all their digits, dates and times as ISO 8601.
 */
import type { SchemaElement, TimeUnit } from 'hyparquet';

export type ParquetLeaf =
  | { readonly kind: 'boolean' | 'integer' | 'long' | 'float' | 'double' | 'text' | 'json' | 'uuid' | 'date' }
  | { readonly kind: 'timestamp'; readonly unit: TimeUnit; readonly isUtc: boolean }
  | { readonly kind: 'time'; readonly unit: TimeUnit }
  | { readonly kind: 'decimal'; readonly scale: number; readonly isExactAsNumber: boolean };

/** A double holds every decimal with this many digits. */
const DIGITS_OF_DOUBLE = 15;

/** @param element without children @returns null for what is neither text nor a number: bytes, geometry, intervals */
export function leafOf(element: SchemaElement): ParquetLeaf | null {
  const { type, converted_type: converted, logical_type: logical } = element;
  if (logical?.type === 'DECIMAL' || converted === 'DECIMAL') return decimalOf(element);
  switch (type) {
    case 'BOOLEAN':
      return { kind: 'boolean' };
    case 'INT32':
      if (logical?.type === 'DATE' || converted === 'DATE') return { kind: 'date' };
      if (logical?.type === 'TIME' || converted === 'TIME_MILLIS') return { kind: 'time', unit: 'MILLIS' };
      return { kind: 'integer' };
    case 'INT64':
      return longOf(element);
    case 'INT96':
      return { kind: 'timestamp', unit: 'NANOS', isUtc: true };
    case 'FLOAT':
      return { kind: 'float' };
    case 'DOUBLE':
      return { kind: 'double' };
    case 'BYTE_ARRAY':
      if (logical?.type === 'JSON' || converted === 'JSON') return { kind: 'json' };
      return isBytes(element) ? null : { kind: 'text' };
    case 'FIXED_LEN_BYTE_ARRAY':
      if (logical?.type === 'UUID') return { kind: 'uuid' };
      return logical?.type === 'FLOAT16' ? { kind: 'float' } : null;
    default:
      return null;
  }
}

function decimalOf({ logical_type: logical, scale, precision }: SchemaElement): ParquetLeaf {
  const parameters = logical?.type === 'DECIMAL' ? logical : { scale, precision };
  const digits = parameters.precision ?? Number.POSITIVE_INFINITY;
  return { kind: 'decimal', scale: parameters.scale ?? 0, isExactAsNumber: digits <= DIGITS_OF_DOUBLE };
}

function longOf({ converted_type: converted, logical_type: logical }: SchemaElement): ParquetLeaf {
  if (logical?.type === 'TIMESTAMP') {
    return { kind: 'timestamp', unit: logical.unit, isUtc: logical.isAdjustedToUTC };
  }
  if (converted === 'TIMESTAMP_MILLIS') return { kind: 'timestamp', unit: 'MILLIS', isUtc: true };
  if (converted === 'TIMESTAMP_MICROS') return { kind: 'timestamp', unit: 'MICROS', isUtc: true };
  if (logical?.type === 'TIME') return { kind: 'time', unit: logical.unit };
  if (converted === 'TIME_MICROS') return { kind: 'time', unit: 'MICROS' };
  return { kind: 'long' };
}

/** Bytes without a declared type may be text from an older writer; those with another type are not. */
function isBytes({ converted_type: converted, logical_type: logical }: SchemaElement): boolean {
  if (logical?.type === 'STRING' || logical?.type === 'ENUM') return false;
  if (converted === 'UTF8' || converted === 'ENUM') return false;
  return converted !== undefined || logical !== undefined;
}

/**
 * The element without what would make the reader round or guess. Values come as they are stored, except that text comes as
 * strings and unsigned integers as unsigned.
 */
export function rawElement(element: SchemaElement): SchemaElement {
  const { converted_type: converted, logical_type: logical, ...plain } = element;
  if (plain.num_children !== undefined && plain.num_children > 0) return element;
  const kind = leafOf(element)?.kind;
  if (kind === 'text' || kind === 'json') return { ...plain, converted_type: 'UTF8' };
  if (kind === 'integer' || kind === 'long' || kind === 'uuid' || logical?.type === 'FLOAT16') return element;
  return plain;
}

/** Stands for text that is not UTF-8, in place of its string. */
export class InvalidText {}

/** A value that no document can hold; the message is a clause without the column's name. */
export class UnusableValue extends Error {}

/** The JSON text of a value, as the reader gives it for `rawElement`. @throws UnusableValue */
export function leafToJson(leaf: ParquetLeaf, value: unknown): string {
  switch (leaf.kind) {
    case 'boolean':
    case 'integer':
    case 'long':
      return String(value);
    case 'float':
      return jsonNumber(shortestFloat(Number(value)));
    case 'double':
      return jsonNumber(Number(value));
    case 'text':
    case 'uuid':
      return JSON.stringify(textOf(value));
    case 'json':
      return checkedJson(textOf(value));
    case 'date':
      return JSON.stringify(isoDate(BigInt(value as number)));
    case 'timestamp':
      return JSON.stringify(isoTimestamp(value as bigint, leaf.unit, leaf.isUtc));
    case 'time':
      return JSON.stringify(isoTime(BigInt(value as number | bigint), leaf.unit));
    case 'decimal': {
      const digits = decimalText(unscaledOf(value), leaf.scale);
      return leaf.isExactAsNumber ? digits : JSON.stringify(digits);
    }
  }
}

/** The inverse: from parsed JSON to the value that `leafToJson` takes. @throws UnusableValue */
export function leafFromJson(leaf: ParquetLeaf, value: unknown): unknown {
  switch (leaf.kind) {
    case 'boolean':
      return expect(typeof value === 'boolean', value);
    case 'integer':
      return expect(Number.isInteger(value), value);
    case 'long':
      expect(typeof value === 'bigint' || Number.isInteger(value), value);
      return BigInt(value as number | bigint);
    case 'float':
    case 'double':
      expect(typeof value === 'number' || typeof value === 'bigint', value);
      return Number(value);
    case 'text':
    case 'uuid':
      return expect(typeof value === 'string', value);
    case 'json':
      return value;
    case 'date':
      return Number(nanosecondsOf(value) / NANOSECONDS_PER_DAY);
    case 'timestamp':
      return nanosecondsOf(value) / NANOSECONDS[leaf.unit];
    case 'time': {
      const units = nanosecondsOf(`1970-01-01T${value}`) / NANOSECONDS[leaf.unit];
      return leaf.unit === 'MILLIS' ? Number(units) : units;
    }
    case 'decimal':
      return unscaled(String(value), leaf.scale);
  }
}

function expect(holds: boolean, value: unknown): unknown {
  if (!holds) throw new UnusableValue(`does not take ${JSON.stringify(String(value))}`);
  return value;
}

/** JSON cannot write them. */
function jsonNumber(value: number): string {
  return Number.isFinite(value) ? JSON.stringify(value) : 'null';
}

/** The shortest number that is the same 32-bit float: 0.1, not 0.10000000149011612. */
function shortestFloat(value: number): number {
  for (let digits = 6; digits < 9; digits += 1) {
    const shorter = Number(value.toPrecision(digits));
    if (Math.fround(shorter) === value) return shorter;
  }
  return value;
}

function textOf(value: unknown): string {
  if (value instanceof InvalidText) throw new UnusableValue('is not valid UTF-8');
  return String(value);
}

function checkedJson(text: string): string {
  try {
    JSON.parse(text);
    return text;
  } catch {
    throw new UnusableValue('is a JSON column and holds no JSON');
  }
}

const NANOSECONDS_PER_DAY = 86_400_000_000_000n;
const NANOSECONDS: Readonly<Record<TimeUnit, bigint>> = { MILLIS: 1_000_000n, MICROS: 1_000n, NANOS: 1n };

function isoDate(days: bigint): string {
  return calendar(days * 86_400_000n).slice(0, -'T00:00:00.000Z'.length);
}

function isoTimestamp(value: bigint, unit: TimeUnit, isUtc: boolean): string {
  const nanoseconds = value * NANOSECONDS[unit];
  const inSecond = ((nanoseconds % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  const seconds = (nanoseconds - inSecond) / 1_000_000_000n;
  const whole = calendar(seconds * 1_000n).slice(0, -'.000Z'.length);
  return `${whole}${fraction(inSecond)}${isUtc ? 'Z' : ''}`;
}

function isoTime(value: bigint, unit: TimeUnit): string {
  return isoTimestamp(value, unit, false).slice('1970-01-01T'.length);
}

function calendar(epochMs: bigint): string {
  const date = new Date(Number(epochMs));
  if (Number.isNaN(date.getTime())) throw new UnusableValue('is a date beyond all calendars');
  return date.toISOString();
}

function fraction(nanoseconds: bigint): string {
  if (nanoseconds === 0n) return '';
  const digits = nanoseconds.toString().padStart(9, '0');
  return `.${digits.replace(/(?:000){1,2}$/, '')}`;
}

/** The inverse of `isoDate` and `isoTimestamp`. */
function nanosecondsOf(value: unknown): bigint {
  const match = /^(.+?)(?:\.(\d{1,9}))?Z?$/.exec(String(value));
  const whole = match?.[1] ?? '';
  const epochMs = Date.parse(whole.includes('T') ? `${whole}Z` : `${whole}T00:00:00Z`);
  if (Number.isNaN(epochMs)) throw new UnusableValue(`does not take ${JSON.stringify(String(value))}`);
  return BigInt(epochMs) * 1_000_000n + BigInt((match?.[2] ?? '').padEnd(9, '0'));
}

/** Bytes are two's complement, the highest first. */
function unscaledOf(value: unknown): bigint {
  if (!(value instanceof Uint8Array)) return BigInt(value as number | bigint);
  if (value.length === 0) return 0n;
  return BigInt.asIntN(value.length * 8, BigInt(`0x${Buffer.from(value).toString('hex')}`));
}

function decimalText(unscaledValue: bigint, scale: number): string {
  const sign = unscaledValue < 0n ? '-' : '';
  const digits = (unscaledValue < 0n ? -unscaledValue : unscaledValue).toString().padStart(scale + 1, '0');
  if (scale === 0) return sign + digits;
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

function unscaled(text: string, scale: number): bigint {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text);
  if (match === null) throw new UnusableValue(`does not take ${JSON.stringify(text)}`);
  const [, sign = '', whole = '', decimals = '', exponent = '0'] = match;
  const shift = scale - decimals.length + Number(exponent);
  const digits = BigInt(whole + decimals);
  const magnitude = shift >= 0 ? digits * 10n ** BigInt(shift) : digits / 10n ** BigInt(-shift);
  return sign === '-' ? -magnitude : magnitude;
}
