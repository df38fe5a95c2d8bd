/** Tasks that were handed in over HTTP, as they are written. */
import type { InsertTasks } from '../sql/served.js';
import { one, run } from '../sql/steps.js';
import { storableInteger, storableIntegerOrNull, storableReal } from '../storable.js';

export const insertTasks: InsertTasks = function* (runId, tasks, ttlMs) {
  const last = yield* one<{ id: number }>('SELECT coalesce(max(id), 0) AS id FROM tasks');
  let taskId = last?.id ?? 0;
  for (const task of tasks) {
    taskId += 1;
    // The order in which they came is that of their ids, whatever was removed meanwhile.
    yield* run(
      `INSERT INTO tasks (id, run_id, line, priority, import_generation, occurrence, key, request_hash, state)
       VALUES ($1, $2, $1, $3, 0, 0, $4, $5, 'ready')`,
      ...[taskId, runId, storableReal(task.priority), task.publicId, task.requestHash],
    );
    yield* run(
      'INSERT INTO documents (task_id, metadata_json, body) VALUES ($1, $2, $3)',
      ...[taskId, task.metadataJson, task.body],
    );
    yield* run(
      `INSERT INTO served_tasks (task_id, public_id, submitted_at_ms, expires_at_ms, idempotency_key, body_hash,
         max_attempts, webhook_url, traceparent) VALUES ($1, $2, wall_ms(), wall_ms() + $3, $4, $5, $6, $7, $8)`,
      ...[taskId, task.publicId, storableInteger(ttlMs)],
      ...[task.idempotency?.key ?? null, task.idempotency?.bodyHash ?? null],
      ...[storableIntegerOrNull(task.maxAttempts), task.webhookUrl, task.traceparent],
    );
  }
  yield* run(
    `INSERT INTO task_counts (run_id, state, kind, tasks) VALUES ($1, 'ready', '', $2)
     ON CONFLICT DO UPDATE SET tasks = tasks + excluded.tasks`,
    ...[runId, tasks.length],
  );
};
