import { expect, it } from 'vitest';
import type { BatchSettlement, NewBatch, NewResponse, RemoteCall } from '../../../src/core/batch-record.js';
import type { LeasedTask } from '../../../src/core/task.js';
import type { Store } from '../../../src/store/store.js';
import {
  ANSWER,
  callEnd,
  claim,
  claimOne,
  completed,
  documents,
  LEASE_MS,
  NOW_MS,
  openRun,
  released,
  results,
  retried,
  startCall,
  USAGE,
  WORKER,
} from './builders.js';
import type { StoreOf } from './store-of.js';

const LOAD = { bytes: 600, mostTokens: 2_700, mostCostMicroUsd: 210 };
const MOST = { mostTokens: 900, mostCostMicroUsd: 70 };

function newBatch(runId: number): NewBatch {
  return { runId, kind: 'batch', lane: 'lane-1', endpoint: 'chat', model: 'model-1', createdAtMs: NOW_MS };
}

function remoteCall(change: Partial<RemoteCall> = {}): RemoteCall {
  return {
    startedAtMs: NOW_MS,
    finishedAtMs: NOW_MS + 60_000,
    httpStatus: 200,
    kind: null,
    usage: USAGE,
    costMicroUsd: 21,
    requestId: 'batch-request-1',
    message: null,
    ...MOST,
    ...change,
  };
}

/** The task's request was worked off, and this came of it. */
function worked(
  task: LeasedTask,
  settle: (task: LeasedTask) => { outcomes: readonly BatchSettlement['outcome'][] } = completed,
  call: RemoteCall | null = remoteCall(),
): BatchSettlement {
  const [outcome] = settle(task).outcomes;
  if (outcome === undefined) throw new Error('no outcome');
  const share = call === null ? null : { usage: call.usage, costMicroUsd: call.costMicroUsd };
  return { call, outcome: { ...outcome, share } };
}

async function batchOf(store: Store, count: number) {
  const runId = await openRun(store, documents(count));
  const { id: batchId } = await store.remote.begin(newBatch(runId));
  const tasks = await claim(store, runId, count);
  await store.remote.give(batchId, tasks, LOAD);
  return { runId, batchId, tasks };
}

function newResponse(runId: number, task: LeasedTask, callId: number): NewResponse {
  const { taskId, attemptToken } = task;
  const batch = { ...newBatch(runId), kind: 'response' as const, endpoint: 'responses' as const };
  return { callId, task: { taskId, attemptToken }, batch, remoteId: 'resp-1', ...MOST };
}

async function responseOf(store: Store, name?: string) {
  const runId = await openRun(store, documents(1), name);
  const task = await claimOne(store, runId);
  const callId = await startCall(store, runId, task);
  const { responseIds } = await store.record([], [], {
    taken: [newResponse(runId, task, callId)],
    ended: [],
  });
  return { runId, task, callId, batchId: responseIds[0] as number };
}

