import { describe, expect, it } from 'vitest';
import type { Settlement, TaskOutcome } from '../../../src/core/outcome.js';
import type { LeasedTask } from '../../../src/core/task.js';
import type { Store } from '../../../src/store/store.js';
import {
  ANSWER,
  callEnd,
  callStart,
  claim,
  claimOne,
  completed,
  completedTogether,
  documents,
  failed,
  NOW_MS,
  openRun,
  released,
  results,
  retried,
  startCall,
  taskError,
  USAGE,
  WORKER,
} from './builders.js';
import type { StoreOf } from './store-of.js';

const NOBODY = { taskId: 999, attemptToken: 'of nobody' };

type MakeOutcome = (task: LeasedTask, callId: number) => Settlement;

const OUTCOMES: readonly (readonly [string, MakeOutcome])[] = [
  ['completed', (task, callId) => completed(task, callEnd(callId))],
  ['failed', (task, callId) => failed(task, 'refused', callEnd(callId, { kind: 'refused' }))],
  ['retry', (task, callId) => retried(task, 5_000, callEnd(callId, { kind: 'timeout' }))],
  ['released', (task, callId) => released(task, 5_000, true, callEnd(callId, { kind: 'rate_limited' }))],
];

/** Ways for a lease to be over; each leaves the task in the state it names. */
const ENDS: readonly (readonly [
  string,
  (store: Store, task: LeasedTask, runId: number) => Promise<unknown>,
])[] = [
  ['completed', (store, task) => store.record([], [completed(task)])],
  ['failed', (store, task) => store.record([], [failed(task)])],
  ['delayed', (store, task) => store.record([], [retried(task)])],
  ['ready', (store, task) => store.record([], [released(task)])],
  [
    'in progress for another',
    async (store, task, runId) => {
      await store.record([], [released(task)]);
      await claimOne(store, runId);
    },
  ],
];

