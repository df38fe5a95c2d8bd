/** Short ways to say what a test is about; every value that a test does not name is ordinary. */

import type { CallEnd, CallStart } from '../../../src/core/call.js';
import type { FailureKind } from '../../../src/core/failure.js';
import type { CompletedResult, Settlement, TaskError, TaskOutcome } from '../../../src/core/outcome.js';
import type { ResultFilter, ResultRow } from '../../../src/core/result-row.js';
import type { RunRecord } from '../../../src/core/run.js';
import type { LeasedTask, NewTask } from '../../../src/core/task.js';
import type { TokenUsage } from '../../../src/core/usage.js';
import type { Store } from '../../../src/store/store.js';

/** A store of its own for one test, and the ways a test may look at it from outside. */
export interface StoreUnderTest {
  readonly store: Store;
  /** Opens the same data once more, as another process or a later start would. Closed with the rest. */
  openAgain(): Promise<Store>;
  /** Lets this much pass by the store's own clock, whoever has opened it. */
  passTime(ms: number): Promise<void>;
  dispose(): Promise<void>;
}

export type OpenStoreUnderTest = () => Promise<StoreUnderTest>;

/** When a store under test is opened, by its own clock. */
export const NOW_MS = 1_800_000_000_000;
export const LEASE_MS = 60_000;
/** Who works on a run where a test names nobody. */
export const WORKER = 'worker-1';

export const USAGE: TokenUsage = { inputTokens: 120, outputTokens: 30, cachedTokens: 20, reasoningTokens: 5 };
export const ANSWER: CompletedResult = { outputJson: '"fine"', model: 'model-1', finishReason: 'stop' };

export function document(line: number, change: Partial<NewTask> = {}): NewTask {
  return {
    line,
    key: `document-${line}`,
    occurrence: 0,
    requestHash: `request-${line}`,
    priority: 0,
    body: `{"text":"document ${line}"}`,
    metadataJson: null,
    ...change,
  };
}

/** `document(1)` to `document(count)`. */
export function documents(count: number): NewTask[] {
  return Array.from({ length: count }, (_, index) => document(index + 1));
}

export function createRun(store: Store, name = 'reviews'): Promise<RunRecord> {
  return store.createRun({
    name,
    inputPath: `/data/${name}.jsonl`,
    simulated: false,
    settings: { model: 'model-1' },
    createdAtMs: NOW_MS,
  });
}

/** A run that is open and has these documents. @returns its id */
export async function openRun(store: Store, tasks: readonly NewTask[], name = 'reviews'): Promise<number> {
  const run = await createRun(store, name);
  await store.addTasks(run.id, tasks);
  await store.updateRun(run.id, { status: 'open' });
  return run.id;
}

export function claim(
  store: Store,
  runId: number,
  limit: number,
  workerId = WORKER,
): Promise<readonly LeasedTask[]> {
  return store.claimTasks({ runId, workerId, limit, leaseMs: LEASE_MS });
}

/** The one task a test is about. */
export async function claimOne(store: Store, runId: number, workerId = WORKER): Promise<LeasedTask> {
  const [task] = await claim(store, runId, 1, workerId);
  if (task === undefined) throw new Error('there was no task to claim');
  return task;
}

/** Tasks whose calls are open. */
export async function claimAndCall(
  store: Store,
  runId: number,
  limit: number,
): Promise<readonly LeasedTask[]> {
  const tasks = await claim(store, runId, limit);
  for (const task of tasks) await startCall(store, runId, task);
  return tasks;
}

export function callStart(
  runId: number,
  tasks: Ours | readonly Ours[],
  change: Partial<CallStart> = {},
): CallStart {
  return {
    runId,
    tasks: [tasks].flat().map(({ taskId, attemptToken }) => ({ taskId, attemptToken })),
    lane: 'lane-1',
    startedAtMs: NOW_MS,
    reservedTokens: 500,
    mostTokens: 900,
    mostCostMicroUsd: 70,
    ...change,
  };
}

/** @returns the call's id */
export async function startCall(
  store: Store,
  runId: number,
  task: Ours,
  startedAtMs = NOW_MS,
  lane = 'lane-1',
): Promise<number> {
  const { callIds } = await store.record([callStart(runId, task, { startedAtMs, lane })], []);
  const [callId = null] = callIds;
  if (callId === null) throw new Error('the call got no id');
  return callId;
}

export function callEnd(callId: number, change: Partial<CallEnd> = {}): CallEnd {
  return {
    callId,
    finishedAtMs: NOW_MS + 800,
    latencyMs: 800,
    httpStatus: 200,
    kind: null,
    usage: USAGE,
    costMicroUsd: 42,
    requestId: 'request-id-1',
    message: null,
    ...change,
  };
}

export function taskError(kind: FailureKind, change: Partial<TaskError> = {}): TaskError {
  return {
    kind,
    message: `it was ${kind}`,
    httpStatus: 400,
    code: 'some_code',
    requestId: 'request-id-1',
    partialOutputJson: null,
    ...change,
  };
}

type Ours = Pick<LeasedTask, 'taskId' | 'attemptToken'>;

export function completed(task: Ours, call: CallEnd | null = null, result = ANSWER): Settlement {
  return settlement(call, { ...ours(task, call), action: 'completed', result, atMs: NOW_MS + 900 });
}

export function failed(
  task: Ours,
  kind: FailureKind = 'invalid_request',
  call: CallEnd | null = null,
  error: TaskError = taskError(kind),
): Settlement {
  return settlement(call, { ...ours(task, call), action: 'failed', error, atMs: NOW_MS + 900 });
}

export function retried(task: Ours, delayMs = 5_000, call: CallEnd | null = null): Settlement {
  return settlement(call, {
    ...ours(task, call),
    ...{ action: 'retry', error: taskError('overloaded'), delayMs },
  });
}

export function released(
  task: Ours,
  delayMs: number | null = null,
  isThrottled = false,
  call: CallEnd | null = null,
): Settlement {
  return settlement(call, { ...ours(task, call), action: 'released', delayMs, isThrottled });
}

/** The call has one task, which takes the whole bill. */
function settlement(call: CallEnd | null, outcome: TaskOutcome): Settlement {
  return { call, outcomes: [outcome] };
}

function ours(
  { taskId, attemptToken }: Ours,
  call: CallEnd | null,
): Pick<TaskOutcome, 'taskId' | 'attemptToken' | 'share'> {
  const share = call === null ? null : { usage: call.usage, costMicroUsd: call.costMicroUsd };
  return { taskId, attemptToken, share };
}

/** Claims every ready task and settles it as `settle` says, call included. */
export async function drain(
  store: Store,
  runId: number,
  settle: (task: LeasedTask, call: CallEnd) => Settlement = completed,
): Promise<void> {
  for (;;) {
    const tasks = await claim(store, runId, 100);
    if (tasks.length === 0) return;
    for (const task of tasks) {
      const callId = await startCall(store, runId, task);
      await store.record([], [settle(task, callEnd(callId))]);
    }
  }
}

export function results(
  store: Store,
  runId: number,
  only: ResultFilter = 'all',
): Promise<readonly ResultRow[]> {
  return store.readResults({ runId, only, afterLine: 0, limit: 1_000, includeBody: true });
}

/** Nobody else has answered or is asked. */
export const SAME_ANSWERERS = { soFar: 'server', fromNowOn: 'server' };
export const RERUN = { keepFinished: false, answerers: SAME_ANSWERERS };
