import { describe, expect, it } from 'vitest';
import type { CallEnd } from '../../../src/core/call.js';
import type { LeasedTask } from '../../../src/core/task.js';
import {
  callEnd,
  callStart,
  claim,
  claimOne,
  completed,
  documents,
  failed,
  NOW_MS,
  openRun,
  released,
  retried,
  startCall,
  USAGE,
  WORKER,
} from './builders.js';
import type { StoreOf } from './store-of.js';

export function summaryContract(storeOf: StoreOf): void {
  describe('summary', () => {
    it('of a run that has done nothing is all zero', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(2));
      expect(await store.summarizeRun(runId)).toEqual({
        counts: { ready: 2, delayed: 0, in_progress: 0, completed: 0, failed: 0, cancelled: 0 },
        gone: 0,
        calls: { made: 0, open: 0, failed: 0, repeated: 0, late: 0 },
        usage: { inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 },
        costMicroUsd: 0,
        callsWithoutCost: 0,
        inDoubt: { calls: 0, withoutUsage: 0, tokens: 0, costMicroUsd: 0 },
        shared: { withinRun: 0, fromEarlierRuns: 0, waiting: 0 },
        lanes: [],
        failedByKind: {},
        latencyMs: null,
        firstCallAtMs: null,
        lastCallAtMs: null,
      });
    });

    it('counts tasks by state and failures by kind', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(8));
      const [a, b, c, d, e] = await claim(store, runId, 6);
      if (!a || !b || !c || !d || !e) throw new Error('claimed too few');
      await store.record(
        [],
        [completed(a), failed(b, 'refused'), failed(c, 'refused'), failed(d, 'too_large')],
      );
      await store.record([], [retried(e)]);
      expect(await store.summarizeRun(runId)).toMatchObject({
        counts: { ready: 2, delayed: 1, in_progress: 1, completed: 1, failed: 3, cancelled: 0 },
        failedByKind: { refused: 2, too_large: 1 },
      });
    });

    it('counts with the most it can be what may have been billed without our knowing', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(6));
      const [cutOff, refused, redirected, unreadable, crashed, late] = await claim(store, runId, 6);
      if (!cutOff || !refused || !redirected || !unreadable) throw new Error('claimed too few');
      if (!crashed || !late) throw new Error('claimed too few');
      const nothing = { usage: null, costMicroUsd: null, requestId: null } as const;
      const end = async (task: LeasedTask, change: Partial<CallEnd>): Promise<CallEnd> =>
        callEnd(await startCall(store, runId, task), { ...nothing, ...change });
      await store.record(
        [],
        [
          released(cutOff, null, false, await end(cutOff, { kind: 'aborted', httpStatus: null })),
          failed(
            refused,
            'invalid_request',
            await end(refused, { kind: 'invalid_request', httpStatus: 400 }),
          ),
          released(redirected, null, false, await end(redirected, { kind: 'not_found', httpStatus: 307 })),
          failed(unreadable, 'network', await end(unreadable, { kind: 'network', httpStatus: 200 })),
        ],
      );
      await startCall(store, runId, crashed);
      const lateCallId = await startCall(store, runId, late);
      await store.rescueTasks({ workers: [WORKER], crashLimit: 3 });
      expect((await store.summarizeRun(runId)).inDoubt).toEqual({
        calls: 3,
        withoutUsage: 1,
        tokens: 4 * 900,
        costMicroUsd: 4 * 70,
      });
      // Its answer was kept outside the store and is recorded after all: now the bill is known.
      await store.record([], [completed(late, callEnd(lateCallId))]);
      expect((await store.summarizeRun(runId)).inDoubt).toEqual({
        calls: 2,
        withoutUsage: 1,
        tokens: 3 * 900,
        costMicroUsd: 3 * 70,
      });
      expect(await store.maintenance.recount()).toEqual([]);
    });

    it.each([
      [408, 1],
      [499, 1],
      [504, 1],
      [524, 1],
      [429, 0],
      [500, 0],
      [502, 0],
      [503, 0],
    ])('takes a call that ended with %i for one that may have been billed: %i', async (httpStatus, calls) => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      const task = await claimOne(store, runId);
      const callId = await startCall(store, runId, task);
      const ended = callEnd(callId, { kind: 'overloaded', httpStatus, usage: null, costMicroUsd: null });
      await store.record([], [retried(task, NOW_MS, ended)]);
      expect((await store.summarizeRun(runId)).inDoubt).toEqual({
        calls,
        withoutUsage: 0,
        tokens: calls * 900,
        costMicroUsd: calls * 70,
      });
      expect(await store.maintenance.recount()).toEqual([]);
    });

    it('adds up every call that was billed, the failed ones too', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(5));
      const [a, b, c, d, e] = await claim(store, runId, 5);
      if (!a || !b || !c || !d || !e) throw new Error('claimed too few');
      const call = (task: typeof a): Promise<number> => startCall(store, runId, task);
      await store.record(
        [],
        [
          completed(a, callEnd(await call(a))),
          failed(b, 'truncated', callEnd(await call(b), { kind: 'truncated', costMicroUsd: 8 })),
          retried(c, 0, callEnd(await call(c), { kind: 'overloaded', usage: null, costMicroUsd: null })),
          released(
            d,
            null,
            false,
            callEnd(await call(d), { kind: 'aborted', usage: null, costMicroUsd: null }),
          ),
        ],
      );
      await store.record([], [completed(e, callEnd(await call(e), { costMicroUsd: null }))]);
      await call(await claimOne(store, runId));
      expect(await store.summarizeRun(runId)).toMatchObject({
        calls: { made: 6, open: 1, failed: 2, repeated: 0, late: 0 },
        usage: {
          inputTokens: USAGE.inputTokens * 3,
          outputTokens: USAGE.outputTokens * 3,
          cachedTokens: USAGE.cachedTokens * 3,
          reasoningTokens: USAGE.reasoningTokens * 3,
        },
        costMicroUsd: 50,
        callsWithoutCost: 1,
        inDoubt: { calls: 0, withoutUsage: 2, tokens: 2 * 900, costMicroUsd: 3 * 70 },
      });
      expect(await store.maintenance.recount()).toEqual([]);
    });

    it('adds up each lane by itself', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(4));
      const [a, b, c, d] = await claim(store, runId, 4);
      if (!a || !b || !c || !d) throw new Error('claimed too few');
      const refused = { usage: null, costMicroUsd: null };
      const onFirst = await Promise.all([a, b].map((task) => startCall(store, runId, task)));
      const onSecond = await Promise.all(
        [c, d].map((task) => startCall(store, runId, task, NOW_MS, 'lane-0')),
      );
      const call = (id: number | undefined, change = {}): CallEnd => callEnd(id ?? 0, change);
      await store.record(
        [],
        [
          completed(a, call(onFirst[0])),
          released(b, null, true, call(onFirst[1], { ...refused, kind: 'rate_limited' })),
          failed(c, 'refused', call(onSecond[0], { kind: 'refused' })),
        ],
      );
      const { lanes } = await (await storeOf.again()).summarizeRun(runId);
      expect(lanes).toEqual([
        { lane: 'lane-0', calls: 2, failed: 1, throttled: 0, usage: USAGE, costMicroUsd: 42 },
        { lane: 'lane-1', calls: 2, failed: 1, throttled: 1, usage: USAGE, costMicroUsd: 42 },
      ]);
    });

    it('tells the latency of answers within two percent, and leaves failures out', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1_000));
      const tasks = await claim(store, runId, 1_000);
      const starts = tasks.map((task) => callStart(runId, task));
      const { callIds } = await store.record(starts, []);
      const outcomes = tasks.map((task, index) => {
        const call = callEnd(callIds[index] ?? 0, { latencyMs: (index + 1) * 3 });
        return index < 900 ? completed(task, call) : failed(task, 'refused', { ...call, kind: 'refused' });
      });
      await store.record([], outcomes.slice(0, 300));
      await store.record([], outcomes.slice(300));
      const { latencyMs } = await store.summarizeRun(runId);
      expect(latencyMs?.mean).toBeCloseTo(1351.5, 6);
      for (const [measured, exact] of [
        [latencyMs?.p50, 1_350],
        [latencyMs?.p95, 2_565],
        [latencyMs?.p99, 2_673],
      ] as const) {
        expect(Math.abs((measured ?? 0) - exact) / exact).toBeLessThanOrEqual(0.02);
      }
    });

    it('spans from the start of the first call to the last that was heard of one', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(2));
      const [first, second] = await claim(store, runId, 2);
      if (!first || !second) throw new Error('claimed too few');
      const callId = await startCall(store, runId, second, NOW_MS + 500);
      await startCall(store, runId, first, NOW_MS + 100);
      expect(await store.summarizeRun(runId)).toMatchObject({
        firstCallAtMs: NOW_MS + 100,
        lastCallAtMs: NOW_MS + 500,
      });
      await store.record([], [completed(second, callEnd(callId, { finishedAtMs: NOW_MS + 2_000 }))]);
      expect(await store.summarizeRun(runId)).toMatchObject({
        firstCallAtMs: NOW_MS + 100,
        lastCallAtMs: NOW_MS + 2_000,
      });
    });
  });

  describe('recent calls', () => {
    it('are those of every run since a moment, oldest first, with what they used or reserved', async () => {
      const store = await storeOf();
      const first = await openRun(store, documents(3), 'first');
      const second = await openRun(store, documents(1), 'second');
      const [a, b, c] = await claim(store, first, 3);
      const d = await claimOne(store, second);
      if (!a || !b || !c) throw new Error('claimed too few');
      await startCall(store, first, a, NOW_MS - 1);
      const answered = await startCall(store, first, b, NOW_MS + 20);
      await startCall(store, second, d, NOW_MS + 10);
      await startCall(store, first, c, NOW_MS);
      await store.record([], [completed(b, callEnd(answered))]);
      await storeOf.passTime(50);
      expect(await store.readRecentCalls(50)).toEqual([
        { ageMs: 50, lane: 'lane-1', tokens: 500 },
        { ageMs: 40, lane: 'lane-1', tokens: 500 },
        { ageMs: 30, lane: 'lane-1', tokens: 150 },
      ]);
    });
  });
}
