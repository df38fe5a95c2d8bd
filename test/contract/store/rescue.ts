import { describe, expect, it } from 'vitest';
import {
  callStart,
  claim,
  claimAndCall,
  claimOne,
  completed,
  documents,
  NOW_MS,
  openRun,
  released,
  results,
  startCall,
  WORKER,
} from './builders.js';
import type { StoreOf } from './store-of.js';

const NOTHING = { rescued: 0, lostCalls: 0, poisoned: 0 };

export function rescueContract(storeOf: StoreOf): void {
  describe('rescue', () => {
    it('puts back what a worker had in progress whose death somebody has seen, whatever its lease', async () => {
      const store = await storeOf();
      const first = await openRun(store, documents(2), 'first');
      const second = await openRun(store, documents(1), 'second');
      const [task] = await claim(store, first, 2);
      await claimOne(store, second);
      if (!task) throw new Error('claimed too few');
      await startCall(store, first, task);
      const restarted = await storeOf.again();
      expect(await restarted.rescueTasks({ workers: ['nobody'], crashLimit: 3 })).toEqual(NOTHING);
      expect(await restarted.rescueTasks({ workers: ['nobody', WORKER], crashLimit: 3 })).toEqual({
        rescued: 3,
        lostCalls: 1,
        poisoned: 0,
      });
      expect((await restarted.summarizeRun(first)).counts).toMatchObject({ ready: 2, in_progress: 0 });
      expect((await restarted.summarizeRun(second)).counts).toMatchObject({ ready: 1, in_progress: 0 });
    });

    it('counts a crash for tasks whose calls were open, for none that was only claimed, and uses no attempt', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(3));
      const [called] = await claim(store, runId, 2);
      if (!called) throw new Error('claimed too few');
      await startCall(store, runId, called);
      await store.rescueTasks({ workers: [WORKER], crashLimit: 3 });
      expect(await claim(store, runId, 3)).toMatchObject([
        { line: 1, crashCount: 1, attempts: 0 },
        { line: 2, crashCount: 0, attempts: 0 },
        { line: 3, crashCount: 0, attempts: 0 },
      ]);
      expect((await store.summarizeRun(runId)).calls).toMatchObject({ made: 1, repeated: 1, late: 0 });
    });

    it('ends the calls of a dead worker whose tasks had left it before', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      const task = await claimOne(store, runId);
      await startCall(store, runId, task);
      await store.record([], [released(task)]);
      await claimOne(store, runId, 'worker-2');
      expect(await store.rescueTasks({ workers: [WORKER], crashLimit: 3 })).toEqual({
        rescued: 0,
        lostCalls: 1,
        poisoned: 0,
      });
      expect((await store.summarizeRun(runId)).counts.in_progress).toBe(1);
    });

    it('counts a crash for every task of a call that was open, and blames none of several', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(3));
      const tasks = await claim(store, runId, 3);
      await store.record([callStart(runId, tasks.slice(0, 2))], []);
      expect(await store.rescueTasks({ workers: [WORKER], crashLimit: 1 })).toEqual({
        rescued: 3,
        lostCalls: 1,
        poisoned: 0,
      });
      expect((await claim(store, runId, 3)).map(({ crashCount }) => crashCount)).toEqual([1, 1, 0]);
    });

    it('parks a document whose call alone was open at too many crashes, as failed by poison', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      for (const poisoned of [0, 0, 1]) {
        await startCall(store, runId, await claimOne(store, runId));
        const report = await store.rescueTasks({ workers: [WORKER], crashLimit: 3 });
        expect(report).toEqual({ rescued: 1 - poisoned, lostCalls: 1, poisoned });
      }
      expect(await claim(store, runId, 9)).toEqual([]);
      expect(await results(store, runId)).toMatchObject([
        { state: 'failed', settledAtMs: NOW_MS, error: { kind: 'poison' }, result: null, usage: null },
      ]);
      expect((await store.summarizeRun(runId)).failedByKind).toEqual({ poison: 1 });
      expect(await store.retryTasks(runId, { kind: 'poison' })).toBe(1);
      const task = await claimOne(store, runId);
      expect(task.crashCount).toBe(0);
      await startCall(store, runId, task);
      const afterwards = await store.rescueTasks({ workers: [WORKER], crashLimit: 2 });
      expect(afterwards.poisoned).toBe(0);
    });

    it('never parks a document that was only claimed, however often', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      for (let crash = 0; crash < 6; crash += 1) {
        expect((await claimOne(store, runId)).crashCount).toBe(0);
        const report = await store.rescueTasks({ workers: [WORKER], crashLimit: 3 });
        expect(report).toEqual({ rescued: 1, lostCalls: 0, poisoned: 0 });
      }
    });

    it('counts no crash for a process that had been asked to end, and every one after it again', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      for (const [asked, crashCount] of [
        [true, 0],
        [true, 0],
        [false, 1],
      ] as const) {
        await startCall(store, runId, await claimOne(store, runId));
        if (asked) await store.noteStop(WORKER);
        const report = await store.rescueTasks({ workers: [WORKER], crashLimit: 1 });
        expect(report).toEqual({ rescued: 1 - crashCount, lostCalls: 1, poisoned: crashCount });
      }
    });

    it('never parks a task of a crowd: of several nobody can tell which it was', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(5));
      for (let crash = 0; crash < 2; crash += 1) {
        await claimAndCall(store, runId, 5);
        const report = await store.rescueTasks({ workers: [WORKER], crashLimit: 1 });
        expect(report).toEqual({ rescued: 5, lostCalls: 5, poisoned: 0 });
      }
    });

    it('finds the one document that brings every process down, in few crashes, and blames no other', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(100));
      let crashes = 0;
      for (;;) {
        const tasks = await claimAndCall(store, runId, 16);
        if (tasks.length === 0) break;
        if (tasks.some((task) => task.line === 37)) {
          crashes += 1;
          await store.rescueTasks({ workers: [WORKER], crashLimit: 3 });
        } else {
          await store.record(
            [],
            tasks.map((task) => completed(task)),
          );
        }
      }
      expect(crashes).toBe(5);
      expect(await results(store, runId, 'failed')).toMatchObject([{ line: 37, error: { kind: 'poison' } }]);
      expect((await store.summarizeRun(runId)).counts).toMatchObject({ completed: 99, failed: 1 });
    });

    it('finds nothing to do in a store that was closed in order', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(2));
      await store.record([], [completed(await claimOne(store, runId))]);
      expect(await store.rescueTasks({ workers: [WORKER], crashLimit: 3 })).toEqual(NOTHING);
    });
  });
}
