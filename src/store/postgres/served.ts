/** Tasks that were handed in over HTTP, what only they have, and the outbox of what is to be told of them. */
import { usageError } from '../../core/errors.js';
import type {
  Idempotency,
  NewServedTask,
  ServedRun,
  ServedTask,
  SubmissionOutcome,
  WebhookMessage,
  WebhookRecord,
  WebhookTry,
} from '../../core/served-task.js';
import { runMissing } from '../run-errors.js';
import type { ServedStore, SubmitOptions } from '../served-store.js';
import { TABLES_OF_TASK, UNOWNED, UNPAIRED } from '../sql/parts.js';
import { storableInteger, storableIntegerOrNull, storableReal } from '../storable.js';
import type { Connections, Transaction } from './connections.js';
import { namesOf, rowsOf, toColumns } from './wire.js';

const IS_OPEN = `state IN ('ready', 'delayed', 'in_progress')`;
const MESSAGE = `webhooks.task_id AS "taskId", tasks.run_id AS "runId", public_id AS "publicId", webhook_url AS url,
  message_id AS "messageId"`;
const OF_MESSAGE = `JOIN served_tasks ON served_tasks.task_id = webhooks.task_id
  JOIN tasks ON tasks.id = webhooks.task_id`;
/** What only a task has that was handed in. */
const SERVED = {
  public_id: 'text',
  idempotency_key: 'text',
  body_hash: 'text',
  max_attempts: 'bigint',
  webhook_url: 'text',
  traceparent: 'text',
} as const;
const SUBMITTED = {
  ...SERVED,
  priority: 'double precision',
  request_hash: 'text',
  metadata_json: 'text',
  body: 'text',
} as const;
const IDS = '(SELECT json_array_elements_text($1)::bigint)';

export function servedStore(connections: Connections): ServedStore {
  return {
    adoptRun: (runId, isBulk) => connections.write((transaction) => adoptRun(transaction, runId, isBulk)),
    listRuns: () => connections.readOnce(servedRuns),
    submit: (runId, tasks, options) =>
      connections.write((transaction) => submitTasks(transaction, runId, tasks, options)),
    openRun: (runId, publicId, idempotency) =>
      connections.write((transaction) => openServedRun(transaction, runId, publicId, idempotency)),
    find: (publicId) => connections.readOnce((transaction) => findTask(transaction, publicId)),
    cancel: (publicId) => connections.write((transaction) => cancelTask(transaction, publicId)),
    takeWebhooks: (limit, holdMs) =>
      connections.write((transaction) => takeWebhooks(transaction, limit, holdMs)),
    noteWebhooks: (tries) => connections.write((transaction) => noteWebhooks(transaction, tries)),
    nextWebhookMs: () => connections.readOnce(nextWebhookMs),
    listWebhooks: (afterTaskId, limit) =>
      connections.readOnce((transaction) =>
        transaction.all<WebhookRecord>(
          `SELECT ${MESSAGE}, webhooks.attempts, webhooks.state, http_status AS "httpStatus", problem
           FROM webhooks ${OF_MESSAGE} WHERE webhooks.state = 'parked' AND webhooks.task_id > $1
           ORDER BY webhooks.task_id LIMIT $2`,
          afterTaskId,
          limit,
        ),
      ),
    retryWebhooks: (publicId) =>
      connections.write((transaction) =>
        transaction.run(
          `UPDATE webhooks SET state = 'due', due_at_ms = 0, attempts = 0 WHERE state = 'parked'
             AND ($1::text IS NULL OR task_id = (SELECT task_id FROM served_tasks WHERE public_id = $1))`,
          publicId,
        ),
      ),
    countWebhooks: () => connections.readOnce(countWebhooks),
    expire: (ttlMs, cursor, limit) =>
      connections.write((transaction) => expireTasks(transaction, ttlMs, cursor, limit)),
  };
}

async function adoptRun(transaction: Transaction, runId: number, isBulk: boolean): Promise<void> {
  await lockedState(transaction, runId);
  await transaction.run(
    `INSERT INTO served_runs (run_id, is_bulk) VALUES ($1, $2)
     ON CONFLICT (run_id) DO UPDATE SET is_bulk = excluded.is_bulk, idempotency_key = NULL, body_hash = NULL`,
    runId,
    isBulk ? 1 : 0,
  );
}

