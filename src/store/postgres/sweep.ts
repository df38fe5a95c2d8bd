/**
 * Removes what deleted runs left, in pages: tasks with their documents and results, calls, keys, and at last the runs
 * themselves. Tasks and calls are looked through by id and not by run, which needs no index that every import would
 * have to keep. Nothing is remembered between processes: after a crash a new pass goes over what is left.
 */
import { TABLES_OF_RUN, TABLES_OF_TASK } from '../sql/parts.js';
import type { Transaction } from './connections.js';

/** Key of the advisory lock of whoever copies runs into the store, which are deleted ones until all of them is there. */
export const COPYING = 'hashtext(current_schema()) & 2147483647, -1';

/** How far one pass over the tables has come: what a page's caller hands to the next. */
interface SweepPass {
  /** Runs that are deleted meanwhile wait for the next pass. */
  readonly runIds: readonly number[];
  readonly sweptTasksTo: number;
  readonly sweptCallsTo: number;
}

/** What a run has many of, apart from tasks and calls. */
const KEYS = ['task_keys', 'first_requests'] as const;

const IN_PASS = 'run_id IN (SELECT json_array_elements_text($1)::bigint)';
/** By the range too, so that however large a table is, no plan looks through all of it. */
const ofSwept = (table: string, column: string): string =>
  `DELETE FROM ${table} WHERE ${column} > $2 AND ${column} <= $3 AND ${column} IN (SELECT id FROM swept)`;
const SWEEP_TASKS = `WITH swept AS (DELETE FROM tasks WHERE id > $2 AND id <= $3 AND ${IN_PASS} RETURNING id),
  ${TABLES_OF_TASK.map((table) => `of_${table} AS (${ofSwept(table, 'task_id')})`).join(', ')}
  SELECT 1`;
const SWEEP_CALLS = `WITH swept AS (DELETE FROM calls WHERE id > $2 AND id <= $3 AND ${IN_PASS} RETURNING id)
  ${ofSwept('call_tasks', 'call_id')}`;
const SWEEP_RUN = `WITH ${TABLES_OF_RUN.map((table) => `of_${table} AS (DELETE FROM ${table} WHERE run_id = $1)`).join(', ')}
  DELETE FROM runs WHERE id = $1`;

/**
 * Sweeps one page; none while runs are copied into the store.
 * @param limit rows to look at
 * @returns where to go on; null when there is nothing left
 */
export async function sweepPage(
  transaction: Transaction,
  cursor: string | null,
  limit: number,
): Promise<string | null> {
  const may = await transaction.one<{ sweep: boolean }>(
    `SELECT pg_try_advisory_xact_lock_shared(${COPYING}) AS sweep`,
  );
  if (may?.sweep !== true) return null;
  const pass = cursor === null ? await newPass(transaction) : (JSON.parse(cursor) as SweepPass);
  const next = await page(transaction, pass, limit);
  return next === null ? null : JSON.stringify(next);
}

async function page(transaction: Transaction, pass: SweepPass, limit: number): Promise<SweepPass | null> {
  const { runIds, sweptTasksTo, sweptCallsTo } = pass;
  const nextOf = async (table: 'tasks' | 'calls', afterId: number): Promise<number | null> => {
    const next = await transaction.one<{ id: number | null }>(
      `SELECT min(id) AS id FROM ${table} WHERE id > $1`,
      afterId,
    );
    return next?.id ?? null;
  };
  const task = await nextOf('tasks', sweptTasksTo);
  if (task !== null) {
    const upTo = task - 1 + limit;
    await transaction.run(SWEEP_TASKS, runIds, task - 1, upTo);
    return { ...pass, sweptTasksTo: upTo };
  }
  const call = await nextOf('calls', sweptCallsTo);
  if (call !== null) {
    const upTo = call - 1 + limit;
    await transaction.run(SWEEP_CALLS, runIds, call - 1, upTo);
    return { ...pass, sweptCallsTo: upTo };
  }
  for (const table of KEYS) {
    const first = `SELECT ctid FROM ${table} WHERE ${IN_PASS} LIMIT $2`;
    if (
      (await transaction.run(`DELETE FROM ${table} WHERE ctid = ANY (ARRAY(${first}))`, runIds, limit)) > 0
    ) {
      return pass;
    }
  }
  const [runId, ...others] = runIds;
  if (runId !== undefined) await transaction.run(SWEEP_RUN, runId);
  if (others.length > 0) return { ...pass, runIds: others };
  const left = await newPass(transaction);
  return left.runIds.length > 0 ? left : null;
}

async function newPass(transaction: Transaction): Promise<SweepPass> {
  const runs = await transaction.all<{ id: number }>('SELECT id FROM runs WHERE deleted = 1 ORDER BY id');
  return { runIds: runs.map(({ id }) => id), sweptTasksTo: 0, sweptCallsTo: 0 };
}
