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
import type { Connections, Parameter, Transaction } from './connections.js';
import { Ledger } from './ledger.js';
import { type LeasedRow, leasedFrom, leasedTask } from './queue.js';
import { getRun, runIsThere } from './runs.js';
import { settleTasks } from './settlements.js';

const SETTLED = `state = 'settled', most_tokens = 0, most_cost_micro_usd = 0`;

export function remoteStore(connections: Connections): RemoteStore {
  return {
    begin: (batch) => connections.write((transaction) => beginBatch(transaction, batch)),
    give: (batchId, tasks, load) =>
      connections.write((transaction) => giveTasks(transaction, batchId, tasks, load)),
    note: (batchId, progress) =>
      connections.write((transaction) => noteBatch(transaction, batchId, progress)),
    tasksOf: (batchId, { taskIds, limit }) =>
      connections.readOnce((transaction) => tasksOfBatch(transaction, batchId, taskIds ?? null, limit)),
    settle: (batchId, settlements) =>
      connections.write((transaction) => settleBatch(transaction, batchId, settlements)),
    giveBack: (batchId, limit) =>
      connections.write((transaction) =>
        transaction.run(
          `UPDATE tasks SET state = 'ready', attempt_token = NULL, remote_batch_id = NULL WHERE id = ANY (ARRAY(
             SELECT id FROM tasks WHERE remote_batch_id = $1 ORDER BY id LIMIT $2 FOR UPDATE))`,
          batchId,
          limit,
        ),
      ),
    end: (batchId) => connections.write((transaction) => endBatch(transaction, batchId)),
    list: (runId) =>
      connections.readOnce((transaction) =>
        batchesWhere(transaction, `run_id = $1 AND ${runIsThere('$1')}`, runId),
      ),
    responsesOf: (runId) => connections.read((transaction) => responsesOf(transaction, runId)),
  };
}

/** Of a run whose tasks were cancelled. */
export async function endBatchesOfRun(transaction: Transaction, runId: number): Promise<void> {
  const responses = await transaction.all<{ id: number }>(
    `SELECT id FROM remote_batches WHERE run_id = $1 AND kind = 'response' AND state <> 'settled'`,
    runId,
  );
  const ledger = new Ledger(transaction);
  await ledger.loseOfResponses(responses.map(({ id }) => id));
  await ledger.flush();
  await transaction.run(`UPDATE remote_batches SET ${SETTLED} WHERE run_id = $1`, runId);
}

async function beginBatch(transaction: Transaction, batch: NewBatch): Promise<BatchRecord> {
  const { runId, kind, lane, endpoint, model, createdAtMs } = batch;
  await getRun(transaction, runId);
  // Numbers within a run have no gap and no twin: whoever takes one waits for the one before.
  await transaction.run('SELECT 1 FROM runs WHERE id = $1 FOR NO KEY UPDATE', runId);
  const begun = await transaction.one<{ id: number }>(
    `INSERT INTO remote_batches (run_id, kind, lane, endpoint, model, created_at_ms, shard)
     SELECT $1, $2, $3, $4, $5, $6, count(*) + 1 FROM remote_batches WHERE run_id = $1 RETURNING id`,
    ...[runId, kind, lane, endpoint, model, storableInteger(createdAtMs)],
  );
  return getBatch(transaction, begun?.id ?? 0);
}

