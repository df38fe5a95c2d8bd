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
import { storableInteger, storableIntegerOrNull } from '../storable.js';
import { CANCELLED, IS_OPEN, idsIn, TABLES_OF_TASK } from './parts.js';
import { type DocumentStore, openImported } from './reimports.js';
import { lockRun } from './runs.js';
import { all, one, type Player, run, type Steps, together } from './steps.js';

const MESSAGE = `webhooks.task_id AS "taskId", tasks.run_id AS "runId", public_id AS "publicId", webhook_url AS url,
  message_id AS "messageId", webhooks.attempts`;
const OF_MESSAGE = `JOIN served_tasks ON served_tasks.task_id = webhooks.task_id
  JOIN tasks ON tasks.id = webhooks.task_id`;

const OPEN_TASKS = `SELECT coalesce(sum(tasks), 0) AS tasks FROM task_counts WHERE run_id = $1 AND ${IS_OPEN}`;
const IDS = idsIn('$1');

/** What was submitted under a key: a task, or a run. */
export interface Submitted {
  readonly publicId: string;
  readonly bodyHash: string | null;
}

/** How a backend finds and writes what is submitted. */
export interface SubmissionStore {
  /** By key. */
  before(idempotencies: readonly Idempotency[]): Steps<Map<string, Submitted>>;
  /** Adds tasks to a run, each with what only it has, in their order. */
  insert(runId: number, tasks: readonly NewServedTask[], ttlMs: number): Steps<unknown>;
}

export function servedStore(
  player: Player,
  documents: DocumentStore,
  submissions: SubmissionStore,
): ServedStore {
  return {
    adoptRun: (runId, isBulk) => player.write(() => adoptRun(runId, isBulk)),
    listRuns: () => player.readOnce(servedRuns),
    submit: (runId, tasks, options) => player.write(() => submitTasks(submissions, runId, tasks, options)),
    openRun: (runId, publicId, idempotency) =>
      player.write(() => openServedRun(documents, submissions, runId, publicId, idempotency)),
    find: (publicId) => player.readOnce(() => findTask(publicId)),
    cancel: (publicId) => player.write(() => cancelTask(publicId)),
    takeWebhooks: (limit, holdMs) => player.write(() => takeWebhooks(limit, holdMs)),
    noteWebhooks: (tries) => player.write(() => noteWebhooks(tries)),
    nextWebhookMs: () => player.readOnce(nextWebhookMs),
    listWebhooks: (afterTaskId, limit) =>
      player.readOnce(() =>
        all<WebhookRecord>(
          `SELECT ${MESSAGE}, webhooks.state, http_status AS "httpStatus", problem
           FROM webhooks INDEXED BY webhooks_parked ${OF_MESSAGE} WHERE webhooks.state = 'parked' AND webhooks.task_id > $1
           ORDER BY webhooks.task_id LIMIT CAST($2 AS bigint)`,
          afterTaskId,
          limit,
        ),
      ),
    retryWebhooks: (publicId) =>
      player.write(() =>
        run(
          `UPDATE webhooks INDEXED BY webhooks_parked SET state = 'due', due_at_ms = 0, attempts = 0 WHERE state = 'parked'
             AND ($1::text IS NULL OR task_id = (SELECT task_id FROM served_tasks WHERE public_id = $1))`,
          publicId,
        ),
      ),
    countWebhooks: () => player.readOnce(countWebhooks),
    expire: (ttlMs, cursor, limit) => player.write(() => expireTasks(ttlMs, cursor, limit)),
  };
}

function* adoptRun(runId: number, isBulk: boolean): Steps<void> {
  yield* lockRun(runId);
  yield* run(
    `INSERT INTO served_runs (run_id, is_bulk) VALUES ($1, $2)
     ON CONFLICT (run_id) DO UPDATE SET is_bulk = excluded.is_bulk, idempotency_key = NULL, body_hash = NULL`,
    runId,
    isBulk ? 1 : 0,
  );
}

function* servedRuns(): Steps<ServedRun[]> {
  const rows = yield* all<{ run_id: number; is_bulk: number }>(
    `SELECT run_id, is_bulk FROM served_runs JOIN runs ON runs.id = run_id WHERE deleted = 0 ORDER BY run_id DESC`,
  );
  return rows.map(({ run_id, is_bulk }) => ({ runId: run_id, isBulk: is_bulk === 1 }));
}

