/** Batches that providers work on, and the tasks that they own. */
import type {
  BatchLoad,
  BatchProgress,
  BatchRecord,
  BatchSettlement,
  NewBatch,
  NewResponse,
  ResponseNotes,
  StoredResponse,
} from '../../core/batch-record.js';
import type { CallTask } from '../../core/call.js';
import type { LeasedTask } from '../../core/task.js';
import { BATCH_COLUMNS, PROGRESS, PROGRESS_NAMES } from '../batch-columns.js';
import type { RemoteStore } from '../remote-store.js';
import { storableCount, storableInteger, storableIntegerOrNull, storableReal } from '../storable.js';
import { handedOver, handOver, loseResponses, type SumLost } from './calls-underway.js';
import { type LeasedRow, leasedFrom, leasedTask } from './leased-tasks.js';
import { idsIn } from './parts.js';
import { lockRun, runIsThere } from './runs.js';
import { all, one, type Player, run, type Steps, together } from './steps.js';

const SETTLED = `state = 'settled', most_tokens = 0, most_cost_micro_usd = 0`;

/** Where a request was worked off. */
export interface RemoteOrigin {
  readonly runId: number;
  readonly lane: string;
  readonly batchId: number;
}

/** Writes what became of tasks that are the batch's, with their calls. */
export type SettleRemote = (origin: RemoteOrigin, settlements: readonly BatchSettlement[]) => Steps<unknown>;

export function remoteStore(player: Player, settleRemote: SettleRemote): RemoteStore {
  return {
    begin: (batch) => player.write(() => beginBatch(batch)),
    give: (batchId, tasks, load) => player.write(() => giveTasks(batchId, tasks, load)),
    note: (batchId, progress) => player.write(() => noteBatch(batchId, progress)),
    tasksOf: (batchId, { taskIds, limit }) =>
      player.readOnce(() => tasksOfBatch(batchId, taskIds ?? null, limit)),
    settle: (batchId, settlements) => player.write(() => settleBatch(settleRemote, batchId, settlements)),
    giveBack: (batchId, limit) => player.write(() => giveBack(batchId, limit)),
    end: (batchId) => player.write(() => endBatch(batchId)),
    list: (runId) => player.readOnce(() => batchesWhere(`run_id = $1 AND ${runIsThere('$1')}`, runId)),
    responsesOf: (runId) => player.read(() => responsesOf(runId)),
  };
}

/** Of a run whose tasks were cancelled. */
export function* endBatchesOfRun(runId: number, sumLost: SumLost): Steps<void> {
  const responses = yield* openResponses(runId);
  yield* loseResponses(
    responses.map(({ id }) => id),
    sumLost,
  );
  yield* run(`UPDATE remote_batches SET ${SETTLED} WHERE run_id = $1`, runId);
}

function* beginBatch({ runId, kind, lane, endpoint, model, createdAtMs }: NewBatch): Steps<BatchRecord> {
  // Numbers within a run have no gap and no twin: whoever takes one waits for the one before.
  yield* lockRun(runId);
  const begun = yield* one<{ id: number }>(
    `INSERT INTO remote_batches (run_id, kind, lane, endpoint, model, created_at_ms, shard)
     SELECT $1, $2, $3, $4, $5, $6, count(*) + 1 FROM remote_batches WHERE run_id = $1 RETURNING id`,
    ...[runId, kind, lane, endpoint, model, storableInteger(createdAtMs)],
  );
  return yield* getBatch(begun?.id ?? 0);
}