async function servedRuns(transaction: Transaction): Promise<ServedRun[]> {
  const rows = await transaction.all<{ run_id: number; is_bulk: number }>(
    `SELECT run_id, is_bulk FROM served_runs JOIN runs ON runs.id = run_id WHERE deleted = 0 ORDER BY run_id DESC`,
  );
  return rows.map(({ run_id, is_bulk }) => ({ runId: run_id, isBulk: is_bulk === 1 }));
}

/** Whoever submits to a run at the same time waits: room and keys are counted by one after the other. */
async function lockedState(transaction: Transaction, runId: number): Promise<string> {
  const run = await transaction.one<{ status: string }>(
    'SELECT status FROM runs WHERE id = $1 AND deleted = 0 FOR NO KEY UPDATE',
    runId,
  );
  if (run === undefined) throw runMissing(runId);
  return run.status;
}

async function submitTasks(
  transaction: Transaction,
  runId: number,
  tasks: readonly NewServedTask[],
  { mostOpen, ttlMs }: SubmitOptions,
): Promise<SubmissionOutcome[]> {
  // They are on their way together: what the others find is of after the lock.
  const [status, open, known] = await Promise.all([
    lockedState(transaction, runId),
    transaction.one<{ tasks: number }>(
      `SELECT coalesce(sum(tasks), 0) AS tasks FROM task_counts WHERE run_id = $1 AND ${IS_OPEN}`,
      runId,
    ),
    submittedBefore(
      transaction,
      tasks.flatMap(({ idempotency }) => idempotency ?? []),
    ),
  ]);
  if (status === 'cancelled') {
    throw usageError('RUN_CANCELLED', 'The run of these tasks was cancelled for good.');
  }
  const room = mostOpen - (open?.tasks ?? 0);
  const accepted: NewServedTask[] = [];
  const outcomes = tasks.map((task): SubmissionOutcome => {
    const { idempotency, publicId } = task;
    const earlier = idempotency === null ? undefined : known.get(idempotency.key);
    if (idempotency !== null && earlier !== undefined) return comparedWith(earlier, idempotency);
    if (accepted.length >= room) return { type: 'backlog_full' };
    accepted.push(task);
    if (idempotency !== null) known.set(idempotency.key, { publicId, bodyHash: idempotency.bodyHash });
    return { type: 'accepted' };
  });
  if (accepted.length > 0) {
    await Promise.all([
      insertTasks(transaction, runId, accepted, ttlMs),
      transaction.run(
        `UPDATE runs SET status = 'open', halt_reason = NULL WHERE id = $1 AND status = 'finished'`,
        runId,
      ),
    ]);
  }
  return outcomes;
}

interface Submitted {
  readonly publicId: string;
  readonly bodyHash: string | null;
}

/** Tasks and runs by idempotency keys. */
async function submittedBefore(
  transaction: Transaction,
  idempotencies: readonly Idempotency[],
): Promise<Map<string, Submitted>> {
  if (idempotencies.length === 0) return new Map();
  const rows = await transaction.all<Submitted & { key: string }>(
    `WITH asked AS (SELECT key FROM json_to_recordset($1) AS asked (key text))
     SELECT idempotency_key AS key, name AS "publicId", body_hash AS "bodyHash"
     FROM served_runs JOIN runs ON runs.id = run_id WHERE idempotency_key IN (SELECT key FROM asked) AND deleted = 0
     UNION ALL SELECT idempotency_key, public_id, body_hash
     FROM served_tasks WHERE idempotency_key IN (SELECT key FROM asked)`,
    idempotencies.map(({ key }) => ({ key })),
  );
  return new Map(rows.map((row) => [row.key, row]));
}

function comparedWith(
  { publicId, bodyHash }: Submitted,
  idempotency: Idempotency,
): Extract<SubmissionOutcome, { type: 'repeated' | 'conflict' }> {
  return bodyHash === idempotency.bodyHash ? { type: 'repeated', publicId } : { type: 'conflict' };
}

