import { describe, expect, it } from 'vitest';
import type { CallEnd } from '../../../src/core/call.js';
import type { LeasedTask } from '../../../src/core/task.js';
import type { RunTimeline, TimelineBucket } from '../../../src/core/timeline.js';
import type { Store } from '../../../src/store/store.js';
import {
  callEnd,
  claim,
  claimOne,
  completed,
  documents,
  failed,
  NOW_MS,
  openRun,
  released,
  startCall,
  USAGE,
  WORKER,
} from './builders.js';
import type { StoreOf } from './store-of.js';

const MINUTE_MS = 60_000;
const NO_USAGE = { usage: null, costMicroUsd: null };

async function tasksOf(store: Store, runId: number, count: number): Promise<LeasedTask[]> {
  const tasks = await claim(store, runId, count);
  if (tasks.length < count) throw new Error('claimed too few');
  return [...tasks];
}

async function answer(
  store: Store,
  runId: number,
  task: LeasedTask,
  startedAtMs: number,
  change: Partial<CallEnd> = {},
): Promise<void> {
  const callId = await startCall(store, runId, task, startedAtMs);
  await store.record([], [completed(task, callEnd(callId, { finishedAtMs: startedAtMs, ...change }))]);
}

function sumOf(timeline: RunTimeline | null, name: keyof TimelineBucket): number {
  return (timeline?.buckets ?? []).reduce((sum, bucket) => sum + bucket[name], 0);
}

/** Where something of this name happened, as [bucket, how much]. */
function placesOf(timeline: RunTimeline | null, name: keyof TimelineBucket): [number, number][] {
  return (timeline?.buckets ?? [])
    .map((bucket, index): [number, number] => [index, bucket[name]])
    .filter(([, amount]) => amount > 0);
}