function* giveTasks(
  batchId: number,
  tasks: readonly CallTask[],
  { bytes, mostTokens, mostCostMicroUsd }: BatchLoad,
): Steps<number[]> {
  const leases = tasks.map(({ taskId, attemptToken }) => ({ task_id: taskId, token: attemptToken }));
  // Their workers are locked against those that would take them for dead.
  const [, given] = yield* together(
    all(
      `SELECT workers.id FROM json_to_recordset($1) AS given (task_id bigint, token text)
       JOIN tasks NOT INDEXED ON tasks.id = task_id AND attempt_token = token JOIN workers ON workers.id = worker_id
       FOR KEY SHARE OF workers`,
      leases,
    ),
    all<{ id: number }>(
      `UPDATE tasks SET worker_id = NULL, remote_batch_id = $1
       FROM json_to_recordset($2) AS given (task_id bigint, token text)
       WHERE tasks.id = given.task_id AND attempt_token = given.token AND worker_id IS NOT NULL RETURNING id`,
      ...[batchId, leases],
    ),
  );
  yield* run(
    `UPDATE remote_batches SET lines = lines + $1, bytes = bytes + $2, most_tokens = most_tokens + $3,
       most_cost_micro_usd = most_cost_micro_usd + $4 WHERE id = $5`,
    ...[
      given.length,
      storableCount(bytes),
      storableCount(mostTokens),
      storableReal(mostCostMicroUsd),
      batchId,
    ],
  );
  const ours = new Set(given.map(({ id }) => id));
  return tasks.flatMap(({ taskId }) => (ours.has(taskId) ? [] : [taskId]));
}

function* noteBatch(batchId: number, progress: Partial<BatchProgress>): Steps<void> {
  const before = yield* getBatch(batchId);
  if (before.state === 'settled') return;
  const after = { ...before, ...progress };
  const values = PROGRESS_NAMES.map((name) => {
    const value = after[name];
    return typeof value === 'number' ? storableIntegerOrNull(value) : value;
  });
  yield* run(
    `UPDATE remote_batches SET ${PROGRESS_NAMES.map((name, at) => `${PROGRESS[name]} = $${at + 2}`).join(', ')}
     WHERE id = $1`,
    ...[batchId, ...values],
  );
}

function* tasksOfBatch(
  batchId: number,
  taskIds: readonly number[] | null,
  limit: number,
): Steps<LeasedTask[]> {
  const rows =
    taskIds === null
      ? yield* all<LeasedRow>(
          `${leasedFrom('tasks INDEXED BY tasks_remote')} WHERE remote_batch_id = $1
           ORDER BY id LIMIT CAST($2 AS bigint)`,
          ...[batchId, limit],
        )
      : yield* all<LeasedRow>(
          `${leasedFrom('tasks')} WHERE remote_batch_id = $1 AND id IN ${idsIn('$2')} ORDER BY id`,
          ...[batchId, taskIds],
        );
  return rows.map(leasedTask);
}

/** @returns the tasks that were not the batch's any more */
function* settleBatch(
  settleRemote: SettleRemote,
  batchId: number,
  settlements: readonly BatchSettlement[],
): Steps<number[]> {
  const { runId, lane } = yield* getBatch(batchId);
  const owned = yield* all<{ ordinal: number }>(
    `SELECT ordinal FROM json_to_recordset($2) AS asked (ordinal integer, task_id bigint, token text)
     JOIN tasks NOT INDEXED ON tasks.id = task_id AND attempt_token = token WHERE remote_batch_id = $1
     ORDER BY tasks.id, ordinal DESC FOR NO KEY UPDATE OF tasks`,
    batchId,
    settlements.map(({ outcome: { taskId, attemptToken } }, ordinal) => ({
      ...{ ordinal, task_id: taskId, token: attemptToken },
    })),
  );
  // Of two that name one task the first counts.
  const ours = new Map(owned.map(({ ordinal }) => [settlements[ordinal]?.outcome.taskId, ordinal]));
  const settled = settlements.filter(({ outcome }, ordinal) => ours.get(outcome.taskId) === ordinal);
  yield* settleRemote({ runId, lane, batchId }, settled);
  yield* run(
    `UPDATE remote_batches SET most_tokens = greatest(0, most_tokens - $1),
       most_cost_micro_usd = greatest(0, most_cost_micro_usd - $2) WHERE id = $3`,
    settled.reduce((sum, { call }) => sum + storableCount(call?.mostTokens ?? 0), 0),
    settled.reduce((sum, { call }) => sum + (call?.mostCostMicroUsd ?? 0), 0),
    batchId,
  );
  return settlements.flatMap(({ outcome }, ordinal) =>
    ours.get(outcome.taskId) === ordinal ? [] : [outcome.taskId],
  );
}

