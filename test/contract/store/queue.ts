import { describe, expect, it } from 'vitest';
import { type LeasedTask, MOST_CRASHED_TOGETHER } from '../../../src/core/task.js';
import type { Store } from '../../../src/store/store.js';
import {
  claim,
  claimAndCall,
  claimOne,
  completed,
  document,
  documents,
  drain,
  failed,
  LEASE_MS,
  openRun,
  RERUN,
  released,
  results,
  retried,
  WORKER,
} from './builders.js';
import type { StoreOf } from './store-of.js';

export function queueContract(storeOf: StoreOf): void {
  describe('claims', () => {
    it('come by priority, higher first, then in input order', async () => {
      const store = await storeOf();
      const priorities = [0, 5, -1, 5, 0.5, 0];
      const runId = await openRun(
        store,
        priorities.map((priority, index) => document(index + 1, { priority })),
      );
      const first = await claim(store, runId, 3);
      const second = await claim(store, runId, 10);
      expect([...first, ...second].map((task) => task.line)).toEqual([2, 4, 5, 1, 6, 3]);
      expect(first).toHaveLength(3);
    });

    it('of a lowest priority leave what is below it, suspects too, as if it were not ready', async () => {
      const store = await storeOf();
      const runId = await openRun(
        store,
        [0, 5, -1, 0.5].map((priority, index) => document(index + 1, { priority })),
      );
      const atLeast = async (atLeastPriority: number) =>
        store.claimTasks({ runId, workerId: WORKER, limit: 9, leaseMs: LEASE_MS, atLeastPriority });
      expect(await atLeast(6)).toEqual([]);
      expect((await atLeast(0.5)).map(({ line }) => line)).toEqual([2, 4]);
      expect(await atLeast(0.5)).toEqual([]);
      expect((await atLeast(-1)).map(({ line }) => line)).toEqual([1, 3]);
    });

    it('follow the line, not the order of adding', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [document(3), document(1), document(2)]);
      expect((await claim(store, runId, 3)).map((task) => task.line)).toEqual([1, 2, 3]);
    });

    it('hand out what a call needs', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [document(7, { key: 'seven', body: '{"text":"7"}' })]);
      const task = await claimOne(store, runId);
      expect(task).toEqual({
        taskId: task.taskId,
        line: 7,
        key: 'seven',
        body: '{"text":"7"}',
        attempts: 0,
        crashCount: 0,
        throttledForMs: null,
        attemptToken: task.attemptToken,
      });
    });

    it('never hand out a task twice, to whomever', async () => {
      const store = await storeOf();
      const other = await storeOf.again();
      const runId = await openRun(store, documents(20));
      const claims = await Promise.all([store, other, store, other].map((each) => claim(each, runId, 7)));
      const ids = claims.flat().map((task) => task.taskId);
      expect(ids).toHaveLength(20);
      expect(new Set(ids).size).toBe(20);
    });

    it('stay among the tasks that are wanted, and wait for none but those', async () => {
      const store = await storeOf();
      const runId = await openRun(
        store,
        [1, 2, 3, 4].map((line) => document(line, { priority: -line })),
      );
      const ids = (await store.listTasks(runId, 0, 9)).map(({ taskId }) => taskId);
      const among = [ids[1] as number, ids[3] as number];
      const claimAmong = (limit: number) =>
        store.claimTasks({ runId, workerId: WORKER, limit, leaseMs: LEASE_MS, among });
      const [second] = await claimAmong(1);
      const [fourth, ...others] = await claimAmong(9);
      expect([second?.line, fourth?.line, others]).toEqual([2, 4, []]);
      await store.record([], [retried(await claimOne(store, runId), 5_000)]);
      expect(await store.nextDueMs(runId, among)).toBeNull();
      if (!fourth) throw new Error('claimed too few');
      await store.record([], [retried(fourth, 7_000)]);
      expect(await store.nextDueMs(runId, among)).toBe(7_000);
      expect(await store.nextDueMs(runId)).toBe(5_000);
    });

    it('stay within their run', async () => {
      const store = await storeOf();
      const first = await openRun(store, documents(1), 'first');
      const second = await openRun(store, documents(3), 'second');
      expect(await claim(store, first, 10)).toHaveLength(1);
      expect(await claim(store, first, 10)).toEqual([]);
      expect(await claim(store, second, 10)).toHaveLength(3);
    });

    it('give every task and every claim a token of its own', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(3));
      const first = await claim(store, runId, 3);
      await store.record(
        [],
        first.map((task) => released(task)),
      );
      const second = await claim(store, runId, 3);
      expect(new Set([...first, ...second].map((task) => task.attemptToken)).size).toBe(6);
    });
  });

  describe('delayed tasks', () => {
    it('are not claimed before they are due, and are then', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      await store.record([], [retried(await claimOne(store, runId), 5_000)]);
      await storeOf.passTime(4_999);
      expect(await claim(store, runId, 1)).toEqual([]);
      expect((await store.summarizeRun(runId)).counts).toMatchObject({ ready: 0, delayed: 1 });
      await storeOf.passTime(1);
      expect(await claim(store, runId, 1)).toHaveLength(1);
    });

    it('take their old place once they are due', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [document(1), document(2, { priority: 1 }), document(3)]);
      const tasks = await claim(store, runId, 2);
      await store.record(
        [],
        tasks.map((task) => retried(task, 10)),
      );
      await storeOf.passTime(10);
      expect((await claim(store, runId, 9)).map((task) => task.line)).toEqual([2, 1, 3]);
    });

    it('are all claimed when more come due at once than one claim promotes', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(700));
      const tasks = await claim(store, runId, 700);
      await store.record(
        [],
        tasks.map((task) => released(task, 10)),
      );
      await storeOf.passTime(10);
      expect(await claim(store, runId, 600)).toHaveLength(600);
      expect(await claim(store, runId, 600)).toHaveLength(100);
    });

    it('say when the next of them is due', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(3));
      const other = await openRun(store, documents(1), 'other');
      expect(await store.nextDueMs(runId)).toBeNull();
      const [first, second] = await claim(store, runId, 2);
      if (!first || !second) throw new Error('claimed too few');
      await store.record([], [retried(first, 900), released(second, 700)]);
      expect(await store.nextDueMs(runId)).toBe(700);
      expect(await store.nextDueMs(other)).toBeNull();
      await storeOf.passTime(710);
      expect(await store.nextDueMs(runId)).toBe(0);
      await claim(store, runId, 9);
      expect(await store.nextDueMs(runId)).toBe(190);
    });

    it('may be due at a fraction of a millisecond', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      await store.record([], [retried(await claimOne(store, runId), 10.4)]);
      await storeOf.passTime(11.7);
      expect(await claim(store, runId, 1)).toHaveLength(1);
    });
  });

  describe('the list of work', () => {
    it('names each run with tasks to claim, ready or due, and the highest priority of them', async () => {
      const store = await storeOf();
      const first = await openRun(
        store,
        [1, 7, 3].map((priority, index) => document(index + 1, { priority })),
        'first',
      );
      const second = await openRun(store, documents(1), 'second');
      await openRun(store, [], 'empty');
      const work = async () => [...(await store.listWork())].sort((one, other) => one.runId - other.runId);
      expect(await work()).toEqual([
        { runId: first, priority: 7 },
        { runId: second, priority: 0 },
      ]);
      const task = await claimOne(store, first);
      await claimOne(store, second);
      expect(await work()).toEqual([{ runId: first, priority: 3 }]);
      await store.record([], [retried(task, 5_000)]);
      expect(await work()).toEqual([{ runId: first, priority: 3 }]);
      await storeOf.passTime(5_001);
      expect(await work()).toEqual([{ runId: first, priority: 7 }]);
    });

    it('has no run that is being imported, was cancelled or deleted, and has a finished one that got tasks', async () => {
      const store = await storeOf();
      for (const name of ['cancelled', 'deleted', 'importing', 'finished']) {
        await openRun(store, documents(1), name);
      }
      const idOf = async (name: string): Promise<number> =>
        (await store.listRuns()).find((run) => run.name === name)?.id ?? 0;
      await store.cancelRun(await idOf('cancelled'));
      await store.deleteRun(await idOf('deleted'));
      await store.beginReimport(await idOf('importing'));
      const finished = await idOf('finished');
      await store.updateRun(finished, { status: 'finished' });
      expect(await store.listWork()).toEqual([{ runId: finished, priority: 0 }]);
    });
  });

  describe('retry of failed tasks', () => {
    it('makes all of them ready again as if they were new, and drops their errors', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(3));
      await drain(store, runId, (task, call) =>
        task.line === 2 ? completed(task, call) : failed(task, 'refused', call),
      );
      expect(await store.retryTasks(runId, {})).toBe(2);
      expect((await results(store, runId)).map((row) => row.line)).toEqual([2]);
      expect(await store.summarizeRun(runId)).toMatchObject({
        counts: { ready: 2, failed: 0, completed: 1 },
        failedByKind: {},
      });
      expect(await claim(store, runId, 9)).toMatchObject([
        { line: 1, attempts: 0 },
        { line: 3, attempts: 0 },
      ]);
      expect(await store.retryTasks(runId, {})).toBe(0);
    });

    it('takes only one kind, one key, or both', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [
        document(1, { key: 'a' }),
        document(2, { key: 'b' }),
        document(3, { key: 'b', occurrence: 1 }),
        document(4, { key: 'c' }),
      ]);
      await drain(store, runId, (task) => failed(task, task.line === 4 ? 'too_large' : 'refused'));
      expect(await store.retryTasks(runId, { kind: 'too_large', key: 'a' })).toBe(0);
      expect(await store.retryTasks(runId, { kind: 'too_large' })).toBe(1);
      expect(await store.retryTasks(runId, { key: 'b' })).toBe(2);
      expect(await store.retryTasks(runId, { kind: 'refused', key: 'a' })).toBe(1);
    });

    it('opens a finished run again, and leaves one that is not', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      await drain(store, runId, (task) => failed(task));
      await store.updateRun(runId, { status: 'finished' });
      expect(await store.retryTasks(runId, { key: 'unknown' })).toBe(0);
      expect((await store.listRuns())[0]?.status).toBe('finished');
      await store.retryTasks(runId, {});
      expect((await store.listRuns())[0]?.status).toBe('open');
    });
  });

  describe('suspects, whose calls were open at two crashes', () => {
    async function crash(store: Store): Promise<void> {
      await store.rescueTasks({ workers: [WORKER], crashLimit: 3 });
    }

    /** A run of `count` documents, the first of which are suspects. */
    async function withSuspects(store: Store, suspects: number, count: number): Promise<number> {
      const runId = await openRun(store, documents(suspects));
      for (let crashes = 0; crashes < 2; crashes += 1) {
        await claimAndCall(store, runId, suspects);
        await crash(store);
      }
      await store.addTasks(runId, documents(count).slice(suspects));
      return runId;
    }

    it('come after all others, one at a time, nothing beside them, and say how many are left', async () => {
      const store = await storeOf();
      const runId = await withSuspects(store, 2, 5);
      const others = await claim(store, runId, 9);
      expect(others.map((task) => task.line)).toEqual([3, 4, 5]);
      expect(others.some((task) => 'suspectsLeft' in task)).toBe(false);
      expect(await claim(store, runId, 9)).toEqual([]);
      const [first, ...rest] = others;
      if (!first) throw new Error('claimed too few');
      await store.record([], [completed(first), ...rest.map((task) => released(task, 1_000))]);
      for (const line of [1, 2]) {
        const claimed = await claim(store, runId, 9);
        expect(claimed).toMatchObject([{ line, crashCount: 2, suspectsLeft: 3 - line }]);
        expect(await claim(store, runId, 9)).toEqual([]);
        await store.record(
          [],
          claimed.map((task) => completed(task)),
        );
      }
      await storeOf.passTime(2_000);
      expect(await claim(store, runId, 9)).toHaveLength(2);
    });

    it('take turns: one that has just crashed alone comes after those that have not', async () => {
      const store = await storeOf();
      const runId = await withSuspects(store, 3, 3);
      for (const line of [1, 2, 3, 1, 2, 3]) {
        expect(await claimAndCall(store, runId, 9)).toMatchObject([{ line }]);
        await crash(store);
      }
      expect((await store.summarizeRun(runId)).counts).toMatchObject({ ready: 3, failed: 0 });
    });

    it('are alone with their worker whatever run the others are of, and hold no other worker up', async () => {
      const store = await storeOf();
      const runId = await withSuspects(store, 2, 2);
      const other = await openRun(store, documents(2), 'other');
      const [task] = await claim(store, other, 1);
      expect(await claim(store, runId, 9)).toEqual([]);
      await store.record([], [completed(task as LeasedTask)]);
      expect(await claim(store, runId, 9)).toHaveLength(1);
      expect(await claim(store, other, 9)).toEqual([]);
      expect(await claim(store, other, 9, 'worker-2')).toHaveLength(1);
      expect((await claim(store, runId, 9, 'worker-3')).map(({ line }) => line)).toEqual([2]);
    });

    it('stay few: of many whose calls were open at a crash, only some are in progress together', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(40));
      expect(await claimAndCall(store, runId, 40)).toHaveLength(40);
      await crash(store);
      const first = await claimAndCall(store, runId, 40);
      expect(first.map((task) => task.line)).toEqual(
        documents(MOST_CRASHED_TOGETHER).map(({ line }) => line),
      );
      expect(await claim(store, runId, 40)).toEqual([]);
      await store.record(
        [],
        first.slice(0, 3).map((task) => completed(task)),
      );
      expect(await claimAndCall(store, runId, 40)).toHaveLength(3);

      await crash(store);
      let alone = 0;
      for (;;) {
        const claimed = await claim(store, runId, 1);
        if (claimed.length === 0) break;
        if (claimed[0]?.crashCount === 2) alone += 1;
        await store.record(
          [],
          claimed.map((task) => completed(task)),
        );
      }
      expect(alone).toBe(MOST_CRASHED_TOGETHER);
    });

    it('are not suspects any more once their document was changed', async () => {
      const store = await storeOf();
      const runId = await withSuspects(store, 2, 2);
      await store.beginReimport(runId);
      const changed = documents(2).map((task) => ({ ...task, requestHash: 'another' }));
      await store.reimportTasks(runId, changed, RERUN);
      await store.finishReimport(runId);
      expect(await claim(store, runId, 9)).toMatchObject([{ crashCount: 0 }, { crashCount: 0 }]);
    });
  });
}
