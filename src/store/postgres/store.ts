/** The store in one schema of a PostgreSQL server: what its port does its own way; the rest is ../sql/sql-store.ts. */
import type { Clock } from '../../core/clock.js';
import type { LeasedTask } from '../../core/task.js';
import type { StoreMaintenance } from '../maintenance.js';
import { beginReimport } from '../sql/reimports.js';
import { deleteRun, lockRun } from '../sql/runs.js';
import { pairPage } from '../sql/sharing.js';
import { SqlStore, UNTIL_THE_NEXT } from '../sql/sql-store.js';
import type { ClaimOptions, SharingOptions, Store, StoreOwner } from '../store.js';
import type { RowTarget } from '../stored-rows.js';
import { addressOf } from './address.js';
import type { Connections } from './connections.js';
import { type OpenDatabaseOptions, openDatabase } from './database.js';
import { DOCUMENTS } from './documents.js';
import { DrainLock } from './drain-lock.js';
import { FIRST_REQUESTS } from './first-requests.js';
import { sumLost } from './ledger.js';
import { PostgresMaintenance } from './maintenance.js';
import { claimTasks, nextDueMs } from './queue.js';
import { PostgresQuotas } from './quotas.js';
import { PostgresRowTarget } from './row-target.js';
import { recordProgress, settleRemote } from './settlements.js';
import { SUBMISSIONS } from './submissions.js';

/** @throws LlmBatchError STORE_* (exit 5, 2 for what is wrong with the address) */
export async function openPostgresStore(
  url: string,
  schemaName: string,
  options: OpenDatabaseOptions,
): Promise<Store> {
  return new PostgresStore(await openDatabase(addressOf(url, schemaName), options), options.clock);
}

class PostgresStore extends SqlStore implements Store {
  readonly capabilities = { sharedDrain: true, givesRoomBack: false };
  readonly folder = null;
  readonly maintenance: StoreMaintenance;
  readonly quotas: PostgresQuotas;
  readonly rowSource = null;
  readonly rowTarget: RowTarget;
  readonly #connections: Connections;
  readonly #lock: DrainLock;

  constructor(connections: Connections, clock: Clock) {
    super({
      ...{ player: connections, documents: DOCUMENTS, submissions: SUBMISSIONS, record: recordProgress },
      ...{ settleRemote, sumLost },
    });
    this.#connections = connections;
    this.#lock = new DrainLock(connections, clock);
    this.maintenance = new PostgresMaintenance(connections);
    this.quotas = new PostgresQuotas(connections);
    this.rowTarget = new PostgresRowTarget(connections);
  }

  acquireDrainLock(owner: StoreOwner): Promise<void> {
    return this.#lock.acquire(owner);
  }

  readOwner(runName?: string): Promise<StoreOwner | null> {
    return this.#lock.readOwner(runName);
  }

  deleteRun(runId: number): Promise<void> {
    const lock = this.#lock;
    return this.#connections.write(function* () {
      const { name } = yield* lockRun(runId);
      yield* lock.refuseOtherOwnerOf(name);
      yield* deleteRun(runId);
    });
  }

  /** Whoever works on the run meanwhile would not know what becomes of it. */
  beginReimport(runId: number): Promise<void> {
    const lock = this.#lock;
    return this.#connections.write(function* () {
      const { name } = yield* lockRun(runId);
      yield* lock.refuseOtherOwnerOf(name);
      yield* beginReimport(runId);
    });
  }

  /** A run that somebody else has is paired by whoever had it first. */
  pairTasks(options: SharingOptions, cursor: string | null, limit: number): Promise<string | null> {
    const lock = this.#lock;
    return this.#connections.write(function* () {
      const { name } = yield* lockRun(options.runId);
      if ((yield* lock.otherOwnerOf(name)) !== null) return null;
      return yield* pairPage(FIRST_REQUESTS, options, cursor, limit);
    });
  }

  claimTasks(options: ClaimOptions): Promise<readonly LeasedTask[]> {
    return this.#connections.write(() => claimTasks(options), UNTIL_THE_NEXT);
  }

  nextDueMs(runId: number, among?: readonly number[]): Promise<number | null> {
    return this.#connections.readOnce(() => nextDueMs(runId, among));
  }

  async close(): Promise<void> {
    await this.quotas.close();
    await this.#lock.release();
    await this.#connections.close();
  }
}
