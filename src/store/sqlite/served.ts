/** Tasks that were handed in over HTTP, what only they have, and the outbox of what is to be told of them. */
import type Database from 'better-sqlite3';
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
import type { SubmitOptions } from '../served-store.js';
import { TABLES_OF_TASK, UNOWNED, UNPAIRED } from '../sql/parts.js';
import {
  storableInteger,
  storableIntegerOrNull,
  storableReal,
  storableText,
  storableTextOrNull,
} from '../storable.js';

interface KeyRow {
  publicId: string;
  bodyHash: string | null;
}

interface ExpiryRow {
  taskId: number;
  isOpen: number;
  settledAtMs: number | null;
}

const IS_OPEN = `(state = 'ready' OR state = 'delayed' OR state = 'in_progress')`;

const MESSAGE = `webhooks.task_id AS taskId, tasks.run_id AS runId, public_id AS publicId, webhook_url AS url,
  message_id AS messageId, webhooks.attempts`;
const OF_MESSAGE = `JOIN served_tasks ON served_tasks.task_id = webhooks.task_id
  JOIN tasks ON tasks.id = webhooks.task_id`;

export class Served {
  readonly #adopt;
  readonly #runs;
  readonly #runState;
  readonly #isImporting;
  readonly #reopen;
  readonly #openTasks;
  readonly #taskOfKey;
  readonly #runOfKey;
  readonly #lastTaskId;
  readonly #insertTask;
  readonly #insertDocument;
  readonly #insertServed;
  readonly #count;
  readonly #noteRun;
  readonly #openRun;
  readonly #find;
  readonly #cancel;
  readonly #due;
  readonly #message;
  readonly #hold;
  readonly #nextDue;
  readonly #again;
  readonly #end;
  readonly #withdraw;
  readonly #parkOthers;
  readonly #parked;
  readonly #retry;
  readonly #countByState;
  readonly #old;
  readonly #postpone;
  readonly #remove: readonly Database.Statement<[number]>[];
  readonly #lastOldCall;
  readonly #removeCallShares;
  readonly #removeCalls;

