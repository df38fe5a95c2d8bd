import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { wayOutOf } from '../../src/commands/error-words.js';
import type { LlmBatchError } from '../../src/core/errors.js';
import { openInput } from '../../src/input/input.js';
import type { InputRecord, RecordOptions, RecordSource } from '../../src/input/source.js';
import { openSqlite } from '../../src/input/sqlite.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-sqlite-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** A database file. @param sql of its making @returns its name */
function database(sql: string, name = 'in.db'): string {
  const made = new Database(join(folder, name));
  made.exec(sql);
  made.close();
  return name;
}

type Open = (name: string, query: string | null) => Promise<RecordSource>;

/** As the reader process does it, which takes half a second to start: apart.test.ts has that. */
const open: Open = (name, query) => openSqlite(name, folder, query);

const openByName: Open = (name, query) => openInput(name, { cwd: folder, stdin: Readable.from([]), query });

async function pagesOf(
  input: RecordSource,
  options: RecordOptions = {},
): Promise<(readonly InputRecord[])[]> {
  try {
    const pages: (readonly InputRecord[])[] = [];
    for await (const page of input.records(options)) pages.push(page);
    return pages;
  } finally {
    await input.close();
    await input.close();
  }
}

async function read(name: string, query: string, options: RecordOptions = {}): Promise<InputRecord[]> {
  return (await pagesOf(await open(name, query), options)).flat();
}

const REVIEWS = `CREATE TABLE reviews (id INTEGER, text TEXT, stars REAL);
  INSERT INTO reviews VALUES (9007199254740993, 'fine "q" é', 4.5), (-2, NULL, 5.0), (3, 'a' || char(0) || 'b', 1e300);`;

describe('a SQLite database', () => {
  it.each(['in.db', 'in.sqlite', 'IN.SQLITE3'])('called %s makes each row a document', async (name) => {
    const input = await openByName(database(REVIEWS, name), 'SELECT id, text, stars FROM reviews');
    expect((await pagesOf(input)).flat()).toEqual([
      { line: 1, text: '{"id":9007199254740993,"text":"fine \\"q\\" é","stars":4.5}' },
      { line: 2, text: '{"id":-2,"text":null,"stars":5}' },
      { line: 3, text: '{"id":3,"text":"a\\u0000b","stars":1e+300}' },
    ]);
  });

  it('is what the query asks for, in its order, under its names', async () => {
    const query = `WITH good AS (SELECT * FROM reviews WHERE stars > 4) SELECT stars AS "a ""b""" FROM good ORDER BY stars LIMIT 2;`;
    expect(await read(database(REVIEWS), query)).toEqual([
      { line: 1, text: '{"a \\"b\\"":4.5}' },
      { line: 2, text: '{"a \\"b\\"":5}' },
    ]);
  });

  it('comes in pages, and lets other work have its turn between them', async () => {
    const rows = 'WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2500)';
    const input = await open(database('CREATE TABLE t (a)'), `${rows} SELECT i FROM n`);
    let turns = 0;
    const sizes: number[] = [];
    const tick = (): void => {
      turns += 1;
      if (sizes.length < 3) setImmediate(tick);
    };
    setImmediate(tick);
    for await (const page of input.records({})) sizes.push(page.length);
    await input.close();
    expect(sizes).toEqual([1_000, 1_000, 500]);
    expect(turns).toBeGreaterThanOrEqual(2);
  });

  it('never holds all of an endless result', async () => {
    const rows = 'WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n)';
    const input = await open(database('CREATE TABLE t (a)'), `${rows} SELECT i FROM n`);
    const pages = input.records({})[Symbol.asyncIterator]();
    expect((await pages.next()).value).toHaveLength(1_000);
    // Left in the middle, as by Ctrl-C.
    await input.close();
  });

  it('is not changed and leaves no file beside it', async () => {
    const name = database(REVIEWS);
    const before = readFileSync(join(folder, name));
    await read(name, 'SELECT * FROM reviews');
    expect(readFileSync(join(folder, name)).equals(before)).toBe(true);
  });

  it('can be read while another program writes to it, and reads as it was at the first row', async () => {
    const name = database(`PRAGMA journal_mode = WAL; ${REVIEWS}`);
    const writer = new Database(join(folder, name));
    const writing = writer.exec(`BEGIN IMMEDIATE; INSERT INTO reviews VALUES (4, 'new', 1)`);
    expect(await read(name, 'SELECT id FROM reviews')).toHaveLength(3);
    writing.exec('COMMIT');
    expect(await read(name, 'SELECT id FROM reviews')).toHaveLength(4);
    writer.close();
  });
});

describe('a row that cannot be a document', () => {
  it.each([
    ['a BLOB', `x'0041'`, /is a BLOB/],
    ['text stored as a BLOB', `CAST('text' AS BLOB)`, /is a BLOB.*CAST/],
    ['an infinite number', '9e999', /is infinite/],
    ['an infinite negative number', '-9e999', /is infinite/],
  ])('for it holds %s is a bad line that names the column', async (_, value, reason) => {
    const name = database(`CREATE TABLE t (id, photo); INSERT INTO t VALUES (1, ${value}), (2, NULL);`);
    expect(await read(name, 'SELECT id, photo FROM t')).toEqual([
      { line: 1, reason: expect.stringMatching(reason), field: 'photo', text: null },
      { line: 2, text: '{"id":2,"photo":null}' },
    ]);
  });

  it('because it is longer than the cap is a bad line', async () => {
    const query = `SELECT replace(hex(zeroblob(50)), '0', 'é') AS a UNION ALL SELECT 'short'`;
    expect(await read(database(REVIEWS), query, { maxLineBytes: 100 })).toEqual([
      { line: 1, reason: expect.stringMatching(/^208 bytes long, over the cap of/), text: null },
      { line: 2, text: '{"a":"short"}' },
    ]);
  });
});

