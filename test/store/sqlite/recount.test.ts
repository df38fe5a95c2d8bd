/** Counters that were changed behind the store's back are found. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import type { CountDifference } from '../../../src/store/maintenance.js';
import { openStore } from '../../../src/store/open.js';
import {
  callEnd,
  claim,
  claimOne,
  completed,
  documents,
  drain,
  failed,
  openRun,
  released,
  retried,
  startCall,
  WORKER,
} from '../../contract/store/builders.js';

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
  const differences = await store.maintenance.recount();
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
      'UPDATE run_totals SET calls_answered = calls_answered + 1',
      { what: 'calls answered', kept: 5, recounted: 4 },
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
    [
      'a share of a call that is more than its bill',
      'UPDATE call_tasks SET input_tokens = 121, output_tokens = 30, cost_micro_usd = 42 WHERE call_id = 1',
      { what: 'calls whose shares do not add up to their bill', kept: 0, recounted: 1 },
    ],
  ])('finds %s', async (_, sql, difference) => {
    expect(await differencesAfter(sql)).toEqual([{ runName: 'reviews', ...difference }]);
  });
});

describe('the sums of a run that are missing', () => {
  it('are told by its calls', async () => {
    const told = await differencesAfter('DELETE FROM run_totals');
    expect(told).toEqual([{ runName: 'reviews', what: 'calls made', kept: 0, recounted: 6 }]);
  });
});

describe('a document that has a result though it is open', () => {
  it('can still be put back by a rescue, and be poison', async () => {
    const database = new Database(path);
    database.exec(`UPDATE tasks SET state = 'ready' WHERE id = 2`);
    database.close();
    const store = await openStore(path, { mode: 'write', clock: systemClock });
    const [run] = await store.listRuns();
    const runId = run?.id ?? 0;
    const task = await claimOne(store, runId);
    await startCall(store, runId, task);
    const report = await store.rescueTasks({ workers: [WORKER], crashLimit: 1 });
    expect(report).toMatchObject({ rescued: 0, poisoned: 1 });
    await store.close();
  });
});

describe('every sum of calls that is kept', () => {
  /** Times and latencies are no sums of calls: the first and the last are, and the mean is not worth a search. */
  const NOT_COUNTED = new Set(['run_id', 'lane', 'latency_sum_ms', 'first_call_at_ms', 'last_call_at_ms']);

  function sumsOf(table: string): string[] {
    const store = new Database(path, { readonly: true });
    const columns = store.pragma(`table_info(${table})`) as { name: string }[];
    store.close();
    return columns.map(({ name }) => name).filter((name) => !NOT_COUNTED.has(name));
  }

  it.each([
    ['run_totals', ''],
    ['lane_totals', ' of lane lane-1'],
  ])('of %s is looked at', async (table, whose) => {
    const columns = sumsOf(table);
    expect(columns.length).toBeGreaterThan(6);
    const database = new Database(path);
    database.exec(`UPDATE ${table} SET ${columns.map((name) => `${name} = ${name} + 1`).join(', ')}`);
    database.close();
    const found = (await differencesAfter('')).filter(({ kept, recounted }) => kept === recounted + 1);
    expect(found.map(({ what }) => what).sort()).toEqual(
      columns.map((name) => `${name.replaceAll('_', ' ')}${whose}`).sort(),
    );
  });

  it('is right for calls of every sort, and not zero', async () => {
    const store = await openStore(path, { mode: 'write', clock: systemClock });
    const runId = await openRun(store, documents(9), 'every sort');
    const free = { usage: null, costMicroUsd: null, requestId: null };
    const tasks = await claim(store, runId, 9);
    const ends = [
      {},
      { costMicroUsd: null },
      { usage: null, costMicroUsd: null },
      { ...free, httpStatus: 429, kind: 'rate_limited' },
      { ...free, httpStatus: null, kind: 'network' },
      { ...free, httpStatus: null, kind: 'aborted' },
      { ...free, httpStatus: 500, kind: 'overloaded' },
    ] as const;
    for (const [index, end] of ends.entries()) {
      const task = tasks[index];
      if (task === undefined) throw new Error('claimed too few');
      const call = callEnd(await startCall(store, runId, task), end);
      const outcome =
        'kind' in end
          ? index % 2 === 0
            ? released(task, null, false, call)
            : retried(task, 1, call)
          : completed(task, call);
      await store.record([], [outcome]);
    }
    const [lost, late] = tasks.slice(ends.length);
    if (lost === undefined || late === undefined) throw new Error('claimed too few');
    await startCall(store, runId, lost);
    const lateCall = callEnd(await startCall(store, runId, late));
    await store.rescueTasks({ workers: [WORKER], crashLimit: 3 });
    await store.record([], [completed(late, lateCall)]);
    await store.close();

    expect(await differencesAfter('')).toEqual([]);
    const database = new Database(path, { readonly: true });
    const kept = database.prepare<[number], Record<string, number>>(
      'SELECT * FROM run_totals WHERE run_id = ?',
    );
    const sums = kept.get(runId) ?? {};
    database.close();
    expect(sumsOf('run_totals').filter((name) => !sums[name])).toEqual([]);
  });
});
