/**
 * Who works on what: claims, leases, and the way back to ready. The claim reads the first entries of a partial
 * index over ready tasks alone, and steps over those that others are claiming at the same moment.
 */
import { LONGEST_RETRY_DELAY_MS } from '../../core/retry-decision.js';
import {
  type LeasedTask,
  leastLeaseMs,
  MOST_CRASHED_TOGETHER,
  SUSPECT_AFTER_CRASHES,
} from '../../core/task.js';
import { type LeasedRow, leasedFrom, leasedTask, OF_TASK } from '../sql/leased-tasks.js';
import { CHOSEN, newTokenPrefix, nextDue, PROMOTED_PER_CLAIM } from '../sql/open-tasks.js';
import { all, one, run, type StatementValue, type Steps } from '../sql/steps.js';
import { beatWorker } from '../sql/workers.js';
import { storableInteger } from '../storable.js';
import type { ClaimOptions } from '../store.js';

function delayedOf(runId: string): string {
  return `run_id = ${runId} AND state = 'delayed' AND gone = 0`;
}
/** A clock that was set back shows as tasks that are due later than any wait that is ever asked for: they are due now. */
const NEVER = `now_ms() + ${LONGEST_RETRY_DELAY_MS}`;
const READY = `run_id = $1 AND state = 'ready' AND gone = 0 AND shared_task_id IS NULL`;
const IN_ORDER = 'priority DESC, line, id';

interface ClaimingWorker {
  id: number;
  lasts: boolean;
  /** In progress, of whichever run. */
  tasks: number;
  /** Of them, those whose calls were open at a crash before. */
  crashed: number;
  suspects: number;
  /** Whether a delayed task of the run is due. */
  has_due: boolean;
}

export function* claimTasks({
  runId,
  workerId: workerName,
  limit,
  leaseMs,
  among,
  atLeastPriority,
}: ClaimOptions): Steps<LeasedTask[]> {
  const known = yield* one<ClaimingWorker>(
    `SELECT workers.id, lease_until_ms >= now_ms() + $2 AS lasts, held.*,
       EXISTS (SELECT 1 FROM tasks WHERE ${delayedOf('$3')} AND not_before_ms <= now_ms())
         OR EXISTS (SELECT 1 FROM tasks WHERE ${delayedOf('$3')} AND not_before_ms > ${NEVER}) AS has_due
     FROM workers, LATERAL (
       SELECT count(*) AS tasks, count(*) FILTER (WHERE crash_count > 0) AS crashed,
         count(*) FILTER (WHERE crash_count >= ${SUSPECT_AFTER_CRASHES}) AS suspects
       FROM tasks WHERE worker_id = workers.id) AS held
     WHERE name = $1 FOR KEY SHARE OF workers`,
    workerName,
    storableInteger(leastLeaseMs(leaseMs)),
    runId,
  );
  const held = known ?? { tasks: 0, crashed: 0, suspects: 0, has_due: true };
  const workerId = known?.lasts === true ? known.id : yield* beatWorker(workerName, leaseMs);
  if (held.has_due) yield* promoteDue(runId, limit);
  if (held.suspects > 0) return [];

  const lowest = atLeastPriority ?? '-infinity';
  const [ready, wanted]: [string, StatementValue[]] =
    among === undefined
      ? [`${READY} AND priority >= $2`, [runId, lowest]]
      : [`${READY} AND ${CHOSEN} AND priority >= $3`, [runId, among, lowest]];
  const token = newTokenPrefix();
  function* lease(candidates: string, ...parameters: StatementValue[]): Steps<LeasedTask[]> {
    const next = wanted.length + parameters.length;
    const rows = yield* all<LeasedRow>(
      `WITH claimed AS (
         UPDATE tasks SET state = 'in_progress', attempt_token = $${next + 1} || id, worker_id = $${next + 2}
         WHERE id = ANY (ARRAY(${candidates})) RETURNING ${OF_TASK})
       ${leasedFrom('claimed')} ORDER BY ${IN_ORDER}`,
      ...wanted,
      ...parameters,
      token,
      workerId,
    );
    return rows.map(leasedTask);
  }

  const [limitAt, crashedAt] = [wanted.length + 1, wanted.length + 2];
  const claimed = yield* lease(
    `SELECT id FROM (
       SELECT id, sum((crash_count > 0)::int) OVER (ORDER BY ${IN_ORDER}) AS crashed FROM (
         SELECT id, priority, line, crash_count FROM tasks
         WHERE ${ready} AND crash_count < ${SUSPECT_AFTER_CRASHES}
         ORDER BY ${IN_ORDER} LIMIT $${limitAt} FOR UPDATE SKIP LOCKED) AS first) AS counted
     WHERE crashed = 0 OR crashed + $${crashedAt} <= ${MOST_CRASHED_TOGETHER}`,
    limit,
    held.crashed,
  );
  if (claimed.length > 0 || held.tasks > 0) return claimed;

  // Those that crashed the least when they were alone come first: one that is guilty is the last to be left, one that
  // was unlucky is not always the next.
  const left = yield* one<{ tasks: number }>(`SELECT count(*) AS tasks FROM tasks WHERE ${ready}`, ...wanted);
  if (left === undefined || left.tasks === 0) return [];
  const suspects =
    yield* lease(`SELECT id FROM tasks WHERE ${ready} AND crash_count >= ${SUSPECT_AFTER_CRASHES}
    ORDER BY lone_crash_count, ${IN_ORDER} LIMIT 1 FOR UPDATE SKIP LOCKED`);
  return suspects.map((task) => ({ ...task, suspectsLeft: left.tasks }));
}

function* promoteDue(runId: number, limit: number): Steps<void> {
  const due = ['<= now_ms()', `> ${NEVER}`].map(
    (isDue) =>
      `ARRAY(SELECT id FROM tasks WHERE ${delayedOf('$1')} AND not_before_ms ${isDue}
         ORDER BY not_before_ms LIMIT $2 FOR UPDATE SKIP LOCKED)`,
  );
  yield* run(
    `UPDATE tasks SET state = 'ready', not_before_ms = NULL WHERE id = ANY (${due.join(' || ')})`,
    runId,
    Math.max(PROMOTED_PER_CLAIM, limit),
  );
}

/** How long until the next delayed task is due, 0 when it is; null when none is delayed. @param among as for a claim */
export function* nextDueMs(runId: number, among?: readonly number[]): Steps<number | null> {
  const next = yield* nextDue(runId, among);
  if (next === null) return null;
  const waitMs = next.atMs - next.nowMs;
  return waitMs > LONGEST_RETRY_DELAY_MS ? 0 : Math.max(0, waitMs);
}
