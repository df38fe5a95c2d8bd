import { describe, expect, it } from 'vitest';
import type { SharingOptions, Store } from '../../../src/store/store.js';
import {
  claim,
  claimOne,
  completed,
  createRun,
  document,
  drain,
  failed,
  NOW_MS,
  openRun,
  RERUN,
  released,
  results,
  retried,
} from './builders.js';
import type { StoreOf } from './store-of.js';

const SAME = { requestHash: 'sha256:the-very-same-request' };

async function pair(store: Store, options: Partial<SharingOptions> & { runId: number }): Promise<void> {
  let cursor: string | null = null;
  // Two tasks a page: whatever holds over pages holds within one.
  do cursor = await store.pairTasks({ dedupe: false, reuseFrom: [], ...options }, cursor, 2);
  while (cursor !== null);
}

async function settleAll(store: Store, runId: number): Promise<number> {
  let settled = 0;
  let afterTaskId: number | null = 0;
  while (afterTaskId !== null) {
    const page = await store.settlePairs(runId, afterTaskId, 2);
    settled += page.settledTaskIds.length;
    afterTaskId = page.lastTaskId;
  }
  return settled;
}

async function linesToCall(store: Store, runId: number): Promise<number[]> {
  return (await claim(store, runId, 100)).map(({ line }) => line);
}

