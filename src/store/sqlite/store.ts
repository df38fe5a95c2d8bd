/** The store in one SQLite file: what its port does its own way; the rest is ../sql/sql-store.ts. */

import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import type { LeasedTask } from '../../core/task.js';
import type { StoreMaintenance } from '../maintenance.js';
import { nextDue } from '../sql/open-tasks.js';
import { beginReimport } from '../sql/reimports.js';
import { deleteRun, lockRun } from '../sql/runs.js';
import { type FirstRequests, pairPage } from '../sql/sharing.js';
import { SqlStore } from '../sql/sql-store.js';
import { already } from '../sql/steps.js';
import type { ClaimOptions, SharingOptions, Store, StoreOwner } from '../store.js';
import type { RowSource } from '../stored-rows.js';
import type { Connection } from './connection.js';
import { type OpenDatabaseOptions, openDatabase } from './database.js';
import { DrainLock } from './drain-lock.js';
import { translateError } from './errors.js';
import { firstRequests } from './first-requests.js';
import { Imports } from './imports.js';
import { KeyIndex } from './key-index.js';
import { Ledger } from './ledger.js';
import { SqliteMaintenance } from './maintenance.js';
import { claimingWorker, Queue } from './queue.js';
import { sqliteRows } from './row-source.js';
import { Schedule } from './schedule.js';
import { Settlements } from './settlements.js';
import { Statements } from './statements.js';
import { Submissions } from './submissions.js';

/** @throws LlmBatchError STORE_* (exit 5) */
export async function openSqliteStore(path: string, options: OpenDatabaseOptions): Promise<Store> {
  const connection = await openDatabase(path, options);
  try {
    return new SqliteStore(connection, options);
  } catch (cause) {
    connection.close();
    // Its statements do not fit a schema that says it is ours.
    throw translateError(Object.assign(new Error('odd schema', { cause }), { code: 'SQLITE_CORRUPT' }), path);
  }
}

export class SqliteStore extends SqlStore implements Store {
  readonly capabilities = { sharedDrain: false, givesRoomBack: true };
  readonly folder: string;
  override readonly workingFolder: string | undefined;
  readonly maintenance: StoreMaintenance;
  readonly quotas = null;
  readonly rowSource: RowSource;
  readonly rowTarget = null;
  readonly #connection: Connection;
  readonly #statements: Statements;
  readonly #schedule: Schedule;
  readonly #lock: DrainLock;
  readonly #keys: KeyIndex;
  readonly #queue: Queue;
  #firstRequests: FirstRequests | null = null;

  constructor(connection: Connection, { clock, workingFolder }: OpenDatabaseOptions) {
    const { database } = connection;
    const schedule = new Schedule(clock);
    const statements = new Statements(connection, clock, schedule);
    const keys = new KeyIndex(database);
    const ledger = new Ledger(database);
    const settlements = new Settlements(database, ledger);
    super({
      player: statements,
      documents: new Imports(database, keys),
      submissions: new Submissions(database, clock),
      record: (started, settled) => already(settlements.record(started, settled, schedule.now())),
      settleRemote: (origin, settled) => already(settlements.settleRemote(origin, settled, schedule.now())),
      sumLost: (calls) => already(ledger.lose(calls)),
    });
    this.workingFolder = workingFolder;
    // The same by whatever name the file was opened.
    this.folder = dirname(realpathSync(connection.path));
    this.maintenance = new SqliteMaintenance(connection, statements);
    this.rowSource = sqliteRows(connection);
    this.#connection = connection;
    this.#statements = statements;
    this.#schedule = schedule;
    this.#lock = new DrainLock(connection, clock);
    this.#keys = keys;
    this.#queue = new Queue(database);
    connection.onUndone = () => {
      keys.forget();
      ledger.forget();
    };
  }

  acquireDrainLock(owner: StoreOwner): Promise<void> {
    return this.#lock.acquire(owner);
  }

  readOwner(runName?: string): Promise<StoreOwner | null> {
    return this.#lock.readOwner(runName);
  }

  deleteRun(runId: number): Promise<void> {
    return this.#connection.write(() => {
      this.#lock.refuseOtherOwnerOf(this.#statements.play(lockRun(runId)).name);
      this.#keys.forget();
      this.#statements.play(deleteRun(runId));
    });
  }

  beginReimport(runId: number): Promise<void> {
    return this.#statements.write(() => beginReimport(runId));
  }

  async pairTasks(options: SharingOptions, cursor: string | null, limit: number): Promise<string | null> {
    this.#firstRequests ??= firstRequests(this.#connection.database);
    const first = this.#firstRequests;
    return this.#statements.write(() => pairPage(first, options, cursor, limit));
  }

  claimTasks({ workerId, leaseMs, ...claim }: ClaimOptions): Promise<readonly LeasedTask[]> {
    return this.#connection.write(() => {
      const worker = this.#statements.play(claimingWorker(workerId, leaseMs));
      return this.#queue.claim(claim, worker, this.#schedule.now());
    });
  }

  nextDueMs(runId: number, among?: readonly number[]): Promise<number | null> {
    return this.#connection.read(() => {
      const next = this.#statements.play(nextDue(runId, among));
      return next === null ? null : this.#schedule.waitMs(next.atMs);
    });
  }

  async close(): Promise<void> {
    this.#lock.release();
    this.#connection.close();
  }
}
