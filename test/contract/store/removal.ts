import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import {
  callEnd,
  claim,
  claimOne,
  completed,
  createRun,
  document,
  documents,
  drain,
  failed,
  NOW_MS,
  openRun,
  RERUN,
  results,
  retried,
  startCall,
  WORKER,
} from './builders.js';
import type { StoreOf } from './store-of.js';

const SMALL_PAGE = 2;

/** @returns how many pages it took */
async function sweep(store: Store, from: string | null = null, limit = SMALL_PAGE): Promise<number> {
  let cursor = from;
  for (let pages = 1; ; pages += 1) {
    cursor = await store.maintenance.sweepDeletedRuns(cursor, limit);
    if (cursor === null) return pages;
  }
}

export function removalContract(storeOf: StoreOf): void {
  describe('a deleted run', () => {
    it('is gone at once, before anything of it is swept up', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(6));
      await drain(store, runId);
      await store.deleteRun(runId);
      for (const each of [store, await storeOf.again()]) {
        expect(await each.listRuns()).toEqual([]);
        expect(await results(each, runId)).toEqual([]);
        const missing = { code: 'RUN_MISSING' };
        await expect(each.summarizeRun(runId)).rejects.toMatchObject(missing);
        await expect(each.updateRun(runId, { status: 'open' })).rejects.toMatchObject(missing);
        await expect(each.addTasks(runId, documents(1))).rejects.toMatchObject(missing);
        await expect(each.beginReimport(runId)).rejects.toMatchObject(missing);
        await expect(each.cancelRun(runId)).rejects.toMatchObject(missing);
        await expect(each.deleteRun(runId)).rejects.toMatchObject(missing);
      }
      expect((await store.maintenance.examine()).unsweptRuns).toBe(1);
    });

    it('is swept up in pages, by whoever comes after a crash in between, and nothing else is', async () => {
      const store = await storeOf();
      const kept = await openRun(store, documents(5), 'kept');
      const doomed = await openRun(store, documents(9), 'doomed');
      await store.addTasks(kept, documents(8));
      await drain(store, doomed);
      await drain(store, kept);
      const before = await store.summarizeRun(kept);
      await store.deleteRun(doomed);
      let cursor: string | null = null;
      for (let page = 0; page < 3; page += 1) {
        cursor = await store.maintenance.sweepDeletedRuns(cursor, SMALL_PAGE);
        expect(cursor).not.toBeNull();
      }

      const heir = await storeOf.again();
      expect((await heir.listRuns()).map((run) => run.name)).toEqual(['kept']);
      expect(await sweep(heir)).toBeGreaterThan(3);

      expect((await heir.maintenance.examine()).unsweptRuns).toBe(0);
      expect(await heir.summarizeRun(kept)).toEqual(before);
      expect(await results(heir, kept)).toHaveLength(8);
      expect(await heir.readRecentCalls(Number.MAX_SAFE_INTEGER)).toHaveLength(8);
      expect(await heir.maintenance.recount()).toEqual([]);
      expect(await heir.matchTasks(kept, [document(8), document(9)], 'server')).toEqual(['unchanged', 'new']);
    });

    it('takes with it the answers to requests that its documents ask no more', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(4));
      await drain(store, runId);
      await store.beginReimport(runId);
      const edited = documents(4).map((task) => ({ ...task, requestHash: 'edited' }));
      await store.reimportTasks(runId, edited, RERUN);
      await store.finishReimport(runId);
      await store.deleteRun(runId);
      await sweep(store);
      expect(await store.maintenance.examine()).toMatchObject({ unsweptRuns: 0, damage: [] });
    });

    it('may be one of several, deleted while others are swept up', async () => {
      const store = await storeOf();
      const runIds: number[] = [];
      for (const name of ['first', 'second', 'third']) runIds.push(await openRun(store, documents(4), name));
      for (const runId of runIds) await drain(store, runId);
      const [first = 0, second = 0, third = 0] = runIds;
      await store.deleteRun(second);
      let cursor = await store.maintenance.sweepDeletedRuns(null, SMALL_PAGE);
      cursor = await store.maintenance.sweepDeletedRuns(cursor, SMALL_PAGE);
      // What is before the place that the sweep has reached is to be swept up all the same.
      const other = await storeOf.again();
      await other.deleteRun(first);
      // Whoever has the cursor goes on.
      await sweep(other, cursor);
      expect((await store.maintenance.examine()).unsweptRuns).toBe(0);
      expect(await store.readRecentCalls(Number.MAX_SAFE_INTEGER)).toHaveLength(4);
      expect(await results(store, third)).toHaveLength(4);
    });

    it('takes tasks with it that were in progress when its process died', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(3));
      await startCall(store, runId, await claimOne(store, runId));
      await store.deleteRun(runId);
      await store.rescueTasks({ workers: [WORKER], crashLimit: 1 });
      await sweep(store);
      expect(await store.maintenance.examine()).toMatchObject({ openLeases: 0, unsweptRuns: 0 });
    });

    it('leaves room that is given back, in pages', async () => {
      const store = await storeOf();
      const long = documents(300).map((task) => ({ ...task, body: 'x'.repeat(5_000) }));
      const runId = await openRun(store, long);
      const full = (await store.maintenance.examine()).dataBytes;
      await store.deleteRun(runId);
      await sweep(store, null, 100);
      if (!store.capabilities.givesRoomBack) {
        expect(await store.maintenance.reclaimSpace(200_000)).toEqual({ reclaimedBytes: 0 });
        return;
      }
      const { freeBytes } = await store.maintenance.examine();
      expect(freeBytes).toBeGreaterThan(1_000_000);
      let pages = 0;
      let reclaimed = 0;
      for (;;) {
        const { reclaimedBytes } = await store.maintenance.reclaimSpace(200_000);
        if (reclaimedBytes === 0) break;
        expect(reclaimedBytes).toBeLessThanOrEqual(250_000);
        reclaimed += reclaimedBytes;
        pages += 1;
      }
      expect(pages).toBeGreaterThan(5);
      expect(await store.maintenance.examine()).toMatchObject({
        freeBytes: 0,
        logBytes: 0,
        dataBytes: full - reclaimed,
      });
      expect((await store.maintenance.examine()).dataBytes).toBeLessThan(full / 5);
    });

    it('cannot be one that another process drains, but one of another process that is done', async () => {
      const store = await storeOf();
      const drained = await openRun(store, documents(1), 'drained');
      const idle = await openRun(store, documents(1), 'idle');
      const owner = await storeOf.again();
      await owner.acquireDrainLock({ pid: 123, host: 'laptop', runName: 'drained', sinceMs: NOW_MS });
      await expect(store.deleteRun(drained)).rejects.toMatchObject({ code: 'STORE_LOCKED' });
      await store.deleteRun(idle);
      expect((await store.listRuns()).map((run) => run.name)).toEqual(['drained']);
      await owner.close();
      await store.deleteRun(drained);
      expect(await store.listRuns()).toEqual([]);
    });

    it('may be the own one of the process that drains, whose import was refused', async () => {
      const store = await storeOf();
      await store.acquireDrainLock({ pid: 123, host: 'laptop', runName: 'reviews', sinceMs: NOW_MS });
      const run = await createRun(store, 'reviews');
      await store.deleteRun(run.id);
      expect(await store.listRuns()).toEqual([]);
    });
  });

  describe('a cancelled run', () => {
    it('has every task cancelled that was not settled, and keeps what is', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(8));
      const other = await openRun(store, documents(2), 'other');
      const [a, b, c] = await claim(store, runId, 4);
      if (!a || !b || !c) throw new Error('claimed too few');
      await store.record([], [completed(a), failed(b, 'refused'), retried(c)]);
      await store.updateRun(runId, { haltReason: 'the account is empty' });

      await storeOf.passTime(5);
      expect(await store.cancelRun(runId)).toBe(6);

      expect((await store.summarizeRun(runId)).counts).toEqual({
        ready: 0,
        delayed: 0,
        in_progress: 0,
        completed: 1,
        failed: 1,
        cancelled: 6,
      });
      expect((await store.listRuns())[1]).toMatchObject({
        status: 'cancelled',
        stoppedAtMs: NOW_MS + 5,
        haltReason: null,
      });
      await storeOf.passTime(1e6);
      expect(await claim(store, runId, 9)).toEqual([]);
      expect(await store.nextDueMs(runId)).toBeNull();
      expect((await results(store, runId)).map((row) => row.line)).toEqual([1, 2]);
      expect((await store.summarizeRun(other)).counts.ready).toBe(2);
      expect(await store.maintenance.recount()).toEqual([]);
      expect(await store.cancelRun(runId)).toBe(0);
      // As a worker would that has just drained what it had of it.
      expect(await store.updateRun(runId, { status: 'finished' })).toMatchObject({ status: 'cancelled' });
    });

    it('takes no answer of a worker that does not know yet, but the bill of its call', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      const task = await claimOne(store, runId);
      const callId = await startCall(store, runId, task);
      await store.cancelRun(runId);
      const late = completed(task, callEnd(callId));
      expect((await store.record([], [late])).lostTaskIds).toEqual([task.taskId]);
      expect(await store.summarizeRun(runId)).toMatchObject({
        counts: { cancelled: 1, completed: 0 },
        costMicroUsd: 42,
      });
    });

    it('may be one whose import was cut off', async () => {
      const store = await storeOf();
      const run = await createRun(store);
      await store.addTasks(run.id, documents(3));
      expect(await store.cancelRun(run.id)).toBe(3);
    });
  });

  describe('a recount', () => {
    it('finds nothing after work of every kind', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(30));
      await openRun(store, documents(2), 'idle');
      await drain(store, runId, (task, call) => {
        if (task.line % 3 === 0)
          return failed(task, 'refused', { ...call, kind: 'refused', costMicroUsd: 0.1 });
        return completed(task, { ...call, costMicroUsd: task.line / 7, latencyMs: task.line });
      });
      await store.retryTasks(runId, {});
      await startCall(store, runId, await claimOne(store, runId));
      await store.rescueTasks({ workers: [WORKER], crashLimit: 3 });
      await store.beginReimport(runId);
      await store.reimportTasks(runId, documents(12), RERUN);
      await store.finishReimport(runId);
      expect(await store.maintenance.recount()).toEqual([]);
    });
  });
}
