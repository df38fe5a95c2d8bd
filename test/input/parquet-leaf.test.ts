import fc from 'fast-check';
import type { SchemaElement } from 'hyparquet';
import { describe, expect, it } from 'vitest';
import { type ExactJson, parseExact } from '../../src/core/exact-json.js';
import { leafFromJson, leafOf, leafToJson, UnusableValue } from '../../src/input/parquet-leaf.js';

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
/** Milliseconds of the years 1 to 9999. */
const calendarMs = fc.bigInt({ min: -62_135_596_800_000n, max: 253_402_300_799_999n });
const NANOSECONDS_OF_DAY = 86_400_000_000_000n;

/** A type and its values as they are stored. */
const TYPES: readonly (readonly [string, Omit<SchemaElement, 'name'>, fc.Arbitrary<unknown>])[] = [
  ['whole numbers of 64 bits', { type: 'INT64' }, int64],
  ['whole numbers of 32 bits', { type: 'INT32' }, int32],
  ['booleans', { type: 'BOOLEAN' }, fc.boolean()],
  [
    'doubles',
    { type: 'DOUBLE' },
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  ],
  ['floats', { type: 'FLOAT' }, fc.float({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0)],
  ['text', { type: 'BYTE_ARRAY', converted_type: 'UTF8' }, fc.string({ unit: 'grapheme' })],
  ['dates', { type: 'INT32', converted_type: 'DATE' }, calendarMs.map((ms) => Number(ms / 86_400_000n))],
  ['milliseconds', { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' }, calendarMs],
  [
    'microseconds',
    { type: 'INT64', converted_type: 'TIMESTAMP_MICROS' },
    calendarMs.map((ms) => ms * 1_000n + 7n),
  ],
  [
    'nanoseconds without a zone',
    { type: 'INT64', logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: false, unit: 'NANOS' } },
    int64,
  ],
  [
    'times of day',
    { type: 'INT64', logical_type: { type: 'TIME', isAdjustedToUTC: true, unit: 'NANOS' } },
    fc.bigInt({ min: 0n, max: NANOSECONDS_OF_DAY - 1n }),
  ],
  ['decimals of 9 digits', { type: 'INT32', converted_type: 'DECIMAL', precision: 9, scale: 3 }, int32],
  ['decimals of 18 digits', { type: 'INT64', converted_type: 'DECIMAL', precision: 18, scale: 5 }, int64],
];

describe('a value of a Parquet column', () => {
  it.each(TYPES)('comes back from its JSON: %s', (_name, element, values) => {
    const leaf = leafOf({ name: 'x', ...element });
    if (leaf === null) throw new Error('the type is refused');
    fc.assert(
      fc.property(values, (value) => {
        const json = leafToJson(leaf, value);
        const back = leafFromJson(leaf, parseExact(json));
        // As the writer stores them.
        if (leaf.kind === 'float') expect(Math.fround(back as number)).toBe(value);
        else expect(back).toEqual(leaf.kind === 'decimal' ? BigInt(value as number) : value);
      }),
    );
  });

  it.each([
    [{ converted_type: 'TIMESTAMP_MILLIS' }, 1_007n, '1970-01-01T00:00:01.007Z'],
    [{ converted_type: 'TIMESTAMP_MICROS' }, 1_000_007n, '1970-01-01T00:00:01.000007Z'],
    [
      { logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' } },
      1_000_007n,
      '1970-01-01T00:00:01.000007Z',
    ],
    [
      { logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: false, unit: 'MICROS' } },
      1_000_007n,
      '1970-01-01T00:00:01.000007',
    ],
  ] as const)('that is a moment says its zone, where it has one: %j', (element, value, text) => {
    const leaf = leafOf({ name: 'x', type: 'INT64', ...element });
    if (leaf === null) throw new Error('the type is refused');
    expect(JSON.parse(leafToJson(leaf, value))).toBe(text);
  });

  it('of decimals in bytes is exact, however long', () => {
    const leaf = leafOf({
      name: 'x',
      type: 'FIXED_LEN_BYTE_ARRAY',
      converted_type: 'DECIMAL',
      precision: 38,
      scale: 10,
    });
    if (leaf === null) throw new Error('the type is refused');
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 127n), max: 2n ** 127n - 1n }), (value) => {
        const bytes = Buffer.from(BigInt.asUintN(128, value).toString(16).padStart(32, '0'), 'hex');
        expect(leafFromJson(leaf, JSON.parse(leafToJson(leaf, new Uint8Array(bytes))))).toBe(value);
      }),
    );
  });

  it.each([
    [{ type: 'INT32' }, 'x'],
    [{ type: 'INT32' }, 1.5],
    [{ type: 'INT64' }, '12'],
    [{ type: 'BOOLEAN' }, 'true'],
    [{ type: 'DOUBLE' }, '1'],
    [{ type: 'BYTE_ARRAY', converted_type: 'UTF8' }, 7],
    [{ type: 'INT32', converted_type: 'DATE' }, 'yesterday'],
    [{ type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' }, 12],
    [{ type: 'INT32', converted_type: 'DECIMAL', precision: 9, scale: 2 }, 'much'],
  ] as const)('%j does not take %j', (element, json) => {
    const leaf = leafOf({ name: 'x', ...element });
    if (leaf === null) throw new Error('the type is refused');
    expect(() => leafFromJson(leaf, json as ExactJson)).toThrow(UnusableValue);
  });
});
