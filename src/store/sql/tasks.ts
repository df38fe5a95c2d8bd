/** Tasks of any state, for exports that show every document: first where they stand, then page by page what they are. */
import type { TaskRow } from '../../core/result-row.js';
import type { TaskPlace } from '../../core/task.js';
import { type AnyTaskRow, RESULT_COLUMNS, toTaskRow } from '../rows.js';
import { runIsThere } from './runs.js';
import { all, type Steps } from './steps.js';

export function listTasks(runId: number, afterTaskId: number, limit: number): Steps<TaskPlace[]> {
  // In the table's own order: no index holds tasks of all states, and one would cost every import and every claim.
  return all(
    `SELECT id AS "taskId", line FROM tasks NOT INDEXED
     WHERE id > $1 AND run_id = $2 AND gone = 0 AND ${runIsThere('$2')} ORDER BY id LIMIT CAST($3 AS bigint)`,
    ...[afterTaskId, runId, limit],
  );
}

export function* readTasks(
  runId: number,
  taskIds: readonly number[],
  includeBody: boolean,
): Steps<TaskRow[]> {
  const rows = yield* all<AnyTaskRow>(
    `SELECT tasks.id, tasks.line, tasks.key, tasks.state, tasks.attempts, tasks.shared_from, ${RESULT_COLUMNS},
       NULL AS response_packed, documents.metadata_json, documents.id_is_number,
       ${includeBody ? 'documents.body' : 'NULL AS body'}
     FROM json_to_recordset($1) AS wanted (ordinal integer, id bigint)
     JOIN tasks ON tasks.id = wanted.id AND tasks.run_id = $2 AND tasks.gone = 0
     JOIN documents ON documents.task_id = tasks.id
     LEFT JOIN results ON results.task_id = tasks.id AND tasks.state IN ('completed', 'failed')
     WHERE ${runIsThere('$2')} ORDER BY wanted.ordinal`,
    taskIds.map((id, ordinal) => ({ ordinal, id })),
    runId,
  );
  return rows.map(toTaskRow);
}
