/** A look at a PostgreSQL store as a whole, and the removal of what nobody needs any more. */
import type { CountDifference, StoreCondition, StoreMaintenance } from '../maintenance.js';
import { countDifferences, RECOUNT, type Recounted } from '../sql/recount.js';
import { all, one } from '../sql/steps.js';
import { IN_PASS, sweepPage } from '../sql/sweep.js';
import type { Connections } from './connections.js';
import { COPYING } from './row-target.js';

type ConditionRow = Omit<StoreCondition, 'damage' | 'logBytes' | 'freeBytes'>;

const SWEEP_KEYS = ['task_keys', 'first_requests'].map(
  (table) =>
    `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM ${table} WHERE ${IN_PASS} LIMIT $2))`,
);

export class PostgresMaintenance implements StoreMaintenance {
  readonly #connections: Connections;

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  /** Pages and the log are the server's own: it checks the one and cuts the other, and tells neither. */
  async examine(): Promise<StoreCondition> {
    const [found] = await this.#connections.all<ConditionRow>(
      `SELECT (SELECT schema_version FROM llm_batch_meta) AS "schemaVersion",
         'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1) AS engine,
         (SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
            WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r') AS "dataBytes",
         (SELECT count(*) FROM tasks WHERE worker_id IS NOT NULL) AS "openLeases",
         (SELECT count(*) FROM runs WHERE deleted = 1) AS "unsweptRuns"`,
    );
    if (found === undefined) throw new Error('the server gave no row');
    return { ...found, damage: [], logBytes: 0, freeBytes: 0 };
  }

  recount(): Promise<readonly CountDifference[]> {
    return this.#connections.read(
      function* () {
        const rows: [string, object[]][] = [];
        for (const [what, sql] of Object.entries(RECOUNT)) rows.push([what, yield* all(sql)]);
        return countDifferences(Object.fromEntries(rows) as unknown as Recounted);
      },
      { isLong: true },
    );
  }

  /** None while runs are copied into the store. */
  sweepDeletedRuns(cursor: string | null, limit: number): Promise<string | null> {
    return this.#connections.write(function* () {
      const may = yield* one<{ sweep: boolean }>(
        `SELECT pg_try_advisory_xact_lock_shared(${COPYING}) AS sweep`,
      );
      return may?.sweep === true ? yield* sweepPage(SWEEP_KEYS, cursor, limit) : null;
    });
  }

  /** The server takes room for other rows again, and gives none back. */
  async reclaimSpace(): Promise<{ readonly reclaimedBytes: number }> {
    return { reclaimedBytes: 0 };
  }
}
