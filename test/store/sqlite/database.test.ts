import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { openStore } from '../../../src/store/open.js';
import { openDatabase } from '../../../src/store/sqlite/database.js';
import { MIGRATIONS, type Migration } from '../../../src/store/sqlite/migrations.js';
import { createRun, documents, NOW_MS, openRun } from '../../contract/store/builders.js';
import { refusal } from '../../support/refusal.js';
import { ORDINARY_USER, runAsOrdinaryUser, startChild } from './child.js';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-database-'));
  path = join(folder, 'llm-batch.db');
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

const write = { mode: 'write', clock: systemClock } as const;
const read = { mode: 'read', clock: systemClock } as const;

async function createStore(count: number): Promise<void> {
  const store = await openStore(path, write);
  await openRun(store, documents(count));
  await store.close();
}

/** Runs a statement on the file from outside the store. */
function alter(sql: string): void {
  const database = new Database(path);
  database.exec(sql);
  database.close();
}

describe('an opened store', () => {
  it.each([
    ['journal_mode', 'wal'],
    ['foreign_keys', 1],
    ['trusted_schema', 0],
    ['application_id', 0x6c6c6d62],
    ['user_version', MIGRATIONS.length],
  ])('has %s %s', async (pragma, value) => {
    const connection = await openDatabase(path, write);
    expect(connection.database.pragma(pragma, { simple: true })).toBe(value);
    connection.close();
  });

  it('blocks the event loop for a tenth of a second at most when it is locked', async () => {
    const connection = await openDatabase(path, write);
    const timeoutMs = connection.database.pragma('busy_timeout', { simple: true });
    expect(timeoutMs).toBeGreaterThanOrEqual(50);
    expect(timeoutMs).toBeLessThanOrEqual(100);
    connection.close();
  });

  it('is for its user alone, and so are the files beside it', async () => {
    const store = await openStore(path, write);
    await createRun(store);
    await store.acquireDrainLock({ pid: 1, host: 'h', runName: 'r', sinceMs: NOW_MS });
    const modes = readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & 0o777]);
    expect(modes.map(([name]) => name)).toContain('llm-batch.db-wal');
    expect(modes.filter(([, mode]) => mode !== 0o600)).toEqual([]);
    await store.close();
  });

  it('is made once when several processes start at the same moment', async () => {
    const code = `
      said('ready'); await told();
      const store = await openStore(path, { mode: 'write', clock });
      await store.createRun({ name: String(process.pid), inputPath: '-', simulated: false, settings: {}, createdAtMs: 0 });
      said('created'); await told();`;
    const children = Array.from({ length: 4 }, () => startChild(code, path));
    await Promise.all(children.map((child) => child.said('ready')));
    for (const child of children) child.tell();
    await Promise.all(children.map((child) => child.said('created')));
    for (const child of children) await child.kill();
    const store = await openStore(path, read);
    expect(await store.listRuns()).toHaveLength(4);
    await store.close();
  });

  it('takes over an empty file, which a crash at the first start may leave', async () => {
    writeFileSync(path, '');
    await expect(openStore(path, read)).rejects.toMatchObject({ code: 'STORE_MISSING' });
    await createStore(1);
    const store = await openStore(path, read);
    expect(await store.listRuns()).toHaveLength(1);
    await store.close();
  });

  it('refuses rows that break its rules, whoever writes them', async () => {
    await createStore(1);
    for (const sql of [
      `UPDATE tasks SET state = 'done'`,
      `UPDATE tasks SET state = 'in_progress'`,
      `UPDATE tasks SET state = 'in_progress', attempt_token = 't'`,
      `UPDATE tasks SET state = 'in_progress', attempt_token = 't', worker_id = 1, remote_batch_id = 1`,
      'UPDATE tasks SET remote_batch_id = 1',
      `UPDATE tasks SET state = 'failed'`,
      `UPDATE tasks SET state = 'delayed'`,
      'UPDATE tasks SET run_id = 99',
      `UPDATE tasks SET attempts = 'many'`,
      `UPDATE runs SET status = 'lost'`,
      'DELETE FROM runs',
      'INSERT INTO results (task_id, settled_at_ms) VALUES (1, 1)',
    ]) {
      expect(() => alter(`PRAGMA foreign_keys = ON; ${sql}`), sql).toThrow(/constraint|cannot store/);
    }
  });
});

