/** Open tasks: how many there are, who has some that can be claimed, and how tasks come to be open or are so no more. */
import { randomBytes } from 'node:crypto';
import type { Backlog, BacklogPart } from '../../core/backlog.js';
import type { FailureKind } from '../../core/failure.js';
import type { RunWork } from '../store.js';
import { ASKED_ANEW, CANCELLED, IS_OPEN, idsIn } from './parts.js';
import { all, one, run, type Steps } from './steps.js';

/** Due tasks made ready per claim: bounds the time of one transaction when a whole storm comes due at once. */
export const PROMOTED_PER_CLAIM = 256;
/** No other claim's: 96 random bits, and the task's id behind it. */
const TOKEN_BYTES = 12;

/** What the tokens of a claim begin with. */
export function newTokenPrefix(): string {
  return `${randomBytes(TOKEN_BYTES).toString('base64url')}.`;
}

/** Some tasks and those whose answers they wait for, found by their ids and not among all that are ready. */
export const CHOSEN = `id IN (SELECT coalesce(shared_task_id, id) FROM tasks WHERE id IN ${idsIn('$2')})`;
/** Tasks that were added to a finished run make it workable too. */
const WORKABLE = `deleted = 0 AND (status = 'open' OR status = 'finished')`;
const FAILED = `run_id = $1 AND state = 'failed' AND gone = 0 AND failure_kind = coalesce($2, failure_kind)
  AND key = coalesce($3, key)`;

interface OpenRow extends BacklogPart {
  readonly oldestMs: number;
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

export function* readBacklog(): Steps<Backlog> {
  // Ids grow with time, so that the first of a run is its oldest.
  const rows = yield* all<OpenRow>(
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

/** Runs with tasks that can be claimed now: see the port. */
export function listWork(): Steps<RunWork[]> {
  return all(
    `SELECT "runId", max(priority) AS priority FROM (
       SELECT id AS "runId", (SELECT priority FROM tasks INDEXED BY tasks_ready
         WHERE run_id = runs.id AND state = 'ready' AND gone = 0 AND shared_task_id IS NULL
         ORDER BY priority DESC, line, id LIMIT 1) AS priority
       FROM runs WHERE ${WORKABLE}
       UNION ALL
       SELECT id, (SELECT max(priority) FROM (SELECT priority FROM tasks INDEXED BY tasks_delayed
         WHERE run_id = runs.id AND state = 'delayed' AND gone = 0 AND not_before_ms <= now_ms()
         ORDER BY not_before_ms LIMIT ${PROMOTED_PER_CLAIM}) AS due)
       FROM runs WHERE ${WORKABLE}) AS work
     GROUP BY "runId" HAVING max(priority) IS NOT NULL`,
  );
}

/** When the next delayed task is due, and what time it is; null when none is delayed. @param among as for a claim */
export function* nextDue(
  runId: number,
  among?: readonly number[],
): Steps<{ readonly atMs: number; readonly nowMs: number } | null> {
  const delayed = `run_id = $1 AND state = 'delayed' AND gone = 0`;
  const from =
    among === undefined
      ? `tasks INDEXED BY tasks_delayed WHERE ${delayed}`
      : `tasks NOT INDEXED WHERE ${delayed} AND ${CHOSEN}`;
  const next = yield* one<{ atMs: number | null; nowMs: number }>(
    `SELECT min(not_before_ms) AS "atMs", now_ms() AS "nowMs" FROM ${from}`,
    ...(among === undefined ? [runId] : [runId, among]),
  );
  return next === undefined || next.atMs === null ? null : { ...next, atMs: next.atMs };
}

/** @returns how many tasks that were not settled are cancelled now, those gone from the input among them */
export function cancelOpenTasks(runId: number): Steps<number> {
  // SQLite goes over the whole table in its own order, 3 s for a million: by its indexes it would be scattered reads.
  return run(`UPDATE tasks NOT INDEXED SET ${CANCELLED} WHERE run_id = $1 AND ${IS_OPEN}`, runId);
}

/** @returns how many failed tasks are ready again */
export function* retryFailedTasks(
  runId: number,
  { kind, key }: { readonly kind?: FailureKind; readonly key?: string },
): Steps<number> {
  const wanted = [runId, kind ?? null, key ?? null] as const;
  yield* run(
    `DELETE FROM results WHERE task_id IN (
       SELECT id FROM tasks INDEXED BY tasks_failed WHERE ${FAILED} FOR UPDATE)`,
    ...wanted,
  );
  return yield* run(
    `UPDATE tasks INDEXED BY tasks_failed
     SET ${ASKED_ANEW} WHERE ${FAILED}`,
    ...wanted,
  );
}