async function insertTasks(
  transaction: Transaction,
  runId: number,
  tasks: readonly NewServedTask[],
  ttlMs: number,
): Promise<void> {
  await transaction.run(
    `WITH submitted AS MATERIALIZED (
       SELECT nextval('tasks_id_seq') AS id, submitted.* FROM ${rowsOf(SUBMITTED, 'submitted', 3)}),
     their_documents AS (
       INSERT INTO documents (task_id, metadata_json, body) SELECT id, metadata_json, body FROM submitted),
     served AS (
       INSERT INTO served_tasks (task_id, submitted_at_ms, expires_at_ms, ${namesOf(SERVED)})
       SELECT id, (SELECT now_ms()), (SELECT now_ms()) + $2, ${namesOf(SERVED)} FROM submitted)
     -- The order in which they came is that of their ids, whatever was removed meanwhile.
     INSERT INTO tasks (id, run_id, line, priority, import_generation, occurrence, key, request_hash, state)
     SELECT id, $1, id, priority, 0, 0, public_id, request_hash, 'ready' FROM submitted`,
    runId,
    storableInteger(ttlMs),
    ...toColumns(
      SUBMITTED,
      tasks.map((task) => ({
        ...{ public_id: task.publicId, priority: storableReal(task.priority), body: task.body },
        ...{
          request_hash: task.requestHash,
          metadata_json: task.metadataJson,
          traceparent: task.traceparent,
        },
        ...{ idempotency_key: task.idempotency?.key, body_hash: task.idempotency?.bodyHash },
        ...{ max_attempts: storableIntegerOrNull(task.maxAttempts), webhook_url: task.webhookUrl },
      })),
    ),
  );
}

async function openServedRun(
  transaction: Transaction,
  runId: number,
  publicId: string,
  idempotency: Idempotency | null,
): Promise<Exclude<SubmissionOutcome, { type: 'backlog_full' }>> {
  const status = await lockedState(transaction, runId);
  if (idempotency !== null) {
    const earlier = (await submittedBefore(transaction, [idempotency])).get(idempotency.key);
    if (earlier !== undefined) {
      const outcome = comparedWith(earlier, idempotency);
      if (outcome.type === 'conflict' || outcome.publicId !== publicId) return outcome;
    }
  }
  if (status !== 'importing') throw runMissing(runId);
  await transaction.run(
    'UPDATE served_runs SET idempotency_key = $1, body_hash = $2 WHERE run_id = $3',
    idempotency?.key ?? null,
    idempotency?.bodyHash ?? null,
    runId,
  );
  await transaction.run(`UPDATE runs SET status = 'open' WHERE id = $1`, runId);
  return { type: 'accepted' };
}

async function findTask(transaction: Transaction, publicId: string): Promise<ServedTask | null> {
  const task = await transaction.one<ServedTask>(
    `SELECT task_id AS "taskId", run_id AS "runId", public_id AS "publicId", state,
       submitted_at_ms AS "submittedAtMs", traceparent
     FROM served_tasks JOIN tasks ON tasks.id = task_id JOIN runs ON runs.id = run_id AND deleted = 0
     WHERE public_id = $1`,
    publicId,
  );
  return task ?? null;
}

async function cancelTask(transaction: Transaction, publicId: string): Promise<boolean> {
  const cancelled = await transaction.run(
    `UPDATE tasks SET state = 'cancelled', not_before_ms = NULL, throttled_since_ms = NULL, ${UNOWNED}, ${UNPAIRED}
     WHERE id = (SELECT task_id FROM served_tasks WHERE public_id = $1) AND ${IS_OPEN}`,
    publicId,
  );
  return cancelled > 0;
}

async function takeWebhooks(
  transaction: Transaction,
  limit: number,
  holdMs: number,
): Promise<WebhookMessage[]> {
  const rows = await transaction.all<WebhookMessage & { was_due_at_ms: number }>(
    `WITH due AS MATERIALIZED (
       SELECT task_id AS id, due_at_ms AS was_due_at_ms FROM webhooks WHERE state = 'due' AND due_at_ms <= now_ms()
       ORDER BY due_at_ms, task_id LIMIT $1 FOR UPDATE SKIP LOCKED)
     UPDATE webhooks SET due_at_ms = now_ms() + $2, attempts = webhooks.attempts + 1
     FROM due JOIN served_tasks ON served_tasks.task_id = id JOIN tasks ON tasks.id = due.id
     WHERE webhooks.task_id = due.id
     RETURNING ${MESSAGE}, webhooks.attempts - 1 AS attempts, traceparent, was_due_at_ms`,
    limit,
    storableInteger(holdMs),
  );
  rows.sort((one, other) => one.was_due_at_ms - other.was_due_at_ms || one.taskId - other.taskId);
  return rows.map(({ was_due_at_ms: _, ...message }) => message);
}

