/** Tasks that are handed in over HTTP: all of a submission in one statement. */
import type { SubmissionStore, Submitted } from '../sql/served.js';
import { all, run } from '../sql/steps.js';
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

export const SUBMISSIONS: SubmissionStore = {
  *before(idempotencies) {
    if (idempotencies.length === 0) return new Map();
    const keys = 'IN (SELECT json_array_elements_text($1))';
    const rows = yield* all<Submitted & { readonly key: string }>(
      `SELECT idempotency_key AS key, name AS "publicId", body_hash AS "bodyHash"
       FROM served_runs JOIN runs ON runs.id = run_id WHERE idempotency_key ${keys} AND deleted = 0
       UNION ALL SELECT idempotency_key, public_id, body_hash FROM served_tasks WHERE idempotency_key ${keys}`,
      idempotencies.map(({ key }) => key),
    );
    return new Map(rows.map((row) => [row.key, row]));
  },

  *insert(runId, tasks, ttlMs) {
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
  },
};
