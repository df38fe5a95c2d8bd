/** Open tasks of all runs, counted from the indexes of their states. */
import type { Backlog, BacklogPart } from '../../core/backlog.js';
import type { Transaction } from './connections.js';

interface OpenRow extends BacklogPart {
  readonly oldestMs: number;
}

const OPEN = [
  `'ready' AS state FROM tasks WHERE state = 'ready' AND gone = 0 AND shared_task_id IS NULL`,
  `'delayed' FROM tasks WHERE state = 'delayed' AND gone = 0`,
  `'in_progress' FROM tasks WHERE worker_id IS NOT NULL`,
  `'in_progress' FROM tasks WHERE remote_batch_id IS NOT NULL`,
].map(
  (state) =>
    `SELECT run_id, priority, count(*) AS tasks, min(id) AS first_id, ${state} GROUP BY run_id, priority`,
);

export async function readBacklog(transaction: Transaction): Promise<Backlog> {
  // Ids grow with time, so that the first of a run is its oldest.
  const rows = await transaction.all<OpenRow>(
    `SELECT state, priority, sum(tasks)::bigint AS tasks,
       max(greatest(0, now_ms() - coalesce(submitted_at_ms, created_at_ms))) AS "oldestMs"
     FROM (${OPEN.join(' UNION ALL ')}) AS open JOIN runs ON runs.id = run_id LEFT JOIN served_tasks ON task_id = first_id
     WHERE deleted = 0 GROUP BY state, priority ORDER BY state, priority`,
  );
  return {
    parts: rows.map(({ state, priority, tasks }) => ({ state, priority, tasks })),
    oldestMs: rows.length === 0 ? null : Math.max(...rows.map(({ oldestMs }) => oldestMs)),
  };
}