  constructor(database: Database.Database) {
    this.#adopt = database.prepare<[number, number]>(
      'INSERT OR REPLACE INTO served_runs (run_id, is_bulk) VALUES (?, ?)',
    );
    this.#runs = database.prepare<[], { runId: number; isBulk: number }>(
      `SELECT run_id AS runId, is_bulk AS isBulk FROM served_runs JOIN runs ON runs.id = run_id
       WHERE deleted = 0 ORDER BY run_id DESC`,
    );
    this.#runState = database
      .prepare<[number], string>('SELECT status FROM runs WHERE id = ? AND deleted = 0')
      .pluck();
    this.#isImporting = database
      .prepare<[number], number>(`SELECT status = 'importing' FROM runs WHERE id = ? AND deleted = 0`)
      .pluck();
    this.#reopen = database.prepare<[number]>(
      `UPDATE runs SET status = 'open', halt_reason = NULL WHERE id = ? AND status = 'finished'`,
    );
    this.#openTasks = database
      .prepare<[number], number>(
        `SELECT coalesce(sum(tasks), 0) FROM task_counts WHERE run_id = ? AND ${IS_OPEN}`,
      )
      .pluck();
    this.#taskOfKey = database.prepare<[string], KeyRow>(
      'SELECT public_id AS publicId, body_hash AS bodyHash FROM served_tasks WHERE idempotency_key = ?',
    );
    this.#runOfKey = database.prepare<[string], KeyRow>(
      `SELECT name AS publicId, body_hash AS bodyHash FROM served_runs JOIN runs ON runs.id = run_id
       WHERE idempotency_key = ?`,
    );
    this.#lastTaskId = database.prepare<[], number>('SELECT coalesce(max(id), 0) FROM tasks').pluck();
    // The order in which they came is that of their ids, whatever was removed meanwhile.
    this.#insertTask = database.prepare<(string | number)[]>(
      `INSERT INTO tasks (id, run_id, line, priority, import_generation, occurrence, key, request_hash, state)
       VALUES (?, ?, ?, ?, 0, 0, ?, ?, 'ready')`,
    );
    this.#insertDocument = database.prepare<[number, string | null, string]>(
      'INSERT INTO documents (task_id, metadata_json, body) VALUES (?, ?, ?)',
    );
    this.#insertServed = database.prepare<(string | number | null)[]>(
      `INSERT INTO served_tasks (task_id, public_id, submitted_at_ms, expires_at_ms, idempotency_key, body_hash,
         max_attempts, webhook_url, traceparent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#count = database.prepare<[number, number]>(
      `INSERT INTO task_counts (run_id, state, kind, tasks) VALUES (?, 'ready', '', ?)
       ON CONFLICT DO UPDATE SET tasks = tasks + excluded.tasks`,
    );
    this.#noteRun = database.prepare<[string | null, string | null, number]>(
      'UPDATE served_runs SET idempotency_key = ?, body_hash = ? WHERE run_id = ?',
    );
    this.#openRun = database.prepare<[number]>(`UPDATE runs SET status = 'open' WHERE id = ?`);
    this.#find = database.prepare<[string], ServedTask>(
      `SELECT task_id AS taskId, run_id AS runId, public_id AS publicId, state, submitted_at_ms AS submittedAtMs,
         traceparent
       FROM served_tasks JOIN tasks ON tasks.id = task_id JOIN runs ON runs.id = run_id AND deleted = 0
       WHERE public_id = ?`,
    );
    this.#cancel = database.prepare<[string]>(
      `UPDATE tasks SET state = 'cancelled', not_before_ms = NULL, throttled_since_ms = NULL, ${UNOWNED}, ${UNPAIRED}
       WHERE id = (SELECT task_id FROM served_tasks WHERE public_id = ?) AND ${IS_OPEN}`,
    );
    this.#due = database
      .prepare<[number, number], number>(
        `SELECT task_id FROM webhooks INDEXED BY webhooks_due WHERE state = 'due' AND due_at_ms <= ?
         ORDER BY due_at_ms LIMIT ? + 0`,
      )
      .pluck();
    this.#message = database.prepare<[number], WebhookMessage>(
      `SELECT ${MESSAGE}, traceparent FROM webhooks ${OF_MESSAGE} WHERE webhooks.task_id = ?`,
    );
    this.#hold = database.prepare<[number, number]>(
      'UPDATE webhooks SET due_at_ms = ?, attempts = attempts + 1 WHERE task_id = ?',
    );
    this.#nextDue = database
      .prepare<[], number>(
        `SELECT due_at_ms FROM webhooks INDEXED BY webhooks_due WHERE state = 'due' ORDER BY due_at_ms LIMIT 1`,
      )
      .pluck();
    const ours = `WHERE task_id = ? AND message_id = ? AND state = 'due'`;
    this.#again = database.prepare<[number, number | null, string | null, number, string]>(
      `UPDATE webhooks SET due_at_ms = ?, http_status = ?, problem = ? ${ours}`,
    );
    this.#end = database.prepare<[string, number | null, string | null, number, string]>(
      `UPDATE webhooks SET state = ?, http_status = ?, problem = ? ${ours}`,
    );
    this.#withdraw = database.prepare<[number, string]>(`DELETE FROM webhooks ${ours}`);
    this.#parkOthers = database.prepare<[number | null, string | null, number]>(
      `UPDATE webhooks SET state = 'parked', http_status = ?, problem = ? WHERE state = 'due' AND task_id IN (
         SELECT other.task_id FROM served_tasks AS this JOIN served_tasks AS other
           ON other.webhook_url = this.webhook_url WHERE this.task_id = ?)`,
    );
    this.#parked = database.prepare<[number, number], WebhookRecord>(
      `SELECT ${MESSAGE}, webhooks.state, http_status AS httpStatus, problem
       FROM webhooks INDEXED BY webhooks_parked ${OF_MESSAGE}
       WHERE webhooks.state = 'parked' AND webhooks.task_id > ? ORDER BY webhooks.task_id LIMIT ? + 0`,
    );
    this.#retry = database.prepare<[string | null, string | null]>(
      `UPDATE webhooks INDEXED BY webhooks_parked SET state = 'due', due_at_ms = 0, attempts = 0
       WHERE state = 'parked' AND task_id = iif(? IS NULL, task_id,
         (SELECT task_id FROM served_tasks WHERE public_id = ?))`,
    );
    this.#countByState = database.prepare<[], { state: WebhookRecord['state']; count: number }>(
      'SELECT state, count(*) AS count FROM webhooks GROUP BY state',
    );
    this.#old = database.prepare<[number, number], ExpiryRow>(
      `SELECT task_id AS taskId, ${IS_OPEN} AS isOpen,
         (SELECT settled_at_ms FROM results WHERE results.task_id = tasks.id) AS settledAtMs
       FROM served_tasks INDEXED BY served_tasks_expiry JOIN tasks ON tasks.id = task_id
       WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ? + 0`,
    );
    this.#postpone = database.prepare<[number, number]>(
      'UPDATE served_tasks SET expires_at_ms = ? WHERE task_id = ?',
    );
    this.#remove = [
      // Children first: foreign keys are checked at once.
      ...TABLES_OF_TASK.map((table) => database.prepare<[number]>(`DELETE FROM ${table} WHERE task_id = ?`)),
      database.prepare<[number]>('DELETE FROM tasks WHERE id = ?'),
    ];
    const oldCalls = `FROM calls NOT INDEXED WHERE id > ? AND id <= ? AND finished_at_ms < ?
      AND run_id IN (SELECT run_id FROM served_runs WHERE is_bulk = 0)`;
    this.#lastOldCall = database
      .prepare<[number, number, number], number | null>(
        `SELECT max(id) FROM (
           SELECT id, finished_at_ms FROM calls WHERE id > ? ORDER BY id LIMIT ? + 0) WHERE finished_at_ms < ?`,
      )
      .pluck();
    this.#removeCallShares = database.prepare<[number, number, number]>(
      `DELETE FROM call_tasks WHERE call_id IN (SELECT id ${oldCalls})`,
    );
    this.#removeCalls = database.prepare<[number, number, number]>(`DELETE ${oldCalls}`);
  }

  adoptRun(runId: number, isBulk: boolean): void {
    this.#stateOf(runId);
    this.#adopt.run(runId, isBulk ? 1 : 0);
  }

  runs(): ServedRun[] {
    return this.#runs.all().map(({ runId, isBulk }) => ({ runId, isBulk: isBulk === 1 }));
  }

  submit(
    runId: number,
    tasks: readonly NewServedTask[],
    { mostOpen, ttlMs }: SubmitOptions,
    nowMs: number,
  ): SubmissionOutcome[] {
    if (this.#stateOf(runId) === 'cancelled') {
      throw usageError('RUN_CANCELLED', 'The run of these tasks was cancelled for good.');
    }
    const room = mostOpen - (this.#openTasks.get(runId) ?? 0);
    let taskId = this.#lastTaskId.get() ?? 0;
    let added = 0;
    const outcomes = tasks.map((task): SubmissionOutcome => {
      const earlier = this.#earlier(task.idempotency);
      if (earlier !== null) return earlier;
      if (added >= room) return { type: 'backlog_full' };
      taskId += 1;
      this.#insert(runId, taskId, task, nowMs, nowMs + ttlMs);
      added += 1;
      return { type: 'accepted' };
    });
    if (added > 0) {
      this.#count.run(runId, added);
      this.#reopen.run(runId);
    }
    return outcomes;
  }

  openRun(
    runId: number,
    publicId: string,
    idempotency: Idempotency | null,
  ): Exclude<SubmissionOutcome, { type: 'backlog_full' }> {
    const earlier = this.#earlier(idempotency);
    if (earlier !== null && (earlier.type !== 'repeated' || earlier.publicId !== publicId)) return earlier;
    if (this.#isImporting.get(runId) !== 1) throw runMissing(runId);
    this.#noteRun.run(idempotency?.key ?? null, idempotency?.bodyHash ?? null, runId);
    this.#openRun.run(runId);
    return { type: 'accepted' };
  }

  find(publicId: string): ServedTask | null {
    return this.#find.get(storableText(publicId)) ?? null;
  }

  cancel(publicId: string): boolean {
    return this.#cancel.run(storableText(publicId)).changes > 0;
  }

  take(limit: number, holdMs: number, nowMs: number): WebhookMessage[] {
    return this.#due.all(storableInteger(nowMs), limit).flatMap((taskId) => {
      const message = this.#message.get(taskId);
      this.#hold.run(storableInteger(nowMs + holdMs), taskId);
      return message === undefined ? [] : [message];
    });
  }

  note(tries: readonly WebhookTry[], nowMs: number): void {
    for (const { taskId, messageId, outcome, httpStatus, problem } of tries) {
      const status = storableIntegerOrNull(httpStatus);
      const words = storableTextOrNull(problem);
      if (typeof outcome === 'object') {
        this.#again.run(storableInteger(nowMs + outcome.againInMs), status, words, taskId, messageId);
      } else if (outcome === 'withdrawn') {
        this.#withdraw.run(taskId, messageId);
      } else {
        this.#end.run(outcome === 'delivered' ? outcome : 'parked', status, words, taskId, messageId);
        if (outcome === 'gone') this.#parkOthers.run(status, words, taskId);
      }
    }
  }

  nextDueAtMs(): number | null {
    return this.#nextDue.get() ?? null;
  }

  parked(afterTaskId: number, limit: number): WebhookRecord[] {
    return this.#parked.all(afterTaskId, limit);
  }

  retry(publicId: string | null): number {
    const wanted = storableTextOrNull(publicId);
    return this.#retry.run(wanted, wanted).changes;
  }

  countWebhooks(): Record<WebhookRecord['state'], number> {
    const counts = { due: 0, delivered: 0, parked: 0 };
    for (const { state, count } of this.#countByState.all()) counts[state] = count;
    return counts;
  }

  /**
   * A task that is open is looked at again after its time to live; one that ended, when its result is as old as that.
   * @returns how far calls were looked through; null when all is removed that is old enough
   */
  expire(ttlMs: number, cursor: string | null, limit: number, nowMs: number): string | null {
    const old = this.#old.all(storableInteger(nowMs), limit);
    for (const { taskId, isOpen, settledAtMs } of old) {
      const expiresAtMs = isOpen === 1 ? nowMs + ttlMs : (settledAtMs ?? 0) + ttlMs;
      if (expiresAtMs > nowMs) this.#postpone.run(storableInteger(expiresAtMs), taskId);
      else for (const statement of this.#remove) statement.run(taskId);
    }
    const from = Number(cursor ?? 0);
    const cutMs = storableInteger(nowMs - ttlMs);
    const to = this.#lastOldCall.get(from, limit, cutMs) ?? null;
    if (to === null) return old.length < limit ? null : String(from);
    this.#removeCallShares.run(from, to, cutMs);
    this.#removeCalls.run(from, to, cutMs);
    return String(to);
  }

  #stateOf(runId: number): string {
    const state = this.#runState.get(runId);
    if (state === undefined) throw runMissing(runId);
    return state;
  }

  #earlier(
    idempotency: Idempotency | null,
  ): Extract<SubmissionOutcome, { type: 'repeated' | 'conflict' }> | null {
    if (idempotency === null) return null;
    const earlier = this.#taskOfKey.get(idempotency.key) ?? this.#runOfKey.get(idempotency.key);
    if (earlier === undefined) return null;
    const { publicId, bodyHash } = earlier;
    return bodyHash === idempotency.bodyHash ? { type: 'repeated', publicId } : { type: 'conflict' };
  }

  #insert(runId: number, taskId: number, task: NewServedTask, nowMs: number, expiresAtMs: number): void {
    const publicId = storableText(task.publicId);
    this.#insertTask.run(
      taskId,
      runId,
      taskId,
      storableReal(task.priority),
      publicId,
      storableText(task.requestHash),
    );
    this.#insertDocument.run(taskId, storableTextOrNull(task.metadataJson), storableText(task.body));
    this.#insertServed.run(
      taskId,
      publicId,
      storableInteger(nowMs),
      storableInteger(expiresAtMs),
      task.idempotency?.key ?? null,
      task.idempotency?.bodyHash ?? null,
      storableIntegerOrNull(task.maxAttempts),
      storableTextOrNull(task.webhookUrl),
      storableTextOrNull(task.traceparent),
    );
  }
}
