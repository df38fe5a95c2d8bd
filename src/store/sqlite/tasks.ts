/** Tasks of any state, for exports that show every document: first where they stand, then page by page what they are. */
import type Database from 'better-sqlite3';
import type { TaskRow } from '../../core/result-row.js';
import type { TaskPlace } from '../../core/task.js';
import { type AnyTaskRow, RESULT_COLUMNS, toTaskRow } from '../rows.js';

export class Tasks {
  readonly #list;
  readonly #read;
  readonly #readWithBody;

  constructor(database: Database.Database) {
    // In the table's own order: no index holds tasks of all states, and one would cost every import and every claim.
    this.#list = database.prepare<[number, number, number], TaskPlace>(
      `SELECT id AS taskId, line FROM tasks NOT INDEXED
       WHERE id > ? AND run_id = ? AND gone = 0 ORDER BY id LIMIT ?`,
    );
    const read = (body: string) =>
      database.prepare<[string, number], AnyTaskRow>(
        `SELECT tasks.id, tasks.line, tasks.key, tasks.state, tasks.attempts, tasks.shared_from, ${RESULT_COLUMNS},
         NULL AS response_packed, documents.metadata_json, documents.id_is_number, ${body}
       FROM json_each(?) AS wanted
       CROSS JOIN tasks ON tasks.id = wanted.value AND tasks.run_id = ? AND tasks.gone = 0
       CROSS JOIN documents ON documents.task_id = tasks.id
       LEFT JOIN results ON results.task_id = tasks.id AND tasks.state IN ('completed', 'failed')
       ORDER BY wanted.key`,
      );
    this.#read = read('NULL AS body');
    this.#readWithBody = read('documents.body');
  }

  list(runId: number, afterTaskId: number, limit: number): TaskPlace[] {
    return this.#list.all(afterTaskId, runId, limit);
  }

  read(runId: number, taskIds: readonly number[], includeBody: boolean): TaskRow[] {
    return (includeBody ? this.#readWithBody : this.#read).all(JSON.stringify(taskIds), runId).map(toTaskRow);
  }
}
