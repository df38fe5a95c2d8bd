/**
 * Answers to requests that a document asks no more, because it or the run's settings were edited. They are kept with
 * the hash of the request until the run is deleted, and go back into `results` where the document asks the same of the
 * same servers again. The ledger keeps their calls either way, so nothing is counted or paid for twice.
 */
import { ANSWER, idsIn } from './parts.js';
import { all, run, type Steps } from './steps.js';

const ANSWER_FROM_OTHER = ANSWER.split(',')
  .map((column) => `${column} = excluded.${column.trim()}`)
  .join(', ');

/** Answers of which nobody can tell who gave them; nobody asks under this name. */
const UNKNOWN = '';

/** What was kept of the requests that tasks ask now. */
const KEPT_OF_NOW = `earlier.task_id = tasks.id AND earlier.request_hash = tasks.request_hash
  AND earlier.task_id IN ${idsIn('$1')} AND answered_by = $2`;

/** Requests of tasks that have an answer which was kept. */
export function keptRequests(
  taskIds: readonly number[],
  answeredBy: string,
): Steps<{ task_id: number; request_hash: string }[]> {
  return all(
    `SELECT task_id, request_hash FROM earlier_answers WHERE task_id IN ${idsIn('$1')} AND answered_by = $2`,
    ...[taskIds, answeredBy],
  );
}

/** Copies the answers that completed tasks have, before they are replaced. @param answeredBy null: nobody can tell */
export function* keepAnswers(taskIds: readonly number[], answeredBy: string | null): Steps<void> {
  yield* run(
    `INSERT INTO earlier_answers (task_id, request_hash, answered_by, attempts, shared_from, ${ANSWER})
     SELECT tasks.id, request_hash, $2, attempts, shared_from, ${ANSWER}
     FROM tasks JOIN results ON results.task_id = tasks.id WHERE tasks.id IN ${idsIn('$1')} AND state = 'completed'
     ON CONFLICT (task_id, request_hash, answered_by) DO UPDATE
       SET attempts = excluded.attempts, shared_from = excluded.shared_from, ${ANSWER_FROM_OTHER}`,
    ...[taskIds, answeredBy ?? UNKNOWN],
  );
}

/** Completes tasks that are ready with the answers that were kept of what they ask. */
export function* takeAnswers(taskIds: readonly number[], answeredBy: string): Steps<void> {
  const kept = [taskIds, answeredBy];
  yield* run(
    `INSERT INTO results (task_id, ${ANSWER})
     SELECT earlier.task_id, ${ANSWER} FROM earlier_answers AS earlier, tasks WHERE ${KEPT_OF_NOW}`,
    ...kept,
  );
  yield* run(
    `UPDATE tasks SET state = 'completed', attempts = earlier.attempts, shared_from = earlier.shared_from
     FROM earlier_answers AS earlier WHERE ${KEPT_OF_NOW}`,
    ...kept,
  );
  yield* run(
    `DELETE FROM earlier_answers WHERE task_id IN ${idsIn('$1')} AND answered_by = $2
       AND request_hash = (SELECT request_hash FROM tasks WHERE tasks.id = task_id)`,
    ...kept,
  );
}
