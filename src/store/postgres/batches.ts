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
import { lockRun, runIsThere } from '../sql/runs.js';
import { all, one, type Parameter, run, type Steps } from '../sql/steps.js';
import { storableCount, storableInteger, storableIntegerOrNull, storableReal } from '../storable.js';
import type { Connections } from './connections.js';
import { Ledger } from './ledger.js';
import { type LeasedRow, leasedFrom, leasedTask } from './queue.js';
import { settleTasks } from './settlements.js';

const SETTLED = `state = 'settled', most_tokens = 0, most_cost_micro_usd = 0`;

export function remoteStore(connections: Connections): RemoteStore {
  return {
    begin: (batch) => connections.write(() => beginBatch(batch)),
    give: (batchId, tasks, load) => connections.write(() => giveTasks(batchId, tasks, load)),
    note: (batchId, progress) => connections.write(() => noteBatch(batchId, progress)),
    tasksOf: (batchId, { taskIds, limit }) =>
      connections.readOnce(() => tasksOfBatch(batchId, taskIds ?? null, limit)),
    settle: (batchId, settlements) => connections.write(() => settleBatch(batchId, settlements)),
    giveBack: (batchId, limit) =>
      connections.write(() =>
        run(
          `UPDATE tasks SET state = 'ready', attempt_token = NULL, remote_batch_id = NULL WHERE id = ANY (ARRAY(
             SELECT id FROM tasks WHERE remote_batch_id = $1 ORDER BY id LIMIT $2 FOR UPDATE))`,
          batchId,
          limit,
        ),
      ),
    end: (batchId) => connections.write(() => endBatch(batchId)),
    list: (runId) => connections.readOnce(() => batchesWhere(`run_id = $1 AND ${runIsThere('$1')}`, runId)),
    responsesOf: (runId) => connections.read(() => responsesOf(runId)),
  };
}

/** Of a run whose tasks were cancelled. */
export function* endBatchesOfRun(runId: number): Steps<void> {
  const responses = yield* all<{ id: number }>(
    `SELECT id FROM remote_batches WHERE run_id = $1 AND kind = 'response' AND state <> 'settled'`,
    runId,
  );
  const ledger = new Ledger();
  yield* ledger.loseOfResponses(responses.map(({ id }) => id));
  yield* ledger.flush();
  yield* run(`UPDATE remote_batches SET ${SETTLED} WHERE run_id = $1`, runId);
}

function* beginBatch(batch: NewBatch): Steps<BatchRecord> {
  const { runId, kind, lane, endpoint, model, createdAtMs } = batch;
  yield* lockRun(runId);
  // Numbers within a run have no gap and no twin: whoever takes one waits for the one before.
  yield* run('SELECT 1 FROM runs WHERE id = $1 FOR NO KEY UPDATE', runId);
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
  const given = yield* all<{ id: number }>(
    `WITH alive AS (
       SELECT id FROM workers WHERE id IN (SELECT worker_id FROM json_to_recordset($2) AS given (task_id bigint, token text)
         JOIN tasks ON tasks.id = task_id AND attempt_token = token) FOR KEY SHARE)
     UPDATE tasks SET worker_id = NULL, remote_batch_id = $1
     FROM json_to_recordset($2) AS given (task_id bigint, token text)
     WHERE tasks.id = given.task_id AND attempt_token = given.token AND worker_id IN (SELECT id FROM alive)
     RETURNING tasks.id`,
    batchId,
    tasks.map(({ taskId, attemptToken }) => ({ task_id: taskId, token: attemptToken })),
  );
  yield* run(
    `UPDATE remote_batches SET lines = lines + $1, bytes = bytes + $2, most_tokens = most_tokens + $3,
       most_cost_micro_usd = most_cost_micro_usd + $4 WHERE id = $5`,
    given.length,
    storableCount(bytes),
    storableCount(mostTokens),
    storableReal(mostCostMicroUsd),
    batchId,
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
    batchId,
    ...values,
  );
}

function* tasksOfBatch(
  batchId: number,
  taskIds: readonly number[] | null,
  limit: number,
): Steps<LeasedTask[]> {
  const [which, parameters]: [string, Parameter[]] =
    taskIds === null
      ? ['ORDER BY id LIMIT $2', [batchId, limit]]
      : ['AND id IN (SELECT json_array_elements_text($2)::bigint) ORDER BY id', [batchId, taskIds]];
  const rows = yield* all<LeasedRow>(
    `${leasedFrom('tasks')} WHERE remote_batch_id = $1 ${which}`,
    ...parameters,
  );
  return rows.map(leasedTask);
}