export function sharingContract(storeOf: StoreOf): void {
  describe('sharing answers', () => {
    it('hands out the first of equal requests alone, and gives the others its answer for nothing', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [
        document(1, SAME),
        document(2),
        document(3, SAME),
        document(4, SAME),
      ]);
      await pair(store, { runId, dedupe: true });
      expect((await store.summarizeRun(runId)).shared).toEqual({
        withinRun: 0,
        fromEarlierRuns: 0,
        waiting: 2,
      });
      const lines: number[] = [];
      await drain(store, runId, (task, call) => {
        lines.push(task.line);
        return completed(task, call, {
          outputJson: `"${task.line}"`,
          model: 'm',
          finishReason: 'stop',
          detailsJson: '{"reasoning":"Hm"}',
          responseJson: `{"id":"of ${task.line}"}`,
        });
      });
      expect(lines).toEqual([1, 2]);
      await storeOf.passTime(5_000);
      expect(await settleAll(store, runId)).toBe(2);
      const rows = await results(store, runId);
      expect(rows.map(({ line, result }) => [line, result?.outputJson])).toEqual([
        [1, '"1"'],
        [2, '"2"'],
        [3, '"1"'],
        [4, '"1"'],
      ]);
      expect(rows[2]).toMatchObject({
        attempts: 0,
        usage: null,
        costMicroUsd: 0,
        latencyMs: null,
        sharedFrom: 'run',
        settledAtMs: NOW_MS + 5_000,
      });
      const page = { runId, only: 'all', afterLine: 2, limit: 1, includeBody: false } as const;
      const [shared] = await store.readResults({ ...page, includeResponse: true });
      expect(shared?.result).toMatchObject({
        detailsJson: '{"reasoning":"Hm"}',
        responseJson: '{"id":"of 1"}',
      });
      expect(rows[0]).toMatchObject({ sharedFrom: null, costMicroUsd: 42 });
      const summary = await store.summarizeRun(runId);
      expect(summary.counts).toMatchObject({ ready: 0, completed: 4 });
      expect(summary.shared).toEqual({ withinRun: 2, fromEarlierRuns: 0, waiting: 0 });
      expect(summary.costMicroUsd).toBe(84);
      expect(await store.maintenance.recount()).toEqual([]);
    });

    it('lets those wait whose answer is not there yet', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [document(1, SAME), document(2, SAME)]);
      await pair(store, { runId, dedupe: true });
      const leader = await claimOne(store, runId);
      expect(await settleAll(store, runId)).toBe(0);
      expect(await claim(store, runId, 10)).toEqual([]);
      await store.record([], [completed(leader)]);
      expect(await settleAll(store, runId)).toBe(1);
    });

    it('hands out the one of the highest priority, whose answer nobody has to wait longer for', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [
        document(1, SAME),
        document(2, { priority: 5 }),
        document(3, { ...SAME, priority: 9 }),
        document(4, { ...SAME, priority: 9 }),
      ]);
      await pair(store, { runId, dedupe: true });
      expect(await linesToCall(store, runId)).toEqual([3, 2]);
    });

    it('pairs one that waits for its next try as well, and calls it no more', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [document(1, SAME), document(2, SAME)]);
      const [one, two] = await claim(store, runId, 2);
      if (!one || !two) throw new Error('claimed too few');
      await store.record([], [released(one), retried(two, 1_000)]);
      await pair(store, { runId, dedupe: true });
      expect((await store.summarizeRun(runId)).counts).toMatchObject({ ready: 2, delayed: 0 });
      expect(await store.nextDueMs(runId)).toBeNull();
      await storeOf.passTime(2_000);
      await store.record([], [completed(await claimOne(store, runId))]);
      expect(await claim(store, runId, 10)).toEqual([]);
      expect(await settleAll(store, runId)).toBe(1);
      expect(await store.maintenance.recount()).toEqual([]);
    });

    it('gives a failure to those that waited for it, and hands all out again after a retry', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [document(1, SAME), document(2, SAME)]);
      await pair(store, { runId, dedupe: true });
      await drain(store, runId, (task, call) => failed(task, 'refused', call));
      expect(await store.settlePairs(runId, 0, 10)).toMatchObject({
        settledTaskIds: [expect.any(Number)],
        failed: 1,
      });
      const rows = await results(store, runId, 'failed');
      expect(rows.map(({ line, error }) => [line, error?.kind])).toEqual([
        [1, 'refused'],
        [2, 'refused'],
      ]);
      expect((await store.summarizeRun(runId)).failedByKind).toEqual({ refused: 2 });
      expect(await store.retryTasks(runId, {})).toBe(2);
      expect(await store.maintenance.recount()).toEqual([]);
      expect(await linesToCall(store, runId)).toEqual([1, 2]);
    });

    it('takes completed answers of the runs that are named, and of no other', async () => {
      const store = await storeOf();
      const named = await openRun(store, [document(1), document(2), document(3)], 'named');
      await drain(store, named, (task, call) =>
        task.line === 2 ? failed(task, 'refused', call) : completed(task, call),
      );
      const other = await openRun(store, [document(4)], 'other');
      await drain(store, other);
      const runId = await openRun(
        store,
        [1, 2, 3, 4, 5].map((line) => document(line)),
        'new',
      );
      await pair(store, { runId, reuseFrom: [named] });
      expect(await settleAll(store, runId)).toBe(2);
      const rows = await results(store, runId);
      expect(rows.map(({ line, sharedFrom }) => [line, sharedFrom])).toEqual([
        [1, 'earlier_run'],
        [3, 'earlier_run'],
      ]);
      expect((await store.summarizeRun(runId)).shared).toEqual({
        withinRun: 0,
        fromEarlierRuns: 2,
        waiting: 0,
      });
      expect(await linesToCall(store, runId)).toEqual([2, 4, 5]);
      expect(await store.maintenance.recount()).toEqual([]);
    });

    it('prefers an answer that is there to a document that has yet to be called', async () => {
      const store = await storeOf();
      const earlier = await openRun(store, [document(1, SAME)], 'earlier');
      await drain(store, earlier);
      const runId = await openRun(store, [document(1, SAME), document(2, SAME)], 'new');
      await pair(store, { runId, dedupe: true, reuseFrom: [earlier] });
      expect(await settleAll(store, runId)).toBe(2);
      expect(await linesToCall(store, runId)).toEqual([]);
    });

    it('takes an answer of the run itself, though its document comes later', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [
        document(1, { ...SAME, priority: 0 }),
        document(2, { ...SAME, priority: 9 }),
      ]);
      await store.record([], [completed(await claimOne(store, runId))]);
      await pair(store, { runId, dedupe: true });
      expect(await settleAll(store, runId)).toBe(1);
      expect((await results(store, runId)).map(({ sharedFrom }) => sharedFrom)).toEqual(['run', null]);
    });

    it('calls what waited for an answer that is gone with its run', async () => {
      const store = await storeOf();
      const earlier = await openRun(store, [document(1)], 'earlier');
      await drain(store, earlier);
      const runId = await openRun(store, [document(1)], 'new');
      await pair(store, { runId, reuseFrom: [earlier] });
      await store.deleteRun(earlier);
      let cursor: string | null = null;
      do cursor = await store.maintenance.sweepDeletedRuns(cursor, 10);
      while (cursor !== null);
      expect(await settleAll(store, runId)).toBe(0);
      expect(await linesToCall(store, runId)).toEqual([1]);
    });

    it('is undone by pairing anew with nothing to share', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [document(1, SAME), document(2, SAME), document(3, SAME)]);
      await pair(store, { runId, dedupe: true });
      await pair(store, { runId });
      expect(await linesToCall(store, runId)).toEqual([1, 2, 3]);
      expect(await store.maintenance.recount()).toEqual([]);
    });

    it('ends for a document that was edited, and leaves it to its own call', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [document(1, SAME), document(2, SAME)]);
      await pair(store, { runId, dedupe: true });
      await store.beginReimport(runId);
      await store.reimportTasks(runId, [document(1, SAME), document(2)], RERUN);
      await store.finishReimport(runId);
      expect(await linesToCall(store, runId)).toEqual([1, 2]);
    });

    it('gives no answer to a request that was edited after the pairing', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [document(1, SAME), document(2, SAME)]);
      await pair(store, { runId, dedupe: true });
      await store.beginReimport(runId);
      await store.reimportTasks(runId, [document(1), document(2, SAME)], RERUN);
      await store.finishReimport(runId);
      await drain(store, runId);
      expect(await settleAll(store, runId)).toBe(0);
      expect(await linesToCall(store, runId)).toEqual([2]);
    });

    it('goes on from where another process has left it', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [document(1, SAME), document(2, SAME), document(3, SAME)]);
      await pair(store, { runId, dedupe: true });
      await store.record([], [completed(await claimOne(store, runId))]);
      const other = await storeOf.again();
      await pair(other, { runId, dedupe: true });
      expect(await settleAll(other, runId)).toBe(2);
    });

    it('goes on over another connection from where a page has come to', async () => {
      const store = await storeOf();
      const runId = await openRun(
        store,
        [1, 2, 3, 4, 5, 6].map((line) => document(line, SAME)),
      );
      const options = { runId, dedupe: true, reuseFrom: [] };
      const other = await storeOf.again();
      for (const pages of [1, 2, 3, 4, 5]) {
        let cursor: string | null = null;
        for (let page = 0; page < pages; page += 1) cursor = await store.pairTasks(options, cursor, 2);
        while (cursor !== null) cursor = await other.pairTasks(options, cursor, 2);
        expect((await store.summarizeRun(runId)).shared.waiting).toBe(5);
      }
    });

    it('ends with a run that is cancelled', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [document(1, SAME), document(2, SAME)]);
      await pair(store, { runId, dedupe: true });
      expect(await store.cancelRun(runId)).toBe(2);
      expect((await store.summarizeRun(runId)).shared.waiting).toBe(0);
      expect(await store.maintenance.recount()).toEqual([]);
    });

    it('changes nothing in a run without documents', async () => {
      const store = await storeOf();
      const { id: runId } = await createRun(store);
      await pair(store, { runId, dedupe: true });
      expect(await settleAll(store, runId)).toBe(0);
    });
  });
}