async function noteWebhooks(transaction: Transaction, tries: readonly WebhookTry[]): Promise<void> {
  for (const { taskId, messageId, outcome, httpStatus, problem } of tries) {
    const isOurs = `task_id = $1 AND message_id = $2 AND state = 'due'`;
    const said = [storableIntegerOrNull(httpStatus), problem] as const;
    if (typeof outcome === 'object') {
      await transaction.run(
        `UPDATE webhooks SET http_status = $3, problem = $4, due_at_ms = now_ms() + $5 WHERE ${isOurs}`,
        ...[taskId, messageId, ...said, storableInteger(outcome.againInMs)],
      );
    } else if (outcome === 'withdrawn') {
      await transaction.run(`DELETE FROM webhooks WHERE ${isOurs}`, taskId, messageId);
    } else {
      await transaction.run(
        `UPDATE webhooks SET http_status = $3, problem = $4, state = $5 WHERE ${isOurs}`,
        ...[taskId, messageId, ...said, outcome === 'delivered' ? outcome : 'parked'],
      );
      if (outcome !== 'gone') continue;
      await transaction.run(
        `UPDATE webhooks SET state = 'parked', http_status = $2, problem = $3 WHERE state = 'due' AND task_id IN (
           SELECT other.task_id FROM served_tasks AS this JOIN served_tasks AS other
             ON other.webhook_url = this.webhook_url WHERE this.task_id = $1)`,
        taskId,
        ...said,
      );
    }
  }
}

async function nextWebhookMs(transaction: Transaction): Promise<number | null> {
  const next = await transaction.one<{ wait_ms: number | null }>(
    `SELECT greatest(0, min(due_at_ms) - now_ms()) AS wait_ms FROM webhooks WHERE state = 'due'
     HAVING min(due_at_ms) IS NOT NULL`,
  );
  return next?.wait_ms ?? null;
}

async function countWebhooks(transaction: Transaction): Promise<Record<WebhookRecord['state'], number>> {
  const counts = { due: 0, delivered: 0, parked: 0 };
  const rows = await transaction.all<{ state: WebhookRecord['state']; count: number }>(
    'SELECT state, count(*) AS count FROM webhooks GROUP BY state',
  );
  for (const { state, count } of rows) counts[state] = count;
  return counts;
}

/**
 * A task that is open is looked at again after its time to live; one that ended, when its result is as old as that.
 * @returns how far calls were looked through; null when all is removed that is old enough
 */
async function expireTasks(
  transaction: Transaction,
  ttlMs: number,
  cursor: string | null,
  limit: number,
): Promise<string | null> {
  const ttl = storableInteger(ttlMs);
  const old = await transaction.all<{ id: number; is_expired: boolean }>(
    `WITH old AS MATERIALIZED (
       SELECT task_id, CASE WHEN ${IS_OPEN} THEN now_ms()
           ELSE coalesce((SELECT settled_at_ms FROM results WHERE results.task_id = tasks.id), 0) END + $1 AS expires_at_ms
       FROM served_tasks JOIN tasks ON tasks.id = task_id
       WHERE served_tasks.expires_at_ms <= now_ms() ORDER BY served_tasks.expires_at_ms LIMIT $2),
     postponed AS (
       UPDATE served_tasks SET expires_at_ms = old.expires_at_ms FROM old
       WHERE served_tasks.task_id = old.task_id AND old.expires_at_ms > now_ms())
     SELECT task_id AS id, expires_at_ms <= now_ms() AS is_expired FROM old`,
    ttl,
    limit,
  );
  const expired = old.filter(({ is_expired }) => is_expired).map(({ id }) => id);
  if (expired.length > 0) {
    for (const table of TABLES_OF_TASK)
      await transaction.run(`DELETE FROM ${table} WHERE task_id IN ${IDS}`, expired);
    await transaction.run(`DELETE FROM tasks WHERE id IN ${IDS}`, expired);
  }
  const from = Number(cursor ?? 0);
  const last = await transaction.one<{ id: number | null }>(
    `SELECT max(id) AS id FROM (SELECT id, finished_at_ms FROM calls WHERE id > $1 ORDER BY id LIMIT $2) AS next
     WHERE finished_at_ms < now_ms() - $3`,
    ...[from, limit, ttl],
  );
  if (last === undefined || last.id === null) return old.length < limit ? null : String(from);
  await transaction.run(
    `WITH removed AS (
       DELETE FROM calls WHERE id > $1 AND id <= $2 AND finished_at_ms < now_ms() - $3
         AND run_id IN (SELECT run_id FROM served_runs WHERE is_bulk = 0) RETURNING id)
     DELETE FROM call_tasks WHERE call_id IN (SELECT id FROM removed)`,
    ...[from, last.id, ttl],
  );
  return String(last.id);
}
