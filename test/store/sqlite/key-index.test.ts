import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Imports } from '../../../src/store/sqlite/imports.js';
import { hashKey, KeyIndex } from '../../../src/store/sqlite/key-index.js';
import { migrate } from '../../../src/store/sqlite/migrations.js';
import { document } from '../../contract/store/builders.js';

let database: Database.Database;

beforeEach(() => {
  database = new Database(':memory:');
  migrate(database);
  database
    .prepare(
      `INSERT INTO runs (name, status, input_path, simulated, settings_json, created_at_ms)
       VALUES ('r', 'importing', '-', 0, '{}', 0)`,
    )
    .run();
});

afterEach(() => {
  database.close();
});

const RUN_ID = 1;

function insertTask(taskId: number, key: string, occurrence = 0): void {
  database
    .prepare(
      `INSERT INTO tasks (id, run_id, state, line, priority, import_generation, occurrence, key, request_hash)
       VALUES (?, ?, 'ready', 1, 0, 0, ?, ?, 'h')`,
    )
    .run(taskId, RUN_ID, occurrence, key);
}

function indexedRows(): number {
  return database.prepare<[], number>('SELECT count(*) FROM task_keys').pluck().get() ?? 0;
}

describe('the key index', () => {
  it('finds keys in memory, in the table, and after a restart between the two', () => {
    const keys = new KeyIndex(database);
    keys.open(RUN_ID);
    insertTask(1, 'a');
    keys.add(hashKey('a', 0), 1);
    expect(keys.find(hashKey('a', 0), 'a', 0)).toBe(1);
    expect(indexedRows()).toBe(0);

    const restarted = new KeyIndex(database);
    restarted.open(RUN_ID);
    expect(restarted.find(hashKey('a', 0), 'a', 0)).toBe(1);
    restarted.settle(RUN_ID);
    expect(indexedRows()).toBe(1);
    expect(restarted.find(hashKey('a', 0), 'a', 0)).toBe(1);
    expect(restarted.find(hashKey('a', 1), 'a', 1)).toBeUndefined();
  });

  it('tells keys with one hash apart, in memory and in the table', () => {
    const keys = new KeyIndex(database);
    keys.open(RUN_ID);
    const oneHash = 12_345;
    for (const [index, key] of ['a', 'b', 'c'].entries()) {
      insertTask(index + 1, key);
      expect(keys.find(oneHash, key, 0)).toBeUndefined();
      keys.add(oneHash, index + 1);
    }
    expect(['a', 'b', 'c', 'd'].map((key) => keys.find(oneHash, key, 0))).toEqual([1, 2, 3, undefined]);
    keys.settle(RUN_ID);
    expect(['a', 'b', 'c', 'd'].map((key) => keys.find(oneHash, key, 0))).toEqual([1, 2, 3, undefined]);
    expect(indexedRows()).toBe(3);
  });

  it('moves long tails into the table while an import goes on, and finds every key', () => {
    const imports = new Imports(database, new KeyIndex(database));
    const pages = 110;
    const page = (number: number) =>
      Array.from({ length: 1_000 }, (_, index) => document(number * 1_000 + index + 1, { body: '' }));
    for (let number = 0; number < pages; number += 1) {
      expect(imports.add(RUN_ID, 0, page(number)).next().value).toBe(1_000);
    }
    expect(indexedRows()).toBe(100_000);
    for (let number = 0; number < pages; number += 10) {
      expect(imports.add(RUN_ID, 0, page(number)).next().value).toBe(0);
    }
  });

  it('has hashes that fit 47 bits, spread, and follow key and occurrence', () => {
    const hashes = new Set<number>();
    for (let number = 0; number < 50_000; number += 1) {
      hashes.add(hashKey(`document-${number}`, 0));
      hashes.add(hashKey('the same text', number));
    }
    expect(hashes.size).toBe(100_000);
    for (const hash of hashes) {
      if (!Number.isInteger(hash) || hash < 0 || hash >= 2 ** 47) throw new Error(`${hash} does not fit`);
    }
  });

  it('never changes its hashes: files depend on them', () => {
    expect([hashKey('', 0), hashKey('document-1', 0), hashKey('日本語', 3)]).toEqual([
      86237556070479, 121458065545330, 117162381093164,
    ]);
  });
});
