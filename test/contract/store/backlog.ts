/** What is open in a store as a whole: what is asked of every backend. */
import { describe, expect, it } from 'vitest';
import { claimOne, completed, document, openRun, retried } from './builders.js';
import type { StoreOf } from './store-of.js';

export function backlogContract(storeOf: StoreOf): void {
  describe('the backlog', () => {
    it('is empty in a store without open tasks', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [document(1)]);
      await store.record([], [completed(await claimOne(store, runId))]);
      expect(await store.readBacklog()).toEqual({ parts: [], oldestMs: null });
    });

    it('counts the open tasks of all runs by state and priority', async () => {
      const store = await storeOf();
      const urgent = { priority: 9 };
      const first = await openRun(store, [document(1, urgent), document(2, urgent), document(3)], 'first');
      const second = await openRun(store, [document(1), document(2)], 'second');
      await openRun(store, [document(1)], 'deleted').then((runId) => store.deleteRun(runId));
      await claimOne(store, first);
      await store.record([], [retried(await claimOne(store, second))]);
      const { parts, oldestMs } = await store.readBacklog();
      expect(parts).toEqual([
        { state: 'delayed', priority: 0, tasks: 1 },
        { state: 'in_progress', priority: 9, tasks: 1 },
        { state: 'ready', priority: 0, tasks: 2 },
        { state: 'ready', priority: 9, tasks: 1 },
      ]);
      expect(oldestMs).toBeGreaterThanOrEqual(0);
    });
  });
}
