import fc from 'fast-check';
import pg from 'pg';
import { expect, it } from 'vitest';
import {
  COLUMN_TYPES,
  fromStoredText,
  namesOf,
  rowsOf,
  toColumns,
  toStoredText,
  toWire,
} from '../../../src/store/postgres/wire.js';
import { postgresUrl } from '../../support/postgres.js';

/** Texts in which what must be written otherwise is frequent. */
const text = fc.string({
  unit: fc.constantFrom('\0', '\u001a', '0', 's', 'a', '\\', 'u0000', '\ud83d\ude00'),
});

it('gives every text back as it was, and tells two texts apart', () => {
  fc.assert(
    fc.property(text, text, (one, other) => {
      expect(toStoredText(one)).not.toContain('\0');
      expect(fromStoredText(toStoredText(one))).toBe(one);
      expect(toStoredText(one) === toStoredText(other)).toBe(one === other);
    }),
  );
});

it('writes texts in lists and objects as those that stand alone', () => {
  fc.assert(
    fc.property(fc.array(text), (texts) => {
      expect(JSON.parse(String(toWire(texts)))).toEqual(texts.map(toStoredText));
    }),
  );
});

const COLUMNS = { whole: 'bigint', fraction: 'double precision', words: 'text', bytes: 'bytea' } as const;

const row = fc.record({
  whole: fc.option(fc.maxSafeInteger()),
  fraction: fc.option(fc.double({ noNaN: true })),
  words: fc.option(fc.oneof(text, fc.string({ unit: 'grapheme' }))),
  bytes: fc.option(fc.uint8Array().map((bytes) => Buffer.from(bytes))),
});

it('has the server see rows as they were given, column by column, and null for what one does not have', async () => {
  const client = new pg.Client({ connectionString: await postgresUrl(), types: COLUMN_TYPES });
  await client.connect();
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 20 }), async (rows) => {
        const given = [...rows, {}, { fraction: Number.NaN }];
        const { rows: seen } = await client.query(
          `SELECT ${namesOf(COLUMNS)} FROM ${rowsOf(COLUMNS, 'given')}`,
          toColumns(COLUMNS, given),
        );
        const nothing = { whole: null, fraction: null, words: null, bytes: null };
        expect(seen).toEqual([...rows, nothing, nothing].map((each) => ({ ...nothing, ...each })));
      }),
    );
  } finally {
    await client.end();
  }
});
