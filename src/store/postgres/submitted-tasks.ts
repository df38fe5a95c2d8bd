/** Tasks that were handed in over HTTP, as they are written: all of a submission in one statement. */
import type { InsertTasks } from '../sql/served.js';
import { run } from '../sql/steps.js';
import { storableInteger, storableIntegerOrNull, storableReal } from '../storable.js';
import { namesOf, rowsOf, toColumns } from './wire.js';

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
export const insertTasks: InsertTasks = function* (runId, tasks, ttlMs) {
  yield* run(
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
};