function* giveBack(batchId: number, limit: number): Steps<number> {
  const owned = yield* all<{ id: number }>(
    `SELECT id FROM tasks INDEXED BY tasks_remote WHERE remote_batch_id = $1
     ORDER BY id LIMIT CAST($2 AS bigint) FOR UPDATE`,
    ...[batchId, limit],
  );
  return yield* run(
    `UPDATE tasks SET state = 'ready', attempt_token = NULL, remote_batch_id = NULL WHERE id IN ${idsIn('$1')}`,
    owned.map(({ id }) => id),
  );
}

/** @returns numbers of those that were taken; null where the task is not its worker's any more */
export function* noteResponses({ taken, ended }: ResponseNotes, sumLost: SumLost): Steps<(number | null)[]> {
  const responseIds: (number | null)[] = [];
  for (const response of taken) responseIds.push(yield* takeResponse(response));
  for (const responseId of ended) {
    // One whose task was taken from it, for a document that was edited, may have been billed.
    if (yield* endBatch(responseId)) yield* loseResponses([responseId], sumLost);
  }
  return responseIds;
}

function* takeResponse({
  callId,
  task,
  batch,
  remoteId,
  mostTokens,
  mostCostMicroUsd,
}: NewResponse): Steps<number | null> {
  const { runId, kind, lane, endpoint, model } = batch;
  const begun = yield* one<{ id: number }>(
    `INSERT INTO remote_batches (run_id, kind, lane, endpoint, model, created_at_ms, submitted_at_ms, shard, state, remote_id)
     VALUES ($1, $2, $3, $4, $5, $6, $6, 0, 'submitted', $7) RETURNING id`,
    ...[runId, kind, lane, endpoint, model, storableInteger(batch.createdAtMs), remoteId],
  );
  const responseId = begun?.id ?? 0;
  const load = { bytes: 0, mostTokens, mostCostMicroUsd: mostCostMicroUsd ?? 0 };
  const lost = yield* giveTasks(responseId, [task], load);
  if (lost.length > 0) {
    yield* run('DELETE FROM remote_batches WHERE id = $1', responseId);
    return null;
  }
  yield* handOver(callId, responseId);
  return responseId;
}

function* responsesOf(runId: number): Steps<StoredResponse[]> {
  const responses: StoredResponse[] = [];
  for (const batch of yield* openResponses(runId)) {
    const [task] = yield* tasksOfBatch(batch.id, null, 1);
    const call = yield* handedOver(batch.id);
    const open = task === undefined || call === undefined ? null : { task, ...call };
    responses.push({ batch, remoteId: batch.remoteId ?? '', open });
  }
  return responses;
}

function openResponses(runId: number): Steps<BatchRecord[]> {
  return batchesWhere(`run_id = $1 AND kind = 'response' AND state <> 'settled'`, runId);
}

/** @returns false while it has a task */
function* endBatch(batchId: number): Steps<boolean> {
  const isDone = 'NOT EXISTS (SELECT 1 FROM tasks WHERE remote_batch_id = remote_batches.id)';
  // Nobody asks for a response any more, and there may be one for each document.
  const deleted = yield* run(
    `DELETE FROM remote_batches WHERE id = $1 AND kind = 'response' AND ${isDone}`,
    batchId,
  );
  const ended = yield* run(`UPDATE remote_batches SET ${SETTLED} WHERE id = $1 AND ${isDone}`, batchId);
  return deleted + ended > 0;
}

function* getBatch(batchId: number): Steps<BatchRecord> {
  const [batch] = yield* batchesWhere('id = $1', batchId);
  if (batch === undefined) throw new RangeError(`there is no batch with the number ${batchId}`);
  return batch;
}

function batchesWhere(where: string, id: number): Steps<BatchRecord[]> {
  return all(`SELECT ${BATCH_COLUMNS} FROM remote_batches WHERE ${where} ORDER BY id`, id);
}
