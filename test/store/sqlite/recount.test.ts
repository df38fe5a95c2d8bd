/** Counters that were changed behind the store's back are found. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { openStore } from '../../../src/store/open.js';
import type { CountDifference } from '../../../src/store/store.js';
import { completed, documents, drain, failed, openRun } from '../../contract/store/builders.js';

let folder: string;
let path: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-recount-'));
  path = join(folder, 'llm-batch.db');
  const store = await openStore(path, { mode: 'write', clock: systemClock });
  const runId = await openRun(store, documents(6));
  await drain(store, runId, (task, call) =>
    task.line > 4 ? failed(task, 'refused', { ...call, kind: 'refused' }) : completed(task, call),
  );
  await store.close();
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

async function differencesAfter(sql: string): Promise<readonly CountDifference[]> {
  const database = new Database(path);
  database.exec(sql);
  database.close();
  const store = await openStore(path, { mode: 'read', clock: systemClock });
  const differences = await store.recount();
  await store.close();
  return differences;
}

describe('a recount', () => {
  it.each([
    [
      'a count of documents that is too high',
      `UPDATE task_counts SET tasks = 9 WHERE state = 'completed'`,
      { what: 'completed documents', kept: 9, recounted: 4 },
    ],
    [
      'a count of documents that is missing',
      `DELETE FROM task_counts WHERE kind = 'refused'`,
      { what: 'failed refused documents', kept: 0, recounted: 2 },
    ],
    [
      'a count of documents that there are not',
      `INSERT INTO task_counts SELECT id, 'cancelled', '', 3 FROM runs`,
      { what: 'cancelled documents', kept: 3, recounted: 0 },
    ],
    [
      'a sum of a run',
      'UPDATE run_totals SET input_tokens = input_tokens + 1',
      { what: 'input tokens', kept: 721, recounted: 720 },
    ],
    [
      'a sum of a lane',
      'UPDATE lane_totals SET cost_micro_usd = 1',
      { what: 'cost micro usd of lane lane-1', kept: 1, recounted: 252 },
    ],
    [
      'a lane that has made no call',
      `INSERT INTO lane_totals SELECT run_id, 'other', 5, 0, 0, 0, 0, 0, 0, 0 FROM run_totals`,
      { what: 'calls made of lane other', kept: 5, recounted: 0 },
    ],
    [
      'a latency that was not counted',
      'DELETE FROM latency_buckets',
      { what: 'latencies', kept: 0, recounted: 4 },
    ],
    [
      'an answer that is lost',
      'DELETE FROM results WHERE task_id = 1',
      { what: 'documents that are settled and have no result', kept: 0, recounted: 1 },
    ],
    [
      'an answer of a document that is not settled',
      `UPDATE tasks SET state = 'ready' WHERE id = 2`,
      { what: 'documents that have a result and are not settled', kept: 0, recounted: 1 },
    ],
  ])('finds %s', async (_, sql, difference) => {
    expect(await differencesAfter(sql)).toEqual([{ runName: 'reviews', ...difference }]);
  });
});