function* submitTasks(
  submissions: SubmissionStore,
  runId: number,
  tasks: readonly NewServedTask[],
  { mostOpen, ttlMs }: SubmitOptions,
): Steps<SubmissionOutcome[]> {
  // They are on their way together: what the others find is of after the lock.
  const [{ status }, open, known] = yield* together(
    lockRun(runId),
    one<{ tasks: number }>(OPEN_TASKS, runId),
    submissions.before(tasks.flatMap(({ idempotency }) => idempotency ?? [])),
  );
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
    yield* together(
      submissions.insert(runId, accepted, ttlMs),
      run(`UPDATE runs SET status = 'open', halt_reason = NULL WHERE id = $1 AND status = 'finished'`, runId),
    );
  }
  return outcomes;
}

function comparedWith(
  { publicId, bodyHash }: Submitted,
  idempotency: Idempotency,
): Extract<SubmissionOutcome, { type: 'repeated' | 'conflict' }> {
  return bodyHash === idempotency.bodyHash ? { type: 'repeated', publicId } : { type: 'conflict' };
}

function* openServedRun(
  documents: DocumentStore,
  submissions: SubmissionStore,
  runId: number,
  publicId: string,
  idempotency: Idempotency | null,
): Steps<Exclude<SubmissionOutcome, { type: 'backlog_full' }>> {
  const { status } = yield* lockRun(runId);
  if (idempotency !== null) {
    const earlier = (yield* submissions.before([idempotency])).get(idempotency.key);
    if (earlier !== undefined) {
      const outcome = comparedWith(earlier, idempotency);
      if (outcome.type === 'conflict' || outcome.publicId !== publicId) return outcome;
    }
  }
  if (status !== 'importing') throw runMissing(runId);
  yield* run(
    'UPDATE served_runs SET idempotency_key = $1, body_hash = $2 WHERE run_id = $3',
    idempotency?.key ?? null,
    idempotency?.bodyHash ?? null,
    runId,
  );
  yield* openImported(documents, runId);
  return { type: 'accepted' };
}

function* findTask(publicId: string): Steps<ServedTask | null> {
  const task = yield* one<ServedTask>(
    `SELECT task_id AS "taskId", run_id AS "runId", public_id AS "publicId", state,
       submitted_at_ms AS "submittedAtMs", traceparent
     FROM served_tasks JOIN tasks ON tasks.id = task_id JOIN runs ON runs.id = run_id AND deleted = 0
     WHERE public_id = $1`,
    publicId,
  );
  return task ?? null;
}

function* cancelTask(publicId: string): Steps<boolean> {
  const cancelled = yield* run(
    `UPDATE tasks SET ${CANCELLED}
     WHERE id = (SELECT task_id FROM served_tasks WHERE public_id = $1) AND ${IS_OPEN}`,
    publicId,
  );
  return cancelled > 0;
}

function* takeWebhooks(limit: number, holdMs: number): Steps<WebhookMessage[]> {
  const messages = yield* all<WebhookMessage>(
    `SELECT ${MESSAGE}, traceparent FROM webhooks INDEXED BY webhooks_due ${OF_MESSAGE}
     WHERE webhooks.state = 'due' AND due_at_ms <= now_ms()
     ORDER BY due_at_ms, webhooks.task_id LIMIT CAST($1 AS bigint) FOR UPDATE OF webhooks SKIP LOCKED`,
    limit,
  );
  if (messages.length > 0) {
    yield* run(
      `UPDATE webhooks SET due_at_ms = now_ms() + $2, attempts = attempts + 1 WHERE task_id IN ${IDS}`,
      messages.map(({ taskId }) => taskId),
      storableInteger(holdMs),
    );
  }
  return messages;
}

function* noteWebhooks(tries: readonly WebhookTry[]): Steps<void> {
  for (const { taskId, messageId, outcome, httpStatus, problem } of tries) {
    const isOurs = `task_id = $1 AND message_id = $2 AND state = 'due'`;
    const said = [storableIntegerOrNull(httpStatus), problem] as const;
    if (typeof outcome === 'object') {
      yield* run(
        `UPDATE webhooks SET http_status = $3, problem = $4, due_at_ms = now_ms() + $5 WHERE ${isOurs}`,
        ...[taskId, messageId, ...said, storableInteger(outcome.againInMs)],
      );
    } else if (outcome === 'withdrawn') {
      yield* run(`DELETE FROM webhooks WHERE ${isOurs}`, taskId, messageId);
    } else {
      yield* run(
        `UPDATE webhooks SET http_status = $3, problem = $4, state = $5 WHERE ${isOurs}`,
        ...[taskId, messageId, ...said, outcome === 'delivered' ? outcome : 'parked'],
      );
      if (outcome !== 'gone') continue;
      yield* run(
        `UPDATE webhooks SET state = 'parked', http_status = $2, problem = $3 WHERE state = 'due' AND task_id IN (
           SELECT other.task_id FROM served_tasks AS this JOIN served_tasks AS other
             ON other.webhook_url = this.webhook_url WHERE this.task_id = $1)`,
        taskId,
        ...said,
      );
    }
  }
}