describe('reading', () => {
  it('never makes a store where there is none', async () => {
    await expect(refusal(openStore(path, read))).resolves.toMatchObject({
      code: 'STORE_MISSING',
      exitCode: 5,
      wayOut: expect.stringContaining('llm-batch run'),
    });
    expect(readdirSync(folder)).toEqual([]);
  });

  it('works beside the process that drains, and sees what it commits', async () => {
    const writer = await openStore(path, write);
    const reader = await openStore(path, read);
    const runId = await openRun(writer, documents(3));
    expect((await reader.summarizeRun(runId)).counts.ready).toBe(3);
    await reader.close();
    await writer.close();
  });

  it('cannot write', async () => {
    await createStore(1);
    const reader = await openStore(path, read);
    await expect(createRun(reader, 'other')).rejects.toMatchObject({ code: 'STORE_READ_ONLY', exitCode: 5 });
    await reader.close();
  });

  it('sees every commit of a process that was killed', async () => {
    const child = startChild(
      `const store = await openStore(path, { mode: 'write', clock });
       const run = { inputPath: '-', simulated: false, settings: {}, createdAtMs: 0 };
       for (const name of ['a', 'b', 'c']) await store.createRun({ ...run, name });
       said('committed'); await told();`,
      path,
    );
    await child.said('committed');
    await child.kill();
    expect(existsSync(`${path}-wal`)).toBe(true);
    const reader = await openStore(path, read);
    expect((await reader.listRuns()).map((run) => run.name)).toEqual(['c', 'b', 'a']);
    await reader.close();
  });
});