export function recordContract(storeOf: StoreOf): void {
  describe('record', () => {
    it('gives calls rising ids in their order', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(3));
      const tasks = await claim(store, runId, 3);
      const starts = tasks.map((task) => callStart(runId, task));
      const { callIds } = await store.record(starts, []);
      expect(callIds).toHaveLength(3);
      const ids = callIds.map(Number);
      expect([...ids].sort((a, b) => a - b)).toEqual(callIds);
      expect(await startCall(store, runId, tasks[0] ?? NOBODY)).toBeGreaterThan(ids[2] ?? 0);
    });

    it('starts no call that has a task of somebody else in it, but the others of that commit', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(4));
      const [first, second, third] = await claim(store, runId, 3);
      if (!first || !second || !third) throw new Error('claimed too few');
      await store.record([], [released(second)]);
      const calls = [[first, second], [NOBODY], [third]].map((tasks) => callStart(runId, tasks));
      expect((await store.record(calls, [])).callIds).toEqual([null, null, expect.any(Number)]);
      expect((await store.summarizeRun(runId)).calls).toMatchObject({ made: 1, open: 1 });
    });

    it('accepts that there is nothing to record', async () => {
      const store = await storeOf();
      expect(await store.record([], [])).toEqual({ callIds: [], responseIds: [], lostTaskIds: [] });
    });

    it('keeps a completed answer with the figures of its call', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      const task = await claimOne(store, runId);
      const call = callEnd(await startCall(store, runId, task), { latencyMs: 812.5 });
      expect(await store.record([], [completed(task, call)])).toEqual({
        callIds: [],
        responseIds: [],
        lostTaskIds: [],
      });
      expect(await results(store, runId)).toEqual([
        {
          taskId: task.taskId,
          line: 1,
          key: 'document-1',
          state: 'completed',
          attempts: 1,
          settledAtMs: NOW_MS + 900,
          result: ANSWER,
          error: null,
          usage: USAGE,
          costMicroUsd: 42,
          latencyMs: 812.5,
          requestId: 'request-id-1',
          sharedFrom: null,
          metadataJson: null,
          body: '{"text":"document 1"}',
        },
      ]);
    });

    it('keeps a failure with its kind, its message and what output there was', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      const task = await claimOne(store, runId);
      const call = callEnd(await startCall(store, runId, task), { kind: 'truncated', costMicroUsd: null });
      const error = taskError('truncated', { httpStatus: 200, code: null, partialOutputJson: '"so far"' });
      await store.record([], [failed(task, 'truncated', call, error)]);
      expect(await results(store, runId)).toMatchObject([
        {
          state: 'failed',
          attempts: 1,
          settledAtMs: NOW_MS + 900,
          result: null,
          error,
          usage: USAGE,
          costMicroUsd: null,
          latencyMs: 800,
          requestId: 'request-id-1',
        },
      ]);
    });

    it('settles a task for which no call was made', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      await store.record([], [failed(await claimOne(store, runId), 'too_large')]);
      expect(await results(store, runId)).toMatchObject([
        { state: 'failed', usage: null, latencyMs: null, costMicroUsd: null, requestId: 'request-id-1' },
      ]);
      expect((await store.summarizeRun(runId)).calls.made).toBe(0);
    });

    it('uses an attempt for a retry, and none for a release', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      await store.record([], [retried(await claimOne(store, runId), 0)]);
      await store.record([], [released(await claimOne(store, runId))]);
      await store.record([], [retried(await claimOne(store, runId), 0)]);
      await store.record([], [released(await claimOne(store, runId), 0)]);
      const task = await claimOne(store, runId);
      expect(task.attempts).toBe(2);
      await store.record([], [completed(task)]);
      expect(await results(store, runId)).toMatchObject([{ attempts: 3 }]);
    });

    it('remembers since when a task has been throttled, until something else happens', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      await store.record([], [released(await claimOne(store, runId), 0, true)]);
      await storeOf.passTime(3_000);
      const once = await claimOne(store, runId);
      expect(once.throttledForMs).toBe(3_000);
      await store.record([], [released(once, null, true)]);
      await storeOf.passTime(500);
      const throttled = await claimOne(store, runId);
      expect(throttled.throttledForMs).toBe(3_500);
      await store.record([], [retried(throttled, 0)]);
      const again = await claimOne(store, runId);
      expect(again.throttledForMs).toBeNull();
    });

    it('starts calls and settles others in one commit', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(2));
      const [first, second] = await claim(store, runId, 2);
      if (!first || !second) throw new Error('claimed too few');
      const callId = await startCall(store, runId, first);
      const start = callStart(runId, second, { lane: 'lane-2', startedAtMs: NOW_MS + 1_000 });
      const progress = await store.record([start], [completed(first, callEnd(callId))]);
      expect(progress.callIds).toHaveLength(1);
      expect((await store.summarizeRun(runId)).calls).toMatchObject({ made: 2, open: 1 });
    });

    it('bills a call of several tasks once, and gives each of them its own share', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(3));
      const tasks = await claim(store, runId, 3);
      const { callIds } = await store.record([callStart(runId, tasks, { reservedTokens: 900 })], []);
      const callId = Number(callIds[0]);
      const call = callEnd(callId, { costMicroUsd: 6 });
      const outcomes = tasks.map((task, index) => {
        const usage = { ...USAGE, inputTokens: 30 + 10 * index, outputTokens: 10 };
        const share = { usage, costMicroUsd: 1 + index };
        return { ...completed(task).outcomes[0], share } as TaskOutcome;
      });
      expect((await store.record([], [{ call, outcomes }])).lostTaskIds).toEqual([]);
      expect(await results(store, runId)).toMatchObject(
        [1, 2, 3].map((line) => ({
          ...{ line, costMicroUsd: line, usage: { inputTokens: 20 + 10 * line } },
          ...{ latencyMs: 800, requestId: 'request-id-1' },
        })),
      );
      expect(await store.summarizeRun(runId)).toMatchObject({
        calls: { made: 1, open: 0 },
        usage: USAGE,
        costMicroUsd: 6,
        counts: { completed: 3 },
      });
      expect(await store.maintenance.recount()).toEqual([]);
    });

    it('takes back a call that did not leave after all, unless a rescue has given it up', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(2));
      const tasks = await claim(store, runId, 2);
      const outcomes = tasks.flatMap((task) => released(task).outcomes);
      const withdrawn = async () => {
        const { callIds } = await store.record([callStart(runId, tasks)], []);
        return { call: { callId: Number(callIds[0]), isWithdrawn: true } as const, outcomes };
      };
      const givenUp = await withdrawn();
      await store.record([], [await withdrawn()]);
      expect((await store.summarizeRun(runId)).counts).toMatchObject({ ready: 2 });
      expect((await store.summarizeRun(runId)).calls).toMatchObject({ made: 1, open: 1 });
      await store.rescueTasks({ workers: [WORKER], crashLimit: 3 });
      await store.record([], [givenUp]);
      expect((await store.summarizeRun(runId)).calls).toMatchObject({ made: 1, open: 0, repeated: 1 });
      expect(await store.maintenance.recount()).toEqual([]);
    });

    it('keeps what a call came to for those of its tasks that are still ours', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(2));
      const tasks = await claim(store, runId, 2);
      const [kept, lost] = tasks;
      if (!kept || !lost) throw new Error('claimed too few');
      const { callIds } = await store.record([callStart(runId, tasks)], []);
      const callId = Number(callIds[0]);
      await store.record([], [released(lost)]);
      const answers = completedTogether(tasks, callEnd(callId));
      expect((await store.record([], [answers])).lostTaskIds).toEqual([lost.taskId]);
      expect((await store.summarizeRun(runId)).counts).toMatchObject({ completed: 1, ready: 1 });
    });

    it('is seen whole by another process as soon as it has resolved', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      const task = await claimOne(store, runId);
      const callId = await startCall(store, runId, task);
      await store.record([], [completed(task, callEnd(callId))]);
      const other = await storeOf.again();
      expect(await results(other, runId)).toHaveLength(1);
      expect(await other.summarizeRun(runId)).toEqual(await store.summarizeRun(runId));
    });

    it('never fails over what a server or a clock said', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      await storeOf.passTime(0.25);
      const task = await claimOne(store, runId);
      const callId = await startCall(store, runId, task, NOW_MS + 0.5);
      const usage = {
        inputTokens: 1e300,
        outputTokens: Number.NaN,
        cachedTokens: -5,
        reasoningTokens: 1.5,
      };
      const call = callEnd(callId, {
        usage,
        latencyMs: Number.NaN,
        httpStatus: 200.5,
        costMicroUsd: 7.25,
        requestId: 'a\0\ud800',
      });
      const answer = {
        outputJson: '"\0\udfff"',
        model: 'm\0\ud800',
        finishReason: '\ud800',
        detailsJson: '{"\0":"\ud800"}',
        responseJson: '{"\0":"\udfff"}',
      };
      await store.record([], [completed(task, call, answer)]);
      const page = { runId, only: 'all', afterLine: 0, limit: 1, includeBody: false } as const;
      expect(await store.readResults({ ...page, includeResponse: true })).toMatchObject([
        {
          result: {
            outputJson: '"\0\ufffd"',
            model: 'm\0\ufffd',
            finishReason: '\ufffd',
            detailsJson: '{"\0":"\ufffd"}',
            responseJson: '{"\0":"\ufffd"}',
          },
          usage: {
            inputTokens: Number.MAX_SAFE_INTEGER,
            outputTokens: 0,
            cachedTokens: 0,
            reasoningTokens: 2,
          },
          requestId: 'a\0\ufffd',
          costMicroUsd: 7.25,
        },
      ]);
      expect((await store.summarizeRun(runId)).costMicroUsd).toBe(7.25);
    });

    it('keeps long answers and long documents whole', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      const outputJson = JSON.stringify('日本語'.repeat(300_000));
      await store.record([], [completed(await claimOne(store, runId), null, { ...ANSWER, outputJson })]);
      expect((await results(store, runId))[0]?.result?.outputJson).toBe(outputJson);
    });
  });

  describe.each(ENDS)('once a task is %s', (_, end) => {
    it.each(OUTCOMES)('the old lease cannot make it %s; only the call is kept', async (__, outcome) => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      const task = await claimOne(store, runId);
      const callId = await startCall(store, runId, task);
      await end(store, task, runId);
      const before = await store.summarizeRun(runId);
      const resultsBefore = await results(store, runId);

      expect((await store.record([], [outcome(task, callId)])).lostTaskIds).toEqual([task.taskId]);

      const after = await store.summarizeRun(runId);
      expect(after.counts).toEqual(before.counts);
      expect(after.failedByKind).toEqual(before.failedByKind);
      expect(await results(store, runId)).toEqual(resultsBefore);
      expect(after.calls).toMatchObject({ made: 1, open: 0 });
      expect(after.usage).toEqual(USAGE);
    });
  });

  describe.each(OUTCOMES)('a task in progress cannot be made %s', (_, outcome) => {
    it('with a token that is not its own', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(2));
      const [task, other] = await claim(store, runId, 2);
      if (!task || !other) throw new Error('claimed too few');
      const callId = await startCall(store, runId, task);
      const stolen = outcome({ ...task, attemptToken: other.attemptToken }, callId);
      expect((await store.record([], [stolen])).lostTaskIds).toEqual([task.taskId]);
      expect((await store.summarizeRun(runId)).counts.in_progress).toBe(2);
      expect((await store.record([], [outcome(task, callId)])).lostTaskIds).toEqual([]);
    });
  });

  it('counts a call that is ended twice once', async () => {
    const store = await storeOf();
    const runId = await openRun(store, documents(1));
    const task = await claimOne(store, runId);
    const outcome = completed(task, callEnd(await startCall(store, runId, task)));
    await store.record([], [outcome]);
    const before = await store.summarizeRun(runId);
    expect((await store.record([], [outcome])).lostTaskIds).toEqual([task.taskId]);
    expect(await store.summarizeRun(runId)).toEqual(before);
  });
}