export function timelineContract(storeOf: StoreOf): void {
  describe('timeline', () => {
    it('of a run without calls is null', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      expect(await store.readTimeline(runId, 100)).toBeNull();
      expect(await store.readLatencies(runId)).toEqual([]);
    });

    it('of a run that is not there is refused', async () => {
      const store = await storeOf();
      await expect(store.readTimeline(99, 100)).rejects.toMatchObject({ code: 'RUN_MISSING' });
      await expect(store.readLatencies(99)).rejects.toMatchObject({ code: 'RUN_MISSING' });
    });

    it('puts each call where it ended, and only those of the run', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(5));
      const other = await openRun(store, documents(1), 'other');
      const [a, b, c, d] = (await tasksOf(store, runId, 4)) as [
        LeasedTask,
        LeasedTask,
        LeasedTask,
        LeasedTask,
      ];
      const ids = await Promise.all([a, b, c, d].map((task) => startCall(store, runId, task)));
      const end = (index: number, seconds: number, change: Partial<CallEnd> = {}): CallEnd =>
        callEnd(ids[index] ?? 0, { finishedAtMs: NOW_MS + seconds * 1_000, ...change });
      await store.record(
        [],
        [
          completed(a, end(0, 10)),
          failed(b, 'truncated', end(1, 50, { kind: 'truncated', costMicroUsd: 8 })),
          released(c, null, true, end(2, 50, { ...NO_USAGE, kind: 'rate_limited' })),
          released(d, null, false, end(3, 90, { ...NO_USAGE, kind: 'aborted' })),
        ],
      );
      await answer(store, other, await claimOne(store, other), NOW_MS + 20_000);

      const timeline = await store.readTimeline(runId, 10);
      expect(timeline).toMatchObject({ bucketMs: 10_000 });
      expect(timeline?.buckets.map(({ fromMs }) => (fromMs - NOW_MS) / 10_000)).toEqual([
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
      ]);
      expect(placesOf(timeline, 'answered')).toEqual([[1, 1]]);
      expect(placesOf(timeline, 'failed')).toEqual([[5, 2]]);
      expect(placesOf(timeline, 'throttled')).toEqual([[5, 1]]);
      expect(placesOf(timeline, 'inputTokens')).toEqual([
        [1, USAGE.inputTokens],
        [5, USAGE.inputTokens],
      ]);
      expect(placesOf(timeline, 'outputTokens')).toEqual([
        [1, USAGE.outputTokens],
        [5, USAGE.outputTokens],
      ]);
      expect(placesOf(timeline, 'costMicroUsd')).toEqual([
        [1, 42],
        [5, 8],
      ]);
    });

    it('adds up to what the summary says, in however many stretches', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(40));
      const tasks = await tasksOf(store, runId, 40);
      for (const [index, task] of tasks.entries()) await answer(store, runId, task, NOW_MS + index * 7_321);
      const { calls, usage, costMicroUsd } = await store.summarizeRun(runId);
      for (const mostBuckets of [1, 2, 7, 60, 5_000]) {
        const timeline = await store.readTimeline(runId, mostBuckets);
        expect(timeline?.buckets.length).toBeLessThanOrEqual(mostBuckets);
        expect(sumOf(timeline, 'answered')).toBe(calls.made);
        expect(sumOf(timeline, 'inputTokens')).toBe(usage.inputTokens);
        expect(sumOf(timeline, 'costMicroUsd')).toBe(costMicroUsd);
      }
    });

    it('tells the most that started in any minute, and lets it go after a minute', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(5));
      const tasks = await tasksOf(store, runId, 5);
      // Three within a minute, over the border of two stretches; then one, and one much later.
      const startsMs = [50_001, 55_020, 65_300, 130_999, 400_123];
      for (const [index, task] of tasks.entries()) {
        await answer(store, runId, task, NOW_MS + (startsMs[index] ?? 0), {
          usage: { inputTokens: 60, outputTokens: 40, cachedTokens: 0, reasoningTokens: 0 },
        });
      }
      const timeline = await store.readTimeline(runId, 7);
      expect(timeline?.bucketMs).toBe(MINUTE_MS);
      expect(timeline?.buckets.map((bucket) => bucket.peakRequestsPerMinute)).toEqual([2, 3, 1, 1, 0, 0, 1]);
      expect(timeline?.buckets.map((bucket) => bucket.peakTokensPerMinute)).toEqual([
        200, 300, 100, 100, 0, 0, 100,
      ]);
    });

    it('leaves out a pause of hours, and starts after it with an empty window', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(3));
      const tasks = await tasksOf(store, runId, 3);
      // Ten minutes are no pause yet; five hours are.
      const startsMs = [1_000, 10 * MINUTE_MS, 300 * MINUTE_MS + 5_000];
      for (const [index, task] of tasks.entries()) {
        await answer(store, runId, task, NOW_MS + (startsMs[index] ?? 0));
      }
      const timeline = await store.readTimeline(runId, 20);
      expect(timeline?.bucketMs).toBe(MINUTE_MS);
      expect(timeline?.buckets.map(({ fromMs }) => (fromMs - NOW_MS) / MINUTE_MS)).toEqual([
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 300,
      ]);
      expect(placesOf(timeline, 'answered')).toEqual([
        [0, 1],
        [10, 1],
        [12, 1],
      ]);
      expect(placesOf(timeline, 'peakRequestsPerMinute').at(-1)).toEqual([12, 1]);
      const coarse = await store.readTimeline(runId, 2);
      expect(sumOf(coarse, 'answered')).toBe(3);
      expect(coarse?.buckets.length).toBeLessThanOrEqual(2);
    });

    it('counts what was reserved for a call that has not ended', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      await startCall(store, runId, await claimOne(store, runId));
      const timeline = await store.readTimeline(runId, 10);
      expect(placesOf(timeline, 'peakTokensPerMinute')).toEqual([[0, 500]]);
      expect(sumOf(timeline, 'answered') + sumOf(timeline, 'failed')).toBe(0);
    });

    it('leaves out calls that were lost, until something is heard of them', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      const task = await claimOne(store, runId);
      const callId = await startCall(store, runId, task);
      await store.rescueTasks({ workers: [WORKER], crashLimit: 3 });
      expect(sumOf(await store.readTimeline(runId, 10), 'answered')).toBe(0);
      await store.record([], [completed(task, callEnd(callId))]);
      expect(sumOf(await store.readTimeline(runId, 10), 'answered')).toBe(1);
    });
  });

  describe('latencies', () => {
    it('count every answer once, within edges that hold it', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(4));
      const tasks = await tasksOf(store, runId, 4);
      const latenciesMs = [80, 810, 812, 9_000];
      for (const [index, task] of tasks.entries()) {
        await answer(store, runId, task, NOW_MS, { latencyMs: latenciesMs[index] ?? 0 });
      }
      const counts = await store.readLatencies(runId);
      expect(counts.reduce((sum, { calls }) => sum + calls, 0)).toBe(4);
      for (const { overMs, upToMs, calls } of counts) {
        const held = latenciesMs.filter((latencyMs) => latencyMs > overMs && latencyMs <= upToMs);
        expect(held).toHaveLength(calls);
      }
      expect(counts.map(({ upToMs }) => upToMs)).toEqual(
        counts.map(({ upToMs }) => upToMs).sort((one, other) => one - other),
      );
    });
  });
}
