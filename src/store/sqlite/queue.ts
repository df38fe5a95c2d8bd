/**
 * Who works on what: claims, leases, and the way back to ready. The claim reads the first entries of a partial
 * index over ready tasks alone, so that a million finished ones and a hundred thousand delayed ones cost it
 * nothing (about 0.2 ms for 32 tasks at a million rows).
 */
import type Database from 'better-sqlite3';
import {
  type LeasedTask,
  leastLeaseMs,
  MOST_CRASHED_TOGETHER,
  SUSPECT_AFTER_CRASHES,
} from '../../core/task.js';
import { type ClaimedRow, toLeasedTask } from '../rows.js';
import { newTokenPrefix, PROMOTED_PER_CLAIM } from '../sql/open-tasks.js';
import { one, type Steps } from '../sql/steps.js';
import { beatWorker } from '../sql/workers.js';
import { storableInteger } from '../storable.js';
import type { ClaimOptions } from '../store.js';

const OF_RUN = `WHERE run_id = ? AND state = 'ready' AND gone = 0 AND shared_task_id IS NULL`;
const READY = `FROM tasks INDEXED BY tasks_ready ${OF_RUN}`;
/** Some tasks and those whose answers they wait for, found by their ids and not among all that are ready. */
const CHOSEN =
  'id IN (SELECT coalesce(shared_task_id, id) FROM tasks WHERE id IN (SELECT value FROM json_each(?)))';
const READY_CHOSEN = `FROM tasks NOT INDEXED ${OF_RUN} AND ${CHOSEN}`;
/** A bare `LIMIT ?` is peeked at by the planner, which then plans the statement anew at every claim. */
const FIRST = `AND priority >= ? AND crash_count < ${SUSPECT_AFTER_CRASHES} ORDER BY priority DESC, line, id LIMIT ? + 0`;
/** Columns of `ClaimedRow`. */
const CLAIMED = `id, line, key, attempts, crash_count, throttled_since_ms,
  (SELECT body FROM documents WHERE task_id = tasks.id),
  (SELECT max_attempts FROM served_tasks WHERE task_id = tasks.id),
  (SELECT traceparent FROM served_tasks WHERE task_id = tasks.id),
  (SELECT submitted_at_ms FROM served_tasks WHERE task_id = tasks.id)`;
const LEASE = `UPDATE tasks SET state = 'in_progress', attempt_token = ? || id, worker_id = ?`;

interface HeldRow {
  tasks: number;
  /** In progress at a crash before. */
  crashed: number;
  suspects: number;
}

type Claim = ReturnType<typeof claimFrom>;

/**
 * @param ready where tasks are that may be claimed; the parameters of all statements end with its own, the lowest
 *   priority, and a limit
 */
function claimFrom(database: Database.Database, ready: string) {
  const first = `${ready} ${FIRST}`;
  return {
    selectReady: database.prepare<unknown[], ClaimedRow>(`SELECT ${CLAIMED} ${first}`).raw(),
    // Read when nothing else is ready, so that there is little to sort. Those that crashed the least when they were
    // alone come first: one that is guilty is the last to be left, one that was unlucky is not always the next.
    selectSuspect: database
      .prepare<unknown[], ClaimedRow>(
        `SELECT ${CLAIMED} ${ready} AND priority >= ? ORDER BY lone_crash_count, priority DESC, line, id LIMIT 1`,
      )
      .raw(),
    countSuspects: database.prepare<unknown[], number>(`SELECT count(*) ${ready} AND priority >= ?`).pluck(),
    lease: database.prepare<unknown[]>(`${LEASE} WHERE id IN (SELECT id ${first})`),
    leaseSuspect: database.prepare<[string, number, number]>(`${LEASE} WHERE id = ?`),
  };
}

export class Queue {
  readonly #promote;
  readonly #held;
  readonly #all: Claim;
  readonly #chosen: Claim;

  constructor(database: Database.Database) {
    this.#promote = database.prepare<[number, number, number]>(
      `UPDATE tasks SET state = 'ready', not_before_ms = NULL WHERE id IN (
         SELECT id FROM tasks INDEXED BY tasks_delayed
         WHERE run_id = ? AND state = 'delayed' AND gone = 0 AND not_before_ms <= ?
         ORDER BY not_before_ms LIMIT ? + 0)`,
    );
    this.#held = database.prepare<[number], HeldRow>(
      `SELECT count(*) AS tasks, coalesce(sum(crash_count > 0), 0) AS crashed,
         coalesce(sum(crash_count >= ${SUSPECT_AFTER_CRASHES}), 0) AS suspects
       FROM tasks INDEXED BY tasks_owned WHERE worker_id = ?`,
    );
    this.#all = claimFrom(database, READY);
    this.#chosen = claimFrom(database, READY_CHOSEN);
  }

  /** @param nowMs by which tasks are due */
  claim(
    { runId, limit, among, atLeastPriority }: Omit<ClaimOptions, 'workerId' | 'leaseMs'>,
    workerId: number,
    nowMs: number,
  ): LeasedTask[] {
    const from = among === undefined ? this.#all : this.#chosen;
    const wanted = among === undefined ? [runId] : [runId, JSON.stringify(among)];
    this.#promote.run(runId, storableInteger(nowMs), Math.max(PROMOTED_PER_CLAIM, limit));
    const held = this.#held.get(workerId);
    if (held === undefined || held.suspects > 0) return [];
    const tokenPrefix = newTokenPrefix();
    const lowest = atLeastPriority ?? Number.NEGATIVE_INFINITY;
    const ready = from.selectReady.all(...wanted, lowest, limit);
    if (ready.length > 0) {
      const rows = withFewCrashed(ready, held.crashed);
      if (rows.length > 0) from.lease.run(tokenPrefix, workerId, ...wanted, lowest, rows.length);
      return rows.map((row) => toLeasedTask(row, tokenPrefix + row[0], nowMs));
    }
    const suspect = held.tasks === 0 ? from.selectSuspect.get(...wanted, lowest) : undefined;
    if (suspect === undefined) return [];
    const suspectsLeft = from.countSuspects.get(...wanted, lowest) ?? 1;
    const task = toLeasedTask(suspect, tokenPrefix + suspect[0], nowMs);
    from.leaseSuspect.run(tokenPrefix, workerId, task.taskId);
    return [{ ...task, suspectsLeft }];
  }
}

/** The first of the candidates that may be in progress together with each other and with what the worker holds. */
function withFewCrashed(rows: readonly ClaimedRow[], crashedBefore: number): readonly ClaimedRow[] {
  let crashed = crashedBefore;
  const end = rows.findIndex(([, , , , crashCount]) => {
    if (crashCount > 0) crashed += 1;
    return crashed > MOST_CRASHED_TOGETHER;
  });
  return end < 0 ? rows : rows.slice(0, end);
}

/** @returns the number of a worker, which is alive from now on. A lease that lasts a while is left to its beats. */
export function* claimingWorker(name: string, leaseMs: number): Steps<number> {
  const known = yield* one<{ id: number }>(
    'SELECT id FROM workers WHERE name = $1 AND lease_until_ms >= now_ms() + $2',
    ...[name, storableInteger(leastLeaseMs(leaseMs))],
  );
  return known?.id ?? (yield* beatWorker(name, leaseMs));
}