async function giveTasks(
  transaction: Transaction,
  batchId: number,
  tasks: readonly CallTask[],
  { bytes, mostTokens, mostCostMicroUsd }: BatchLoad,
): Promise<number[]> {
  const given = await transaction.all<{ id: number }>(
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
  await transaction.run(
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

async function noteBatch(
  transaction: Transaction,
  batchId: number,
  progress: Partial<BatchProgress>,
): Promise<void> {
  const before = await getBatch(transaction, batchId);
  if (before.state === 'settled') return;
  const after = { ...before, ...progress };
  const values = PROGRESS_NAMES.map((name) => {
    const value = after[name];
    return typeof value === 'number' ? storableIntegerOrNull(value) : value;
  });
  await transaction.run(
    `UPDATE remote_batches SET ${PROGRESS_NAMES.map((name, at) => `${PROGRESS[name]} = $${at + 2}`).join(', ')}
     WHERE id = $1`,
    batchId,
    ...values,
  );
}

async function tasksOfBatch(
  transaction: Transaction,
  batchId: number,
  taskIds: readonly number[] | null,
  limit: number,
): Promise<LeasedTask[]> {
  const [which, parameters]: [string, Parameter[]] =
    taskIds === null
      ? ['ORDER BY id LIMIT $2', [batchId, limit]]
      : ['AND id IN (SELECT json_array_elements_text($2)::bigint) ORDER BY id', [batchId, taskIds]];
  const rows = await transaction.all<LeasedRow>(
    `${leasedFrom('tasks')} WHERE remote_batch_id = $1 ${which}`,
    ...parameters,
  );
  return rows.map(leasedTask);
}

/** @returns the tasks that were not the batch's any more */
async function settleBatch(
  transaction: Transaction,
  batchId: number,
  settlements: readonly BatchSettlement[],
): Promise<number[]> {
  const { runId, lane } = await getBatch(transaction, batchId);
  const owned = await transaction.all<{ ordinal: number }>(
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
  const ledger = new Ledger(transaction);
  await ledger.addRemote({ runId, lane, batchId }, called);
  await settleTasks(transaction, settled);
  await transaction.run(
    `UPDATE remote_batches SET most_tokens = greatest(0, most_tokens - $1),
       most_cost_micro_usd = greatest(0, most_cost_micro_usd - $2) WHERE id = $3`,
    called.reduce((sum, { call }) => sum + storableCount(call.mostTokens), 0),
    called.reduce((sum, { call }) => sum + (call.mostCostMicroUsd ?? 0), 0),
    batchId,
  );
  await ledger.flush();
  return settlements.flatMap(({ outcome }, ordinal) =>
    ours.get(outcome.taskId) === ordinal ? [] : [outcome.taskId],
  );
}

/** @returns numbers of those that were taken; null where the task is not its worker's any more */
export async function noteResponses(
  transaction: Transaction,
  { taken, ended }: ResponseNotes,
): Promise<(number | null)[]> {
  const ledger = new Ledger(transaction);
  const responseIds: (number | null)[] = [];
  for (const response of taken) responseIds.push(await takeResponse(transaction, ledger, response));
  for (const responseId of ended) {
    // One whose task was taken from it, for a document that was edited, may have been billed.
    if (await endBatch(transaction, responseId)) await ledger.loseOfResponses([responseId]);
  }
  await ledger.flush();
  return responseIds;
}

async function takeResponse(
  transaction: Transaction,
  ledger: Ledger,
  { callId, task, batch, remoteId, mostTokens, mostCostMicroUsd }: NewResponse,
): Promise<number | null> {
  const { runId, kind, lane, endpoint, model } = batch;
  const createdAtMs = storableInteger(batch.createdAtMs);
  const begun = await transaction.one<{ id: number }>(
    `INSERT INTO remote_batches (run_id, kind, lane, endpoint, model, created_at_ms, submitted_at_ms, shard, state, remote_id)
     VALUES ($1, $2, $3, $4, $5, $6, $6, 0, 'submitted', $7) RETURNING id`,
    ...[runId, kind, lane, endpoint, model, createdAtMs, remoteId],
  );
  const responseId = begun?.id ?? 0;
  const load = { bytes: 0, mostTokens, mostCostMicroUsd: mostCostMicroUsd ?? 0 };
  const lost = await giveTasks(transaction, responseId, [task], load);
  if (lost.length > 0) {
    await transaction.run('DELETE FROM remote_batches WHERE id = $1', responseId);
    return null;
  }
  await ledger.handOver(callId, responseId);
  return responseId;
}

async function responsesOf(transaction: Transaction, runId: number): Promise<StoredResponse[]> {
  const batches = await batchesWhere(
    transaction,
    `run_id = $1 AND kind = 'response' AND state <> 'settled'`,
    runId,
  );
  const responses: StoredResponse[] = [];
  for (const batch of batches) {
    const [task] = await tasksOfBatch(transaction, batch.id, null, 1);
    const call = await transaction.one<{ callId: number; startedAtMs: number }>(
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
async function endBatch(transaction: Transaction, batchId: number): Promise<boolean> {
  // Nobody asks for a response any more, and there may be one for each document.
  const deleted = await transaction.run(
    `DELETE FROM remote_batches WHERE id = $1 AND kind = 'response'
       AND NOT EXISTS (SELECT 1 FROM tasks WHERE remote_batch_id = remote_batches.id)`,
    batchId,
  );
  const ended = await transaction.run(
    `UPDATE remote_batches SET ${SETTLED} WHERE id = $1
       AND NOT EXISTS (SELECT 1 FROM tasks WHERE remote_batch_id = remote_batches.id)`,
    batchId,
  );
  return deleted + ended > 0;
}

async function getBatch(transaction: Transaction, batchId: number): Promise<BatchRecord> {
  const [batch] = await batchesWhere(transaction, 'id = $1', batchId);
  if (batch === undefined) throw new RangeError(`there is no batch with the number ${batchId}`);
  return batch;
}

function batchesWhere(transaction: Transaction, where: string, id: number): Promise<BatchRecord[]> {
  return transaction.all(`SELECT ${BATCH_COLUMNS} FROM remote_batches WHERE ${where} ORDER BY id`, id);
}