describe('what is refused with exit code 2', () => {
  async function expectRefused(
    name: string,
    query: string | null,
    code: string,
    text: RegExp,
    opens: Open = open,
  ) {
    const refused = await (async () => {
      const input = await opens(name, query);
      try {
        for await (const _ of input.records({}));
      } finally {
        await input.close();
      }
    })().catch((error: unknown) => error);
    expect(refused).toMatchObject({ code, exitCode: 2 });
    const error = refused as LlmBatchError;
    expect(`${error.message} ${wayOutOf(error)}`).toMatch(text);
  }

  it.each([
    ['reviews', /with the tables reviews, my users.*--query 'SELECT \* FROM reviews'$/],
    [`it's "so"`, /--query 'SELECT \* FROM "it'\\''s ""so"""'$/],
  ])('no query: the tables are named, the first in the flag: %s', async (table, text) => {
    const quoted = `"${table.replaceAll('"', '""')}"`;
    const name = database(
      `CREATE TABLE ${quoted} (id INTEGER PRIMARY KEY AUTOINCREMENT); CREATE VIEW "my users" AS SELECT 1;`,
    );
    await expectRefused(name, null, 'INPUT_QUERY_MISSING', text);
  });

  it.each<[what: string, query: string, code: string, text: RegExp]>([
    ['a mistake', 'SELEC 1', 'INPUT_QUERY', /near "SELEC": syntax error/],
    ['an unknown table', 'SELECT * FROM nope', 'INPUT_QUERY', /no such table: nope/],
    ['an unknown column', 'SELECT nope FROM reviews', 'INPUT_QUERY', /no such column: nope/],
    ['a text in double quotes', 'SELECT * FROM reviews WHERE text = "en"', 'INPUT_QUERY', /"en".*= 'en'"$/],
    ['an error at a row', `SELECT json(text) FROM reviews`, 'INPUT_QUERY', /malformed JSON/],
    ['two statements', 'SELECT 1; SELECT 2', 'INPUT_QUERY', /more than one statement/],
    ['nothing', '-- nothing', 'INPUT_QUERY', /no statements/],
    ['parameters', 'SELECT * FROM reviews WHERE id = ?', 'INPUT_QUERY', /has parameters/],
    ['named parameters', 'SELECT :id AS id', 'INPUT_QUERY', /has parameters/],
    ['a change', 'DELETE FROM reviews', 'INPUT_QUERY', /no SELECT statement/],
    ['a change that gives rows', 'DELETE FROM reviews RETURNING id', 'INPUT_QUERY', /no SELECT statement/],
    [
      'one name for two columns',
      'SELECT id, text AS id FROM reviews',
      'INPUT_HEADER',
      /more than one column id/,
    ],
    ['two columns without a name', 'SELECT 1 AS "", 2 AS ""', 'INPUT_HEADER', /more than one column/],
    ['no rows', 'SELECT * FROM reviews WHERE 0', 'INPUT_EMPTY', /gives no rows/],
  ])('a query with %s', async (_, query, code, text) => {
    await expectRefused(database(REVIEWS), query, code, text);
  });

  it('a file that is missing, empty, a folder, damaged or not a SQLite database', async () => {
    await expectRefused('gone.db', 'SELECT 1', 'INPUT_NOT_FOUND', /no input file .*gone\.db/);
    writeFileSync(join(folder, 'empty.db'), '');
    await expectRefused('empty.db', 'SELECT 1', 'INPUT_EMPTY', /is empty/);
    mkdirSync(join(folder, 'folder.db'));
    await expectRefused('folder.db', 'SELECT 1', 'INPUT_IS_FOLDER', /is a folder/);
    writeFileSync(join(folder, 'other.db'), '{"text":"no database"}\n'.repeat(50));
    await expectRefused('other.db', 'SELECT 1', 'INPUT_NOT_SQLITE', /no SQLite database, or is encrypted/);
    await expectRefused(
      database('PRAGMA user_version = 1', 'bare.db'),
      null,
      'INPUT_EMPTY',
      /without tables/,
    );
    const bytes = readFileSync(join(folder, database(REVIEWS)));
    writeFileSync(join(folder, 'damaged.db'), bytes.fill(0xff, 4096));
    await expectRefused('damaged.db', 'SELECT * FROM reviews', 'INPUT_DAMAGED_SQLITE', /is damaged/);
  });

  it('a database that another program has locked', async () => {
    const name = database(REVIEWS);
    const other = new Database(join(folder, name));
    other.exec('BEGIN EXCLUSIVE');
    await expectRefused(name, 'SELECT * FROM reviews', 'INPUT_LOCKED', /locked by another program/);
    other.close();
  });

  it('a query for a file that is not a database, and a database that its name does not show', async () => {
    writeFileSync(join(folder, 'a.csv'), 'text\nx\n');
    await expectRefused('a.csv', 'SELECT 1', 'QUERY_UNUSED', /a\.csv is read as csv/, openByName);
    const unnamed = database(REVIEWS, 'data');
    await expectRefused(unnamed, null, 'INPUT_IS_SQLITE', /--input-format sqlite --query/, openByName);
    const stdin = Readable.from([readFileSync(join(folder, 'data'))]);
    const fromStream = openInput('-', { cwd: folder, stdin });
    await expect(fromStream).rejects.toMatchObject({ code: 'INPUT_IS_SQLITE', exitCode: 2 });
  });
});
