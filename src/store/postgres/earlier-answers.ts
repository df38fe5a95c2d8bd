/**
 * Answers to requests that a document asks no more, because it or the run's settings were edited. They are kept with
 * the hash of the request until the run is deleted, and go back into `results` where the document asks the same of the
 * same servers again. The ledger keeps their calls either way, so nothing is counted or paid for twice.
 */
import { ANSWER } from '../sql/parts.js';
import { run, type Steps } from '../sql/steps.js';

const ANSWER_FROM_OTHER = ANSWER.split(',')
  .map((column) => `${column} = excluded.${column.trim()}`)
  .join(', ');

/** Answers of which nobody can tell who gave them; nobody asks under this name. */
const UNKNOWN = '';

const TAKEN = `json_to_recordset($1) AS taken (task_id bigint, request_hash text)`;
const IS_TAKEN = `earlier.task_id = taken.task_id AND earlier.request_hash = taken.request_hash AND answered_by = $2`;

/**
 * Copies the answers that completed tasks have, before they are replaced.
 * @param tasks each with its `task_id`
 * @param answeredBy null: nobody can tell
 */
export function* keepAnswers(tasks: readonly object[], answeredBy: string | null): Steps<void> {
  yield* run(
    `INSERT INTO earlier_answers (task_id, request_hash, answered_by, attempts, shared_from, ${ANSWER})
     SELECT tasks.id, request_hash, $2, attempts, shared_from, ${ANSWER}
     FROM json_to_recordset($1) AS kept (task_id bigint) JOIN tasks ON tasks.id = kept.task_id
     JOIN results ON results.task_id = tasks.id WHERE state = 'completed'
     ON CONFLICT (task_id, request_hash, answered_by) DO UPDATE
       SET attempts = excluded.attempts, shared_from = excluded.shared_from, ${ANSWER_FROM_OTHER}`,
    tasks,
    answeredBy ?? UNKNOWN,
  );
}

/** Completes tasks that are ready with the answers that were kept of their requests. */
export function* takeAnswers(
  tasks: readonly { readonly task_id: number; readonly request_hash: string }[],
  answeredBy: string,
): Steps<void> {
  if (tasks.length === 0) return;
  yield* run(
    `INSERT INTO results (task_id, ${ANSWER}) SELECT earlier.task_id, ${ANSWER}
     FROM ${TAKEN} JOIN earlier_answers AS earlier ON ${IS_TAKEN}
     ON CONFLICT (task_id) DO UPDATE SET ${ANSWER_FROM_OTHER}`,
    tasks,
    answeredBy,
  );
  yield* run(
    `UPDATE tasks SET state = 'completed', attempts = earlier.attempts, shared_from = earlier.shared_from
     FROM ${TAKEN} JOIN earlier_answers AS earlier ON ${IS_TAKEN} WHERE tasks.id = earlier.task_id`,
    tasks,
    answeredBy,
  );
  yield* run(`DELETE FROM earlier_answers AS earlier USING ${TAKEN} WHERE ${IS_TAKEN}`, tasks, answeredBy);
}
