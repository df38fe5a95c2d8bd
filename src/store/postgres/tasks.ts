/** Tasks of any state, for exports that show every document: first where they stand, then page by page what they are. */
import type { TaskRow } from '../../core/result-row.js';
import type { TaskPlace } from '../../core/task.js';
import { type AnyTaskRow, RESULT_COLUMNS, toTaskRow } from '../rows.js';
import type { Transaction } from './connections.js';
import { runIsThere } from './runs.js';

export function listTasks(
  transaction: Transaction,
  runId: number,
  afterTaskId: number,
  limit: number,
): Promise<TaskPlace[]> {
  // In the table's own order: no index holds tasks of all states, and one would cost every import and every claim.
  return transaction.all(
    `SELECT id AS "taskId", line FROM tasks WHERE id > $1 AND run_id = $2 AND gone = 0 AND ${runIsThere('$2')}
     ORDER BY id LIMIT $3`,
    afterTaskId,
    runId,
    limit,
  );
}

export async function readTasks(
  transaction: Transaction,
  runId: number,
  taskIds: readonly number[],
  includeBody: boolean,
): Promise<TaskRow[]> {
  const rows = await transaction.all<AnyTaskRow>(
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
