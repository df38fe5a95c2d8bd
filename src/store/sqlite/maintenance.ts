/** A look at an SQLite store as a whole, its pages included, and the removal of what nobody needs any more. */
import { statSync } from 'node:fs';
import type { CountDifference, StoreCondition, StoreMaintenance } from '../maintenance.js';
import { countDifferences, RECOUNT, type Recounted } from '../sql/recount.js';
import { IN_PASS, sweepPage } from '../sql/sweep.js';
import type { Connection } from './connection.js';
import { Space } from './space.js';
import type { Statements } from './statements.js';

/** Enough to see what is wrong; the rest is most often the same again. */
const MOST_DAMAGE_TOLD = 10;

const SWEEP_KEYS = `DELETE FROM task_keys WHERE (run_id, key_hash, task_id) IN (
  SELECT run_id, key_hash, task_id FROM task_keys WHERE ${IN_PASS} LIMIT CAST($2 AS integer))`;

export class SqliteMaintenance implements StoreMaintenance {
  readonly #connection: Connection;
  readonly #statements: Statements;
  readonly #space: Space;

  constructor(connection: Connection, statements: Statements) {
    this.#connection = connection;
    this.#statements = statements;
    this.#space = new Space(connection.database);
  }

  /** Reads every page: 0.5 s for 100 MB that the system has in memory. */
  examine(): Promise<StoreCondition> {
    const { database, path } = this.#connection;
    return this.#connection.read(() => {
      const complaints = database.pragma(`quick_check(${MOST_DAMAGE_TOLD})`) as { quick_check: string }[];
      const version = database.prepare<[], string>('SELECT sqlite_version()').pluck().get() ?? '';
      const count = (rows: string) =>
        database.prepare<[], number>(`SELECT count(*) FROM ${rows}`).pluck().get();
      return {
        schemaVersion: database.pragma('user_version', { simple: true }) as number,
        engine: `SQLite ${version}`,
        damage: complaints.map(({ quick_check }) => quick_check).filter((complaint) => complaint !== 'ok'),
        dataBytes: this.#space.dataBytes,
        logBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
        freeBytes: this.#space.freeBytes,
        openLeases: count('tasks INDEXED BY tasks_owned WHERE worker_id IS NOT NULL') ?? 0,
        unsweptRuns: count('runs WHERE deleted = 1') ?? 0,
      };
    });
  }

  recount(): Promise<readonly CountDifference[]> {
    const { database } = this.#connection;
    return this.#connection.read(() => {
      const rows = Object.entries(RECOUNT).map(([what, sql]) => [
        what,
        database.prepare<[], object>(sql).all(),
      ]);
      return countDifferences(Object.fromEntries(rows) as Recounted);
    });
  }

  sweepDeletedRuns(cursor: string | null, limit: number): Promise<string | null> {
    return this.#statements.write(() => sweepPage([SWEEP_KEYS], cursor, limit));
  }

  async reclaimSpace(limitBytes: number): Promise<{ readonly reclaimedBytes: number }> {
    const reclaimedBytes = await this.#connection.patiently(() => this.#space.reclaim(limitBytes));
    if (reclaimedBytes === 0) await this.#connection.patiently(() => this.#space.cutLog());
    return { reclaimedBytes };
  }
}
