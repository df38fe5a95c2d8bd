import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import type { NewTask } from '../../../src/core/task.js';
import { openStore } from '../../../src/store/open.js';
import { openDatabase } from '../../../src/store/sqlite/database.js';
import { SqliteStore } from '../../../src/store/sqlite/store.js';
import {
  claimOne,
  completed,
  createRun,
  document,
  documents,
  openRun,
  results,
} from '../../contract/store/builders.js';
import { FakeClock } from '../../support/fake-clock.js';
import { waitFor } from '../../support/wait-for.js';
import { type Child, startChild } from './child.js';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-connection-'));
  path = join(folder, 'llm-batch.db');
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

describe('a store that another program holds locked', () => {
  let holder: Child;

  async function lock(): Promise<void> {
    holder = startChild(
      `const database = new Database(path);
       database.exec('BEGIN IMMEDIATE'); said('locked');
       await told();
       database.exec('COMMIT'); said('free');`,
      path,
    );
    await holder.said('locked');
  }

  afterEach(() => holder.kill());

  it('is waited for without blocking the event loop, for eight seconds of lock and more', async () => {
    const clock = new FakeClock();
    const store = await openStore(path, { mode: 'write', clock });
    const run = await createRun(store);
    await lock();
    let added = false;
    const adding = store.addTasks(run.id, documents(3)).then((report) => {
      added = true;
      return report;
    });
    // Every try ends in a timer of the clock: between two tries the event loop is ours, as this loop is.
    for (let tries = 0; clock.monotonicMs() < 8_000; tries += 1) {
      await waitFor('a try that ends in a timer', () => clock.pendingTimers === 1);
      expect(added).toBe(false);
      expect(tries).toBeLessThan(20);
      await clock.advance(500);
    }
    expect(await store.listRuns()).toHaveLength(1);
    holder.tell();
    await holder.said('free');
    await waitFor('the next try', async () => {
      await clock.advance(500);
      return added;
    });
    expect(await adding).toEqual({ added: 3, duplicates: 0 });
    await store.close();
  });

  it('is given up after half a minute, with nothing written', async () => {
    const clock = new FakeClock();
    const store = await openStore(path, { mode: 'write', clock });
    await lock();
    const creating = createRun(store);
    const refused = expect(creating).rejects.toMatchObject({
      code: 'STORE_BUSY',
      exitCode: 5,
      hint: expect.stringContaining('resume'),
    });
    let settled = false;
    void creating.catch(() => {
      settled = true;
    });
    await waitFor('the end of patience', async () => {
      await clock.advance(1_000);
      return settled;
    });
    await refused;
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(30_000);
    expect(await store.listRuns()).toEqual([]);
    await store.close();
  });

  it('is waited for at the start, too', async () => {
    await (await openStore(path, { mode: 'write', clock: systemClock })).close();
    await lock();
    const clock = new FakeClock();
    const opening = openStore(path, { mode: 'write', clock });
    await waitFor('a try that ends in a timer', () => clock.pendingTimers === 1);
    holder.tell();
    await holder.said('free');
    await clock.advance(1_000);
    await (await opening).close();
  });
});

describe('a full disk', () => {
  it('is an error of its own; what was committed is there, and work goes on when there is room', async () => {
    const connection = await openDatabase(path, { mode: 'write', clock: systemClock });
    const store = new SqliteStore(connection, { mode: 'write', clock: systemClock });
    const run = await createRun(store);
    const page = (from: number): NewTask[] =>
      Array.from({ length: 50 }, (_, index) => document(from + index, { body: 'x'.repeat(1_000) }));
    connection.database.pragma('max_page_count = 200');
    let added = 0;
    const filling = async (): Promise<void> => {
      for (;;) added += (await store.addTasks(run.id, page(added + 1))).added;
    };
    await expect(filling()).rejects.toMatchObject({ code: 'STORE_FULL', exitCode: 5 });
    expect(added).toBeGreaterThan(0);
    expect(connection.database.pragma('integrity_check', { simple: true })).toBe('ok');
    expect((await store.summarizeRun(run.id)).counts.ready).toBe(added);

    connection.database.pragma('max_page_count = 100000');
    expect(await store.addTasks(run.id, page(added + 1))).toEqual({ added: 50, duplicates: 0 });
    expect(await store.addTasks(run.id, page(added + 1))).toEqual({ added: 0, duplicates: 50 });
    await store.close();
  });

  it('keeps a paid answer recordable: the same record succeeds later, once', async () => {
    const connection = await openDatabase(path, { mode: 'write', clock: systemClock });
    const store = new SqliteStore(connection, { mode: 'write', clock: systemClock });
    const runId = await openRun(store, documents(1));
    const task = await claimOne(store, runId);
    const answer = { outputJson: JSON.stringify('y'.repeat(100_000)), model: 'm', finishReason: 'stop' };
    const outcome = completed(task, null, answer);
    const pages = connection.database.pragma('page_count', { simple: true }) as number;
    connection.database.pragma(`max_page_count = ${pages}`);
    await expect(store.record([], [outcome])).rejects.toMatchObject({ code: 'STORE_FULL' });
    expect((await store.summarizeRun(runId)).counts).toMatchObject({ in_progress: 1, completed: 0 });
    connection.database.pragma(`max_page_count = ${pages + 1_000}`);
    expect((await store.record([], [outcome])).lostTaskIds).toEqual([]);
    expect((await results(store, runId))[0]?.result).toEqual(answer);
    await store.close();
  });
});

describe('a long export', () => {
  it('does not keep the write-ahead log from being cut back', async () => {
    const writer = await openStore(path, { mode: 'write', clock: systemClock });
    const reader = await openStore(path, { mode: 'read', clock: systemClock });
    const run = await createRun(writer);
    const page = { runId: run.id, only: 'all', afterLine: 0, limit: 10, includeBody: true } as const;
    for (let from = 0; from < 40_000; from += 2_000) {
      await writer.addTasks(
        run.id,
        Array.from({ length: 2_000 }, (_, index) => document(from + index + 1, { body: 'x'.repeat(1_000) })),
      );
      await reader.readResults(page);
    }
    // More than 40 MB were written; the log starts again from its beginning after each checkpoint.
    expect(statSync(`${path}-wal`).size).toBeLessThan(30_000_000);
    await reader.close();
    await writer.close();
  });
});