function* nextWebhookMs(): Steps<number | null> {
  const next = yield* one<{ waitMs: number | null }>(
    `SELECT min(due_at_ms) - now_ms() AS "waitMs" FROM webhooks INDEXED BY webhooks_due WHERE state = 'due'`,
  );
  return next === undefined || next.waitMs === null ? null : Math.max(0, next.waitMs);
}

function* countWebhooks(): Steps<Record<WebhookRecord['state'], number>> {
  const counts = { due: 0, delivered: 0, parked: 0 };
  const rows = yield* all<{ state: WebhookRecord['state']; count: number }>(
    'SELECT state, count(*) AS count FROM webhooks GROUP BY state',
  );
  for (const { state, count } of rows) counts[state] = count;
  return counts;
}

/**
 * A task that is open is looked at again after its time to live; one that ended, when its result is as old as that.
 * @returns how far calls were looked through; null when all is removed that is old enough
 */
function* expireTasks(ttlMs: number, cursor: string | null, limit: number): Steps<string | null> {
  const ttl = storableInteger(ttlMs);
  const old = yield* all<{ task_id: number; expires_at_ms: number; is_over: number }>(
    `SELECT task_id, expires_at_ms, CASE WHEN expires_at_ms <= wall_ms() THEN 1 ELSE 0 END AS is_over FROM (
       SELECT task_id, CASE WHEN ${IS_OPEN} THEN wall_ms()
           ELSE coalesce((SELECT settled_at_ms FROM results WHERE results.task_id = tasks.id), 0) END + $1 AS expires_at_ms
       FROM served_tasks INDEXED BY served_tasks_expiry JOIN tasks ON tasks.id = task_id
       WHERE served_tasks.expires_at_ms <= wall_ms()
       ORDER BY served_tasks.expires_at_ms LIMIT CAST($2 AS bigint)) AS old`,
    ...[ttl, limit],
  );
  const postponed = old.filter(({ is_over }) => is_over === 0);
  if (postponed.length > 0) {
    yield* run(
      `UPDATE served_tasks SET expires_at_ms = later.expires_at_ms
       FROM json_to_recordset($1) AS later (task_id bigint, expires_at_ms bigint)
       WHERE served_tasks.task_id = later.task_id`,
      postponed,
    );
  }
  const expired = old.filter(({ is_over }) => is_over === 1).map(({ task_id }) => task_id);
  if (expired.length > 0) {
    for (const table of TABLES_OF_TASK) yield* run(`DELETE FROM ${table} WHERE task_id IN ${IDS}`, expired);
    yield* run(`DELETE FROM tasks WHERE id IN ${IDS}`, expired);
  }
  const from = Number(cursor ?? 0);
  const last = yield* one<{ id: number | null; cutMs: number }>(
    `SELECT max(id) AS id, wall_ms() - $3 AS "cutMs"
     FROM (SELECT id, finished_at_ms FROM calls WHERE id > $1 ORDER BY id LIMIT CAST($2 AS bigint)) AS next
     WHERE finished_at_ms < wall_ms() - $3`,
    ...[from, limit, ttl],
  );
  if (last === undefined || last.id === null) return old.length < limit ? null : String(from);
  const range = [from, last.id, last.cutMs];
  const oldCalls = `FROM calls NOT INDEXED WHERE id > $1 AND id <= $2 AND finished_at_ms < $3
    AND run_id IN (SELECT run_id FROM served_runs WHERE is_bulk = 0)`;
  // By the range too, so that no plan looks through all of them.
  yield* run(
    `DELETE FROM call_tasks WHERE call_id > $1 AND call_id <= $2 AND call_id IN (SELECT id ${oldCalls})`,
    ...range,
  );
  yield* run(`DELETE ${oldCalls}`, ...range);
  return String(last.id);
}