export function remoteContract(storeOf: StoreOf): void {
  it('a batch takes tasks over from their worker, whose death puts back none of them', async () => {
    const store = await storeOf();
    const { runId, batchId, tasks } = await batchOf(store, 3);
    await storeOf.passTime(LEASE_MS * 3);
    const later = await storeOf.again();
    expect(await later.rescueTasks({ crashLimit: 3 })).toMatchObject({ rescued: 0 });
    expect(await claim(later, runId, 10, 'worker-2')).toEqual([]);
    expect(await later.remote.tasksOf(batchId, { limit: 10 })).toEqual(tasks);
    expect(await later.remote.tasksOf(batchId, { taskIds: [tasks[1]?.taskId ?? 0, 999], limit: 10 })).toEqual(
      [tasks[1]],
    );
    expect(await later.remote.list(runId)).toMatchObject([
      { id: batchId, shard: 1, state: 'building', lines: 3, ...LOAD, remoteId: null, endpoint: 'chat' },
    ]);
  });

  it('a worker that has lost a task has none to give', async () => {
    const store = await storeOf();
    const runId = await openRun(store, documents(2));
    const [first, second] = await claim(store, runId, 2);
    if (first === undefined || second === undefined) throw new Error('no tasks');
    await store.record([], [released(first)]);
    const batch = await store.remote.begin(newBatch(runId));
    expect(await store.remote.give(batch.id, [first, second], LOAD)).toEqual([first.taskId]);
    expect(await store.remote.list(runId)).toMatchObject([{ lines: 1 }]);
    await store.record([], [released(second)]);
    expect(await store.remote.tasksOf(batch.id, { limit: 10 }), 'what the worker gave away').toHaveLength(0);
  });

  it('what is noted of a batch is there after a restart, and what is not named stays', async () => {
    const store = await storeOf();
    const { runId, batchId } = await batchOf(store, 1);
    await store.remote.note(batchId, { state: 'creating', fileHash: 'abc', inputFileId: 'file-1' });
    await store.remote.note(batchId, { state: 'submitted', remoteId: 'batch-1', submittedAtMs: NOW_MS + 5 });
    await store.remote.note(batchId, { polls: 2, remoteState: 'in_progress', requestsCompleted: 7 });
    expect(await (await storeOf.again()).remote.list(runId)).toMatchObject([
      {
        ...{ state: 'submitted', fileHash: 'abc', inputFileId: 'file-1', remoteId: 'batch-1', polls: 2 },
        ...{ submittedAtMs: NOW_MS + 5, remoteState: 'in_progress', requestsCompleted: 7, requestsFailed: 0 },
      },
    ]);
  });

  it('what came of its tasks is stored with their calls and counted once, however often it is brought', async () => {
    const store = await storeOf();
    const { runId, batchId, tasks } = await batchOf(store, 3);
    const [first, second, third] = tasks as [LeasedTask, LeasedTask, LeasedTask];
    const page = [
      worked(first),
      worked(
        second,
        retried,
        remoteCall({ kind: 'overloaded', httpStatus: 500, usage: null, costMicroUsd: null }),
      ),
    ];
    expect(await store.remote.settle(batchId, page)).toEqual([]);
    expect(await store.remote.settle(batchId, page)).toEqual([first.taskId, second.taskId]);
    const [batch] = await store.remote.list(runId);
    expect(batch).toMatchObject({ lines: 3, mostTokens: 900, mostCostMicroUsd: 70 });
    expect(await store.remote.settle(batchId, [worked(third, released, null)])).toEqual([]);
    const summary = await store.summarizeRun(runId);
    expect(summary).toMatchObject({
      counts: { completed: 1, delayed: 1, ready: 1, in_progress: 0 },
      calls: { made: 2, open: 0, failed: 1 },
      usage: USAGE,
      costMicroUsd: 21,
      inDoubt: { calls: 0 },
    });
    const [row] = await results(store, runId);
    expect(row).toMatchObject({
      ...{ key: first.key, attempts: 1, costMicroUsd: 21, requestId: 'batch-request-1', latencyMs: null },
      ...{ usage: USAGE, result: ANSWER },
    });
    expect(await store.maintenance.recount()).toEqual([]);
  });

  it('its calls say nothing of limits and of speed', async () => {
    const store = await storeOf();
    const { runId, batchId, tasks } = await batchOf(store, 1);
    await store.remote.settle(batchId, [worked(tasks[0] as LeasedTask)]);
    expect(await store.readRecentCalls(LEASE_MS)).toEqual([]);
    expect(await store.readTimeline(runId, 10)).toBeNull();
    expect(await store.readLatencies(runId)).toEqual([]);
    expect((await store.summarizeRun(runId)).latencyMs).toBeNull();
  });

  it('gives back what it still has, with no attempt used, and is then done with', async () => {
    const store = await storeOf();
    const { runId, batchId, tasks } = await batchOf(store, 3);
    expect(await store.remote.giveBack(batchId, 2)).toBe(2);
    expect(await store.remote.end(batchId), 'while it has a task').toBe(false);
    expect(await store.remote.giveBack(batchId, 2)).toBe(1);
    expect(await store.remote.end(batchId)).toBe(true);
    await store.remote.note(batchId, { state: 'submitted' });
    expect(await store.remote.list(runId)).toMatchObject([
      { state: 'settled', mostTokens: 0, mostCostMicroUsd: 0 },
    ]);
    const again = await claim(store, runId, 10);
    expect(again.map(({ taskId, attempts }) => [taskId, attempts])).toEqual(
      tasks.map(({ taskId }) => [taskId, 0]),
    );
    expect(
      await store.remote.settle(
        batchId,
        tasks.map((task) => worked(task)),
      ),
      'lines that come late',
    ).toHaveLength(3);
    expect(await store.summarizeRun(runId)).toMatchObject({ calls: { made: 0 } });
  });

  it('shards are numbered within their run', async () => {
    const store = await storeOf();
    const one = await openRun(store, documents(1), 'one');
    const other = await openRun(store, documents(1), 'other');
    for (const runId of [one, one, other]) await store.remote.begin(newBatch(runId));
    expect((await store.remote.list(one)).map(({ shard }) => shard)).toEqual([1, 2]);
    expect((await store.remote.list(other)).map(({ shard }) => shard)).toEqual([1]);
  });

  it('a run that is cancelled gives its batches up, and a deleted one leaves none', async () => {
    const store = await storeOf();
    const { runId, batchId, tasks } = await batchOf(store, 2);
    expect(await store.cancelRun(runId)).toBe(2);
    expect(await store.remote.list(runId)).toMatchObject([{ state: 'settled' }]);
    expect(
      await store.remote.settle(
        batchId,
        tasks.map((task) => worked(task)),
      ),
    ).toHaveLength(2);
    expect(await store.maintenance.recount()).toEqual([]);
    await store.deleteRun(runId);
    for (let cursor: string | null = null; ; ) {
      cursor = await store.maintenance.sweepDeletedRuns(cursor, 100);
      if (cursor === null) break;
    }
    expect(await store.remote.list(runId)).toEqual([]);
  });

  it('a document that was edited meanwhile is its own again, and what the batch brings for it is dropped', async () => {
    const store = await storeOf();
    const { runId, batchId, tasks } = await batchOf(store, 1);
    await store.beginReimport(runId);
    const [edited] = documents(1).map((document) => ({ ...document, requestHash: 'request-new' }));
    if (edited === undefined) throw new Error('no document');
    const answerers = { soFar: null, fromNowOn: 'us' };
    await store.reimportTasks(runId, [edited], { keepFinished: false, answerers });
    await store.finishReimport(runId);
    expect(await store.remote.settle(batchId, [worked(tasks[0] as LeasedTask)])).toHaveLength(1);
    expect(await store.remote.end(batchId)).toBe(true);
    expect(await claimOne(store, runId, WORKER)).toMatchObject({ attempts: 0 });
  });

  it('a response takes the task and the open call of a worker over, whose death loses neither', async () => {
    const store = await storeOf();
    const { runId, task, callId, batchId } = await responseOf(store);
    expect(await store.rescueTasks({ crashLimit: 3, workers: [WORKER] })).toMatchObject({
      rescued: 0,
      lostCalls: 0,
    });
    const [found, ...others] = await store.remote.responsesOf(runId);
    expect(others).toEqual([]);
    expect(found).toMatchObject({
      batch: { id: batchId, kind: 'response', state: 'submitted', lane: 'lane-1', ...MOST, lines: 1 },
      remoteId: 'resp-1',
      open: { callId, startedAtMs: NOW_MS, task: { taskId: task.taskId, attemptToken: task.attemptToken } },
    });
    expect(await store.remote.list(runId)).toHaveLength(1);
    expect((await store.readRecentCalls(60_000)).length, 'it counts for the limits').toBe(1);
  });

  it('what came of a response is settled as a call is, by whoever fetches it, and it is kept until it is removed', async () => {
    const store = await storeOf();
    const { runId, task, callId, batchId } = await responseOf(store);
    const end = callEnd(callId, { latencyMs: 90_000 });
    const settlement = { ...completed(task), call: end };
    expect((await store.record([], [settlement])).lostTaskIds).toEqual([]);
    expect((await store.record([], [settlement])).lostTaskIds).toEqual([task.taskId]);
    expect(await store.remote.responsesOf(runId)).toMatchObject([{ remoteId: 'resp-1', open: null }]);
    expect(await store.summarizeRun(runId)).toMatchObject({
      counts: { completed: 1, in_progress: 0 },
      calls: { made: 1, open: 0 },
      inDoubt: { calls: 0 },
      latencyMs: { p50: expect.any(Number) },
    });
    await store.record([], [], { taken: [], ended: [batchId] });
    expect(await store.remote.responsesOf(runId)).toEqual([]);
    expect(await store.remote.list(runId)).toEqual([]);
    expect(await store.maintenance.recount()).toEqual([]);
  });

  it("a response is none where its task is not its worker's any more", async () => {
    const store = await storeOf();
    const runId = await openRun(store, documents(1));
    const task = await claimOne(store, runId);
    const callId = await startCall(store, runId, task);
    await store.rescueTasks({ crashLimit: 3, workers: [WORKER] });
    const taken = [newResponse(runId, task, callId)];
    expect((await store.record([], [], { taken, ended: [] })).responseIds).toEqual([null]);
    expect(await store.remote.list(runId)).toEqual([]);
    expect(await claimOne(store, runId, 'worker-2')).toMatchObject({ taskId: task.taskId });
  });

  it('one that has a task is not done with, and one whose document was edited or cancelled may have been billed', async () => {
    const store = await storeOf();
    const { runId, batchId } = await responseOf(store);
    await store.record([], [], { taken: [], ended: [batchId] });
    expect(await store.remote.responsesOf(runId)).toHaveLength(1);
    await store.beginReimport(runId);
    const edited = documents(1).map((document) => ({ ...document, requestHash: 'request-new' }));
    await store.reimportTasks(runId, edited, {
      keepFinished: false,
      answerers: { soFar: null, fromNowOn: 'us' },
    });
    await store.finishReimport(runId);
    expect(await store.remote.responsesOf(runId)).toMatchObject([{ open: null }]);
    await store.record([], [], { taken: [], ended: [batchId] });
    const lost = { made: 1, open: 0 };
    expect(await store.summarizeRun(runId)).toMatchObject({
      calls: lost,
      inDoubt: { calls: 1, tokens: 900 },
    });
    expect(await store.maintenance.recount()).toEqual([]);

    const cancelled = await responseOf(store, 'other');
    await store.cancelRun(cancelled.runId);
    expect(await store.remote.responsesOf(cancelled.runId)).toEqual([]);
    expect(await store.summarizeRun(cancelled.runId)).toMatchObject({ calls: lost, inDoubt: { calls: 1 } });
    expect(await store.maintenance.recount()).toEqual([]);
  });
}