/** @returns the tasks that were not the batch's any more */
function* settleBatch(batchId: number, settlements: readonly BatchSettlement[]): Steps<number[]> {
  const { runId, lane } = yield* getBatch(batchId);
  const owned = yield* all<{ ordinal: number }>(
    `SELECT ordinal FROM json_to_recordset($2) AS asked (ordinal integer, task_id bigint, token text)
     JOIN tasks ON tasks.id = task_id AND attempt_token = token WHERE remote_batch_id = $1
     ORDER BY tasks.id FOR NO KEY UPDATE OF tasks`,
    batchId,
    settlements.map(({ outcome: { taskId, attemptToken } }, ordinal) => ({
      ...{ ordinal, task_id: taskId, token: attemptToken },
    })),
  );
  const ours = new Map(owned.map(({ ordinal }) => [settlements[ordinal]?.outcome.taskId, ordinal]));
  const settled = settlements.filter(({ outcome }, ordinal) => ours.get(outcome.taskId) === ordinal);
  const called = settled.flatMap(({ call, outcome }) =>
    call === null ? [] : [{ call, taskId: outcome.taskId }],
  );
  const ledger = new Ledger();
  yield* ledger.addRemote({ runId, lane, batchId }, called);
  yield* settleTasks(settled);
  yield* run(
    `UPDATE remote_batches SET most_tokens = greatest(0, most_tokens - $1),
       most_cost_micro_usd = greatest(0, most_cost_micro_usd - $2) WHERE id = $3`,
    called.reduce((sum, { call }) => sum + storableCount(call.mostTokens), 0),
    called.reduce((sum, { call }) => sum + (call.mostCostMicroUsd ?? 0), 0),
    batchId,
  );
  yield* ledger.flush();
  return settlements.flatMap(({ outcome }, ordinal) =>
    ours.get(outcome.taskId) === ordinal ? [] : [outcome.taskId],
  );
}

/** @returns numbers of those that were taken; null where the task is not its worker's any more */
export function* noteResponses({ taken, ended }: ResponseNotes): Steps<(number | null)[]> {
  const ledger = new Ledger();
  const responseIds: (number | null)[] = [];
  for (const response of taken) responseIds.push(yield* takeResponse(ledger, response));
  for (const responseId of ended) {
    // One whose task was taken from it, for a document that was edited, may have been billed.
    if (yield* endBatch(responseId)) yield* ledger.loseOfResponses([responseId]);
  }
  yield* ledger.flush();
  return responseIds;
}

function* takeResponse(
  ledger: Ledger,
  { callId, task, batch, remoteId, mostTokens, mostCostMicroUsd }: NewResponse,
): Steps<number | null> {
  const { runId, kind, lane, endpoint, model } = batch;
  const createdAtMs = storableInteger(batch.createdAtMs);
  const begun = yield* one<{ id: number }>(
    `INSERT INTO remote_batches (run_id, kind, lane, endpoint, model, created_at_ms, submitted_at_ms, shard, state, remote_id)
     VALUES ($1, $2, $3, $4, $5, $6, $6, 0, 'submitted', $7) RETURNING id`,
    ...[runId, kind, lane, endpoint, model, createdAtMs, remoteId],
  );
  const responseId = begun?.id ?? 0;
  const load = { bytes: 0, mostTokens, mostCostMicroUsd: mostCostMicroUsd ?? 0 };
  const lost = yield* giveTasks(responseId, [task], load);
  if (lost.length > 0) {
    yield* run('DELETE FROM remote_batches WHERE id = $1', responseId);
    return null;
  }
  yield* ledger.handOver(callId, responseId);
  return responseId;
}

function* responsesOf(runId: number): Steps<StoredResponse[]> {
  const batches = yield* batchesWhere(`run_id = $1 AND kind = 'response' AND state <> 'settled'`, runId);
  const responses: StoredResponse[] = [];
  for (const batch of batches) {
    const [task] = yield* tasksOfBatch(batch.id, null, 1);
    const call = yield* one<{ callId: number; startedAtMs: number }>(
      `SELECT id AS "callId", started_at_ms AS "startedAtMs" FROM calls
       WHERE finished_at_ms IS NULL AND worker_id = $1`,
      -batch.id,
    );
    const open = task === undefined || call === undefined ? null : { task, ...call };
    responses.push({ batch, remoteId: batch.remoteId ?? '', open });
  }
  return responses;
}

/** @returns false while it has a task */
function* endBatch(batchId: number): Steps<boolean> {
  // Nobody asks for a response any more, and there may be one for each document.
  const deleted = yield* run(
    `DELETE FROM remote_batches WHERE id = $1 AND kind = 'response'
       AND NOT EXISTS (SELECT 1 FROM tasks WHERE remote_batch_id = remote_batches.id)`,
    batchId,
  );
  const ended = yield* run(
    `UPDATE remote_batches SET ${SETTLED} WHERE id = $1
       AND NOT EXISTS (SELECT 1 FROM tasks WHERE remote_batch_id = remote_batches.id)`,
    batchId,
  );
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
