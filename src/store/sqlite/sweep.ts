/**
 * Removes what deleted runs left, in pages: tasks with their documents and results, calls, keys, and at last the runs
 * themselves. Tasks and calls are looked through by id and not by run, which needs no index that every import would
 * have to keep. Nothing is remembered between processes: after a crash a new pass goes over what is left.
 */
import type Database from 'better-sqlite3';
import { TABLES_OF_RUN, TABLES_OF_TASK } from '../sql/parts.js';

/** How far one pass over the tables has come: what a page's caller hands to the next. */
interface SweepPass {
  /** JSON list. Runs that are deleted meanwhile wait for the next pass. */
  readonly runIds: string;
  readonly sweptTasksTo: number;
  readonly sweptCallsTo: number;
}

type RangeOfRuns = [afterId: number, upToId: number, runIds: string];

const IN_PASS = 'run_id IN (SELECT value FROM json_each(?))';
const TASKS_IN_PASS = `tasks NOT INDEXED WHERE id > ? AND id <= ? AND ${IN_PASS}`;
const CALLS_IN_PASS = `calls NOT INDEXED WHERE id > ? AND id <= ? AND ${IN_PASS}`;

export class Sweep {
  readonly #deletedRuns;
  readonly #nextTask;
  readonly #nextCall;
  readonly #deleteTasks: readonly Database.Statement<RangeOfRuns>[];
  readonly #deleteCalls: readonly Database.Statement<RangeOfRuns>[];
  readonly #deleteKeys;
  readonly #deleteRun: readonly Database.Statement<[number]>[];

  constructor(database: Database.Database) {
    this.#deletedRuns = database.prepare<[], number>('SELECT id FROM runs WHERE deleted = 1').pluck();
    this.#nextTask = database
      .prepare<[number], number | null>('SELECT min(id) FROM tasks WHERE id > ?')
      .pluck();
    this.#nextCall = database
      .prepare<[number], number | null>('SELECT min(id) FROM calls WHERE id > ?')
      .pluck();
    // Children first: foreign keys are checked at once.
    this.#deleteTasks = [
      ...TABLES_OF_TASK.map((table) =>
        database.prepare<RangeOfRuns>(
          `DELETE FROM ${table} WHERE task_id IN (SELECT id FROM ${TASKS_IN_PASS})`,
        ),
      ),
      database.prepare<RangeOfRuns>(`DELETE FROM ${TASKS_IN_PASS}`),
    ];
    this.#deleteCalls = [
      database.prepare<RangeOfRuns>(
        `DELETE FROM call_tasks WHERE call_id IN (SELECT id FROM ${CALLS_IN_PASS})`,
      ),
      database.prepare<RangeOfRuns>(`DELETE FROM ${CALLS_IN_PASS}`),
    ];
    this.#deleteKeys = database.prepare<[string, number]>(
      `DELETE FROM task_keys WHERE (run_id, key_hash, task_id) IN (
         SELECT run_id, key_hash, task_id FROM task_keys WHERE ${IN_PASS} LIMIT ? + 0)`,
    );
    this.#deleteRun = [
      ...TABLES_OF_RUN.map((table) => database.prepare<[number]>(`DELETE FROM ${table} WHERE run_id = ?`)),
      // SQLite looks through all tasks and calls for a last reference: 0.1 s at a million.
      database.prepare<[number]>('DELETE FROM runs WHERE id = ?'),
    ];
  }

  /** Runs that were deleted and still have rows. */
  unsweptRuns(): readonly number[] {
    return this.#deletedRuns.all();
  }

  /**
   * Sweeps one page. Changes nothing outside the database, so that an undone transaction is simply tried again.
   * @param limit rows to look at
   * @returns where to go on; null when there is nothing left
   */
  page(cursor: string | null, limit: number): string | null {
    const next = this.#page(cursor === null ? this.#newPass() : (JSON.parse(cursor) as SweepPass), limit);
    return next === null ? null : JSON.stringify(next);
  }

  #page({ runIds, sweptTasksTo, sweptCallsTo }: SweepPass, limit: number): SweepPass | null {
    const task = this.#nextTask.get(sweptTasksTo) ?? null;
    if (task !== null) {
      const upTo = task - 1 + limit;
      for (const statement of this.#deleteTasks) statement.run(task - 1, upTo, runIds);
      return { runIds, sweptTasksTo: upTo, sweptCallsTo };
    }
    const call = this.#nextCall.get(sweptCallsTo) ?? null;
    if (call !== null) {
      const upTo = call - 1 + limit;
      for (const statement of this.#deleteCalls) statement.run(call - 1, upTo, runIds);
      return { runIds, sweptTasksTo, sweptCallsTo: upTo };
    }
    if (this.#deleteKeys.run(runIds, limit).changes > 0) return { runIds, sweptTasksTo, sweptCallsTo };
    const [runId, ...others] = JSON.parse(runIds) as number[];
    if (runId !== undefined) for (const statement of this.#deleteRun) statement.run(runId);
    if (others.length > 0) return { runIds: JSON.stringify(others), sweptTasksTo, sweptCallsTo };
    return this.unsweptRuns().length > 0 ? this.#newPass() : null;
  }

  #newPass(): SweepPass {
    return { runIds: JSON.stringify(this.unsweptRuns()), sweptTasksTo: 0, sweptCallsTo: 0 };
  }
}