describe('schema versions', () => {
  it('are not taken at their word: a schema without what it should have is damage', async () => {
    await createStore(1);
    alter('ALTER TABLE calls RENAME COLUMN input_tokens TO something_else');
    for (const mode of [read, write]) {
      await expect(openStore(path, mode)).rejects.toMatchObject({ code: 'STORE_CORRUPT', exitCode: 5 });
    }
  });

  const second: Migration = {
    version: MIGRATIONS.length + 1,
    name: 'a later one',
    sql: `CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT; INSERT INTO later SELECT count(*) FROM runs;`,
  };

  it('refuses a store of a newer version, and leaves it as it is', async () => {
    await createStore(1);
    alter(`PRAGMA user_version = ${MIGRATIONS.length + 1}`);
    const before = readFileSync(path);
    for (const options of [write, read]) {
      await expect(refusal(openStore(path, options))).resolves.toMatchObject({
        code: 'STORE_NEWER_SCHEMA',
        exitCode: 5,
        wayOut: expect.stringContaining('Upgrade'),
      });
    }
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it.each([write, read])('brings an older store up to date on opening to $mode', async (options) => {
    await createStore(1);
    const connection = await openDatabase(path, { ...options, migrations: [...MIGRATIONS, second] });
    expect(connection.database.pragma('user_version', { simple: true })).toBe(MIGRATIONS.length + 1);
    expect(connection.database.prepare('SELECT id FROM later').pluck().all()).toEqual([1]);
    connection.close();
  });

  it('leaves an older store alone while another process drains it, perhaps of that older version', async () => {
    await createStore(1);
    const owner = await openStore(path, write);
    await owner.acquireDrainLock({ pid: 1, host: 'here', runName: 'reviews', sinceMs: NOW_MS });
    const migrations = [...MIGRATIONS, second];
    for (const options of [write, read]) {
      await expect(openDatabase(path, { ...options, migrations })).rejects.toMatchObject({
        code: 'STORE_LOCKED',
        exitCode: 5,
      });
    }
    expect(await owner.listRuns()).toHaveLength(1);
    await owner.close();
    (await openDatabase(path, { ...read, migrations })).close();
  });

  it('migrates wholly or not at all', async () => {
    await createStore(1);
    const broken: Migration = {
      version: second.version + 1,
      name: 'broken',
      sql: 'INSERT INTO nowhere VALUES (1)',
    };
    const migrations = [...MIGRATIONS, second, broken];
    await expect(openDatabase(path, { ...write, migrations })).rejects.toThrow('nowhere');
    const store = await openStore(path, write);
    expect(await store.listRuns()).toHaveLength(1);
    await store.close();
    expect(() => alter('SELECT * FROM later')).toThrow('no such table');
  });
});

describe('what is not ours', () => {
  it.each([
    ['tables', 'CREATE TABLE other (x)'],
    ['another application id', 'PRAGMA application_id = 1'],
    ['a user version', 'PRAGMA user_version = 1'],
  ])('a database with %s is refused and left as it is', async (_, sql) => {
    alter(sql);
    const before = readFileSync(path);
    for (const options of [write, read]) {
      await expect(openStore(path, options)).rejects.toMatchObject({ code: 'STORE_FOREIGN', exitCode: 5 });
    }
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(readdirSync(folder)).toEqual(['llm-batch.db']);
  });

  it('a file that is no database is refused by name and left as it is', async () => {
    const text = '{"id":1,"text":"an input file given for a store"}\n'.repeat(200);
    writeFileSync(path, text);
    for (const options of [write, read]) {
      const opened = openStore(path, options);
      await expect(refusal(opened)).resolves.toMatchObject({
        code: 'STORE_CORRUPT',
        exitCode: 5,
        wayOut: expect.stringContaining('.recover'),
      });
      await expect(opened).rejects.toThrow(path);
    }
    expect(readFileSync(path, 'utf8')).toBe(text);
  });
});

describe('a damaged store', () => {
  function damage(fromPage: number, pages: number): void {
    const file = openSync(path, 'r+');
    writeSync(file, Buffer.alloc(pages * 4096, 0xa5), 0, pages * 4096, (fromPage - 1) * 4096);
    closeSync(file);
  }

  it('is found before any work is done, and never made anew', async () => {
    await createStore(500);
    damage(20, 10);
    const before = readFileSync(path);
    await expect(openStore(path, write)).rejects.toMatchObject({ code: 'STORE_CORRUPT', exitCode: 5 });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it('is told from an empty one when its first page is gone', async () => {
    await createStore(1);
    damage(1, 1);
    for (const options of [write, read]) {
      await expect(openStore(path, options)).rejects.toMatchObject({ code: 'STORE_CORRUPT' });
    }
  });

  it('says so when a reader meets the damage', async () => {
    await createStore(500);
    damage(2, statSync(path).size / 4096 - 1);
    const reader = openStore(path, read).then((store) => store.listRuns().finally(() => store.close()));
    await expect(reader).rejects.toMatchObject({ code: 'STORE_CORRUPT', exitCode: 5 });
  });
});

describe('a place that cannot be written', () => {
  const CODE = `
    try {
      const store = await openStore(path, { mode: 'write', clock });
      await store.close();
      said('opened');
    } catch (error) { said([error.code, error.exitCode].join(' ')); }`;

  it('says so when the folder is not there', async () => {
    await expect(openStore(join(folder, 'no', 'store.db'), write)).rejects.toMatchObject({
      code: 'STORE_CANNOT_OPEN',
      exitCode: 5,
    });
    await expect(openStore(folder, write)).rejects.toMatchObject({ code: 'STORE_CANNOT_OPEN' });
  });

  it.each(['nowhere/store.db', 'elsewhere.db'])(
    'makes nothing where a link to %s leads nowhere',
    async (to) => {
      symlinkSync(join(folder, to), path);
      for (const options of [write, read]) {
        await expect(openStore(path, options)).rejects.toMatchObject({ code: 'STORE_ODD_FILE', exitCode: 5 });
      }
      expect(readdirSync(folder)).toEqual(['llm-batch.db']);
    },
  );

  const skipped = !ORDINARY_USER.available;

  it.skipIf(skipped)(`finds a read-only folder before any call is made (${ORDINARY_USER.why})`, () => {
    chmodSync(folder, 0o555);
    expect(runAsOrdinaryUser(CODE, path)).toBe('STORE_READ_ONLY 5');
  });

  it.skipIf(skipped)(`finds a store in a read-only folder (${ORDINARY_USER.why})`, async () => {
    await createStore(1);
    if (process.getuid?.() === 0) chownSync(path, 65534, 65534);
    chmodSync(folder, 0o555);
    expect(runAsOrdinaryUser(CODE, path)).toMatch(/^STORE_(READ_ONLY|CANNOT_OPEN) 5$/);
  });

  it.skipIf(skipped)(
    `finds a read-only store in a folder that can be written (${ORDINARY_USER.why})`,
    async () => {
      await createStore(1);
      chmodSync(path, 0o444);
      chmodSync(folder, 0o777);
      expect(runAsOrdinaryUser(CODE, path)).toBe('STORE_READ_ONLY 5');
    },
  );
});

describe('a folder that somebody else has filled', () => {
  it('an empty file that all may read becomes a store of its user alone', async () => {
    writeFileSync(path, '', { mode: 0o666 });
    chmodSync(path, 0o666);
    const store = await openStore(path, write);
    await createRun(store);
    const modes = readdirSync(folder).map((name) => statSync(join(folder, name)).mode & 0o777);
    expect(new Set(modes)).toEqual(new Set([0o600]));
    await store.close();
  });

  it.each(['.lock', '-wal', '-shm', '-journal'])('makes nothing where a link at %s leads', async (ending) => {
    await createStore(1);
    const victim = join(folder, 'victim');
    rmSync(path + ending, { force: true });
    symlinkSync(victim, path + ending);
    for (const options of [write, read]) {
      await expect(openStore(path, options)).rejects.toMatchObject({
        code: 'STORE_ODD_FILE',
        message: `${path}${ending} is a symbolic link, and not a file of a store.`,
      });
    }
    expect(existsSync(victim)).toBe(false);
  });

  it.each(['', '.lock', '-wal', '-shm', '-journal'])('does not wait for a pipe at %j', async (ending) => {
    if (ending !== '') await createStore(1);
    rmSync(path + ending, { force: true });
    execFileSync('mkfifo', [path + ending]);
    for (const options of [write, read]) {
      await expect(openStore(path, options)).rejects.toMatchObject({ code: 'STORE_ODD_FILE' });
    }
  });

  it.each([
    ['trigger', 'CREATE TRIGGER also AFTER UPDATE ON runs BEGIN DELETE FROM runs; END'],
    [
      'trigger in the place of ours',
      `DROP TRIGGER tasks_counted_out;
       CREATE TRIGGER tasks_counted_out AFTER DELETE ON tasks BEGIN DELETE FROM runs; END`,
    ],
    ['view', 'CREATE VIEW more AS SELECT * FROM runs'],
    ['virtual table', 'CREATE VIRTUAL TABLE found USING fts5(words)'],
  ])('a store with a %s that is not ours is refused, and not changed', async (_, sql) => {
    await createStore(1);
    alter(sql);
    const before = readFileSync(path);
    for (const options of [write, read]) {
      await expect(openStore(path, options)).rejects.toMatchObject({
        code: 'STORE_FOREIGN',
        message: expect.stringContaining('code of somebody else'),
      });
    }
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it.each(['settings_json', 'output_paths_json'])('what is not JSON in %s is damage', async (column) => {
    await createStore(1);
    for (const text of ['', '{', '3', '"x"', 'null', '[1', '{"a":1}, {}']) {
      alter(`UPDATE runs SET ${column} = '${text}'`);
      const store = await openStore(path, read);
      await expect(store.listRuns(), text).rejects.toMatchObject({ code: 'STORE_CORRUPT', exitCode: 5 });
      await store.close();
    }
  });
});

describe('two names for one store', () => {
  it('meet at one lock', async () => {
    await createStore(1);
    mkdirSync(join(folder, 'elsewhere'));
    const link = join(folder, 'elsewhere', 'link.db');
    symlinkSync(path, link);
    const first = await openStore(path, write);
    const second = await openStore(link, write);
    const owner = { pid: 1, host: 'h', runName: 'r', sinceMs: NOW_MS };
    await first.acquireDrainLock(owner);
    await expect(second.acquireDrainLock(owner)).rejects.toMatchObject({ code: 'STORE_LOCKED' });
    await first.close();
    await second.close();
  });
});
