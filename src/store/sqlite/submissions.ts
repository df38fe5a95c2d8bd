/** Tasks that are handed in over HTTP: the statements of every submission, prepared once. */
import type Database from 'better-sqlite3';
import type { Clock } from '../../core/clock.js';
import type { Idempotency, NewServedTask } from '../../core/served-task.js';
import type { SubmissionStore, Submitted } from '../sql/served.js';
import { already, type Steps } from '../sql/steps.js';
import {
  storableInteger,
  storableIntegerOrNull,
  storableReal,
  storableText,
  storableTextOrNull,
} from '../storable.js';

type Bindings = (string | number | null)[];

export class Submissions implements SubmissionStore {
  readonly #clock: Clock;
  readonly #taskOfKey;
  readonly #runOfKey;
  readonly #lastTaskId;
  readonly #insertTask;
  readonly #insertDocument;
  readonly #insertServed;
  readonly #count;

  constructor(database: Database.Database, clock: Clock) {
    this.#clock = clock;
    this.#taskOfKey = database.prepare<[string], Submitted>(
      'SELECT public_id AS publicId, body_hash AS bodyHash FROM served_tasks WHERE idempotency_key = ?',
    );
    this.#runOfKey = database.prepare<[string], Submitted>(
      `SELECT name AS publicId, body_hash AS bodyHash FROM served_runs JOIN runs ON runs.id = run_id
       WHERE idempotency_key = ?`,
    );
    this.#lastTaskId = database.prepare<[], number>('SELECT coalesce(max(id), 0) FROM tasks').pluck();
    // The order in which they came is that of their ids, whatever was removed meanwhile.
    this.#insertTask = database.prepare<Bindings>(
      `INSERT INTO tasks (id, run_id, line, priority, import_generation, occurrence, key, request_hash, state)
       VALUES (?, ?, ?, ?, 0, 0, ?, ?, 'ready')`,
    );
    this.#insertDocument = database.prepare<Bindings>(
      'INSERT INTO documents (task_id, metadata_json, body) VALUES (?, ?, ?)',
    );
    this.#insertServed = database.prepare<Bindings>(
      `INSERT INTO served_tasks (task_id, public_id, submitted_at_ms, expires_at_ms, idempotency_key, body_hash,
         max_attempts, webhook_url, traceparent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#count = database.prepare<[number, number]>(
      `INSERT INTO task_counts (run_id, state, kind, tasks) VALUES (?, 'ready', '', ?)
       ON CONFLICT DO UPDATE SET tasks = tasks + excluded.tasks`,
    );
  }

  before(idempotencies: readonly Idempotency[]): Steps<Map<string, Submitted>> {
    const known = new Map<string, Submitted>();
    for (const { key } of idempotencies) {
      const submitted = this.#taskOfKey.get(key) ?? this.#runOfKey.get(key);
      if (submitted !== undefined) known.set(key, submitted);
    }
    return already(known);
  }

  insert(runId: number, tasks: readonly NewServedTask[], ttlMs: number): Steps<void> {
    const nowMs = storableInteger(this.#clock.now());
    let taskId = this.#lastTaskId.get() ?? 0;
    for (const task of tasks) {
      taskId += 1;
      const publicId = storableText(task.publicId);
      const priority = storableReal(task.priority);
      this.#insertTask.run(taskId, runId, taskId, priority, publicId, storableText(task.requestHash));
      this.#insertDocument.run(taskId, storableTextOrNull(task.metadataJson), storableText(task.body));
      this.#insertServed.run(
        ...[taskId, publicId, nowMs, storableInteger(nowMs + ttlMs)],
        ...[task.idempotency?.key ?? null, task.idempotency?.bodyHash ?? null],
        storableIntegerOrNull(task.maxAttempts),
        ...[storableTextOrNull(task.webhookUrl), storableTextOrNull(task.traceparent)],
      );
    }
    this.#count.run(runId, tasks.length);
    return already(undefined);
  }
}
