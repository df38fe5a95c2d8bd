/**
 * Removes what deleted runs left, in pages: tasks with their documents and results, calls, keys, and at last the runs
 * themselves. Tasks and calls are looked through by id and not by run, which needs no index that every import would
 * have to keep. Nothing is remembered between processes: after a crash a new pass goes over what is left.
 */
import { idsIn, nextIdOf, TABLES_OF_RUN, TABLES_OF_TASK } from './parts.js';
import { all, run, type Steps, together } from './steps.js';

/** How far one pass over the tables has come: what a page's caller hands to the next. */
interface SweepPass {
  /** Runs that are deleted meanwhile wait for the next pass. */
  readonly runIds: readonly number[];
  readonly sweptTasksTo: number;
  readonly sweptCallsTo: number;
}

export const IN_PASS = `run_id IN ${idsIn('$1')}`;
const RANGE = (column: string): string => `${column} > $2 AND ${column} <= $3`;
const TASKS = `tasks NOT INDEXED WHERE ${RANGE('id')} AND ${IN_PASS}`;
const CALLS = `calls NOT INDEXED WHERE ${RANGE('id')} AND ${IN_PASS}`;
/** By the range too, so that however large a table is, no plan looks through all of it. */
const ofSwept = (table: string, column: string, swept: string): string =>
  `DELETE FROM ${table} WHERE ${RANGE(column)} AND ${column} IN (SELECT id FROM ${swept})`;
// Children first: foreign keys are checked at once.
const SWEEP_TASKS = [
  ...TABLES_OF_TASK.map((table) => ofSwept(table, 'task_id', TASKS)),
  `DELETE FROM ${TASKS}`,
];
const SWEEP_CALLS = [ofSwept('call_tasks', 'call_id', CALLS), `DELETE FROM ${CALLS}`];
const SWEEP_RUN = [
  ...TABLES_OF_RUN.map((table) => `DELETE FROM ${table} WHERE run_id = $1`),
  // SQLite looks through all tasks and calls for a last reference: 0.1 s at a million.
  'DELETE FROM runs WHERE id = $1',
];

/**
 * Sweeps one page.
 * @param keys what removes some of the keys of a pass: `IN_PASS`, and `$2` at most
 * @param limit rows to look at
 * @returns where to go on; null when there is nothing left
 */
export function* sweepPage(
  keys: readonly string[],
  cursor: string | null,
  limit: number,
): Steps<string | null> {
  const next = yield* page(
    keys,
    cursor === null ? yield* newPass() : (JSON.parse(cursor) as SweepPass),
    limit,
  );
  return next === null ? null : JSON.stringify(next);
}

function* page(keys: readonly string[], pass: SweepPass, limit: number): Steps<SweepPass | null> {
  const { runIds, sweptTasksTo, sweptCallsTo } = pass;
  const task = yield* nextIdOf('tasks', sweptTasksTo);
  if (task !== null) {
    const upTo = task - 1 + limit;
    yield* together(...SWEEP_TASKS.map((sql) => run(sql, runIds, task - 1, upTo)));
    return { ...pass, sweptTasksTo: upTo };
  }
  const call = yield* nextIdOf('calls', sweptCallsTo);
  if (call !== null) {
    const upTo = call - 1 + limit;
    yield* together(...SWEEP_CALLS.map((sql) => run(sql, runIds, call - 1, upTo)));
    return { ...pass, sweptCallsTo: upTo };
  }
  for (const sql of keys) if ((yield* run(sql, runIds, limit)) > 0) return pass;
  const [runId, ...others] = runIds;
  if (runId !== undefined) yield* together(...SWEEP_RUN.map((sql) => run(sql, runId)));
  if (others.length > 0) return { ...pass, runIds: others };
  const left = yield* newPass();
  return left.runIds.length > 0 ? left : null;
}

function* newPass(): Steps<SweepPass> {
  const runs = yield* all<{ id: number }>('SELECT id FROM runs WHERE deleted = 1 ORDER BY id');
  return { runIds: runs.map(({ id }) => id), sweptTasksTo: 0, sweptCallsTo: 0 };
}
