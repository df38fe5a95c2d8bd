import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import {
  claim,
  claimOne,
  completed,
  document,
  documents,
  drain,
  failed,
  openRun,
  RERUN,
  results,
  retried,
} from './builders.js';
import type { StoreOf } from './store-of.js';

/** The lines of all tasks in the order the store lists them. */
async function listedLines(store: Store, runId: number, limit: number): Promise<number[]> {
  const lines: number[] = [];
  for (let afterTaskId = 0; ; ) {
    const page = await store.listTasks(runId, afterTaskId, limit);
    const last = page.at(-1);
    if (last === undefined) return lines;
    expect(page.length).toBeLessThanOrEqual(limit);
    lines.push(...page.map(({ line }) => line));
    afterTaskId = last.taskId;
  }
}

async function allTaskIds(store: Store, runId: number): Promise<number[]> {
  return (await store.listTasks(runId, 0, 1_000)).map(({ taskId }) => taskId);
}

export function tasksContract(storeOf: StoreOf): void {
  describe('tasks of any state', () => {
    it('are listed in the order they were added, other runs between them, in pages that leave none out', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(4));
      const otherId = await openRun(store, documents(3), 'other');
      await store.addTasks(runId, [document(5), document(6)]);
      for (const limit of [1, 2, 5, 100]) {
        expect(await listedLines(store, runId, limit)).toEqual([1, 2, 3, 4, 5, 6]);
        expect(await listedLines(store, otherId, limit)).toEqual([1, 2, 3]);
      }
    });

    it('are read in the order asked for, with their documents and what they have come to', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [
        document(1, { metadataJson: '{"k":1}' }),
        ...documents(5).slice(1),
      ]);
      const [one, two, three] = await claim(store, runId, 4);
      if (one === undefined || two === undefined || three === undefined) throw new Error('nothing to claim');
      await store.record([], [completed(one), failed(two, 'refused'), retried(three)]);
      const taskIds = await allTaskIds(store, runId);
      const rows = await store.readTasks(runId, taskIds.toReversed());
      expect(rows.map(({ line, state }) => [line, state])).toEqual([
        [5, 'ready'],
        [4, 'in_progress'],
        [3, 'delayed'],
        [2, 'failed'],
        [1, 'completed'],
      ]);
      const settled = await results(store, runId);
      expect(rows.slice(3).toReversed()).toEqual(settled);
      expect(rows[0]).toEqual({
        taskId: taskIds[4],
        line: 5,
        key: 'document-5',
        state: 'ready',
        attempts: 0,
        settledAtMs: null,
        result: null,
        error: null,
        usage: null,
        costMicroUsd: null,
        latencyMs: null,
        requestId: null,
        sharedFrom: null,
        metadataJson: null,
        body: '{"text":"document 5"}',
      });
    });

    it('show nothing of an answer that was taken back', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      await drain(store, runId, (task, call) => failed(task, 'refused', call));
      await store.retryTasks(runId, {});
      const [row] = await store.readTasks(runId, await allTaskIds(store, runId));
      expect(row).toMatchObject({ state: 'ready', error: null, settledAtMs: null, usage: null });
    });

    it('that are gone from the input are left out, those that moved are where they are now', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(3));
      const taskIds = await allTaskIds(store, runId);
      await store.beginReimport(runId);
      await store.reimportTasks(
        runId,
        [document(1, { key: 'document-3', requestHash: 'request-3' }), document(2)],
        RERUN,
      );
      await store.finishReimport(runId);
      expect(await listedLines(store, runId, 10)).toEqual([2, 1]);
      expect((await store.readTasks(runId, taskIds)).map(({ key }) => key)).toEqual([
        'document-2',
        'document-3',
      ]);
    });

    it('of another run, or of none, are not read', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      const otherId = await openRun(store, documents(1), 'other');
      const taskIds = await allTaskIds(store, runId);
      expect(await store.readTasks(otherId, taskIds)).toEqual([]);
      expect(await store.readTasks(runId, [...taskIds, 999])).toHaveLength(1);
      expect(await store.listTasks(999, 0, 10)).toEqual([]);
      await store.deleteRun(runId);
      expect(await store.listTasks(runId, 0, 10)).toEqual([]);
      expect(await store.readTasks(runId, taskIds)).toEqual([]);
    });

    it('that were cancelled are listed too', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(2));
      await store.record([], [completed(await claimOne(store, runId))]);
      await store.cancelRun(runId);
      const rows = await store.readTasks(runId, await allTaskIds(store, runId));
      expect(rows.map(({ state }) => state)).toEqual(['completed', 'cancelled']);
    });
  });
}
