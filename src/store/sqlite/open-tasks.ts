/** Open tasks of all runs, counted from the indexes of their states. */
import type { Database, Statement } from 'better-sqlite3';
import type { Backlog, BacklogPart } from '../../core/backlog.js';

interface OpenRow extends BacklogPart {
  readonly oldestAtMs: number;
}

const OPEN = [
  `'ready' AS state FROM tasks INDEXED BY tasks_ready WHERE state = 'ready' AND gone = 0 AND shared_task_id IS NULL`,
  `'delayed' FROM tasks INDEXED BY tasks_delayed WHERE state = 'delayed' AND gone = 0`,
  `'in_progress' FROM tasks INDEXED BY tasks_owned WHERE worker_id IS NOT NULL`,
  `'in_progress' FROM tasks INDEXED BY tasks_remote WHERE remote_batch_id IS NOT NULL`,
].map(
  (state) =>
    `SELECT run_id, priority, count(*) AS tasks, min(id) AS first_id, ${state} GROUP BY run_id, priority`,
);

export class OpenTasks {
  readonly #select: Statement<[], OpenRow>;

  constructor(database: Database) {
    // Ids grow with time, so that the first of a run is its oldest.
    this.#select = database.prepare<[], OpenRow>(
      `SELECT state, priority, sum(tasks) AS tasks, min(coalesce(submitted_at_ms, created_at_ms)) AS oldestAtMs
       FROM (${OPEN.join(' UNION ALL ')}) JOIN runs ON runs.id = run_id LEFT JOIN served_tasks ON task_id = first_id
       WHERE deleted = 0 GROUP BY state, priority ORDER BY state, priority`,
    );
  }

  read(nowMs: number): Backlog {
    const rows = this.#select.all();
    const oldestAtMs = Math.min(...rows.map((row) => row.oldestAtMs));
    return {
      parts: rows.map(({ state, priority, tasks }) => ({ state, priority, tasks })),
      oldestMs: rows.length === 0 ? null : Math.max(0, nowMs - oldestAtMs),
    };
  }
}
