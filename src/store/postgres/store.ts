/** The store in one schema of a PostgreSQL server: each method of the port is one transaction over the parts beside this file. */
import type { Backlog } from '../../core/backlog.js';
import type { ResponseNotes } from '../../core/batch-record.js';
import type { CallStart, RecentCall } from '../../core/call.js';
import type { Clock } from '../../core/clock.js';
import type { FailureKind } from '../../core/failure.js';
import type { Settlement } from '../../core/outcome.js';
import type { ResultRow, TaskRow } from '../../core/result-row.js';
import type { NewRun, RunChange, RunObservation, RunRecord } from '../../core/run.js';
import type { RunSummary } from '../../core/run-summary.js';
import type { LeasedTask, NewTask, TaskPlace } from '../../core/task.js';
import type { LatencyCount, RunTimeline } from '../../core/timeline.js';
import type { StoreMaintenance } from '../maintenance.js';
import type { RemoteStore } from '../remote-store.js';
import type { ServedStore } from '../served-store.js';
import type {
  ClaimOptions,
  ImportMatch,
  ImportTally,
  RecordedProgress,
  ReimportOptions,
  RescueReport,
  ResultPageOptions,
  RunWork,
  SharedPage,
  SharingOptions,
  Store,
  StoreOwner,
} from '../store.js';
import type { RowTarget } from '../stored-rows.js';
import { addressOf } from './address.js';
import { endBatchesOfRun, noteResponses, remoteStore } from './batches.js';
import type { Connections } from './connections.js';
import { type OpenDatabaseOptions, openDatabase } from './database.js';
import { DrainLock } from './drain-lock.js';
import { addTasks, beginReimport, finishReimport, matchTasks, reimportTasks } from './imports.js';
import { recentCalls } from './ledger.js';
import { PostgresMaintenance } from './maintenance.js';
import { readBacklog } from './open-tasks.js';
import { cancelOpenTasks, claimTasks, listWork, nextDueMs, retryFailedTasks } from './queue.js';
import { PostgresQuotas } from './quotas.js';
import { resultPage } from './results.js';
import { PostgresRowTarget } from './row-target.js';
import {
  cancelRun,
  createRun,
  deleteRun,
  listRuns,
  lockRun,
  noteObservations,
  reopenRun,
  runExists,
  updateRun,
} from './runs.js';
import { servedStore } from './served.js';
import { recordProgress, rescueTasks } from './settlements.js';
import { pairPage, settlePage } from './sharing.js';
import { summarizeRun } from './summary.js';
import { listTasks, readTasks } from './tasks.js';
import { latenciesOfRun, timelineOfRun } from './timeline.js';
import { beatWorker, noteStopOfWorker } from './workers.js';

const WHOLE_RUN = { isLong: true };
/** A claim or a beat: whoever has tasks that the store knows nothing of is told so before a call of theirs leaves. */
const UNTIL_THE_NEXT = { mayBeLost: true };

/** @throws LlmBatchError STORE_* (exit 5, 2 for what is wrong with the address) */
export async function openPostgresStore(
  url: string,
  schemaName: string,
  options: OpenDatabaseOptions,
): Promise<Store> {
  return new PostgresStore(await openDatabase(addressOf(url, schemaName), options), options.clock);
}

class PostgresStore implements Store {
  readonly capabilities = { sharedDrain: true, givesRoomBack: false };
  readonly folder = null;
  readonly maintenance: StoreMaintenance;
  readonly remote: RemoteStore;
  readonly served: ServedStore;
  readonly quotas: PostgresQuotas;
  readonly rowSource = null;
  readonly rowTarget: RowTarget;
  readonly #connections: Connections;
  readonly #lock: DrainLock;

  constructor(connections: Connections, clock: Clock) {
    this.#connections = connections;
    this.#lock = new DrainLock(connections, clock);
    this.maintenance = new PostgresMaintenance(connections);
    this.remote = remoteStore(connections);
    this.served = servedStore(connections);
    this.quotas = new PostgresQuotas(connections);
    this.rowTarget = new PostgresRowTarget(connections);
  }

  acquireDrainLock(owner: StoreOwner): Promise<void> {
    return this.#lock.acquire(owner);
  }

  readOwner(runName?: string): Promise<StoreOwner | null> {
    return this.#lock.readOwner(runName);
  }

  noteStop(workerId: string): Promise<void> {
    return this.#connections.write((transaction) => noteStopOfWorker(transaction, workerId));
  }

  createRun(run: NewRun): Promise<RunRecord> {
    return this.#connections.write((transaction) => createRun(transaction, run));
  }

  listRuns(): Promise<readonly RunRecord[]> {
    return this.#connections.read((transaction) => listRuns(transaction));
  }

  updateRun(runId: number, change: RunChange): Promise<RunRecord> {
    return this.#connections.write((transaction) => updateRun(transaction, runId, change));
  }

  noteObservations(runId: number, observations: readonly RunObservation[]): Promise<void> {
    return this.#connections.write((transaction) => noteObservations(transaction, runId, observations));
  }

  deleteRun(runId: number): Promise<void> {
    return this.#connections.write(async (transaction) => {
      const { name } = await lockRun(transaction, runId);
      await this.#lock.refuseOtherOwnerOf(transaction, name);
      await deleteRun(transaction, runId);
    });
  }

  cancelRun(runId: number): Promise<number> {
    return this.#connections.write(async (transaction) => {
      await cancelRun(transaction, runId);
      await endBatchesOfRun(transaction, runId);
      return cancelOpenTasks(transaction, runId);
    }, WHOLE_RUN);
  }

  addTasks(runId: number, tasks: readonly NewTask[]): Promise<{ added: number; duplicates: number }> {
    return this.#connections.write((transaction) => addTasks(transaction, runId, tasks));
  }

  matchTasks(
    runId: number,
    documents: readonly Pick<NewTask, 'key' | 'occurrence' | 'requestHash'>[],
    answeredBy: string,
  ): Promise<readonly ImportMatch[]> {
    return this.#connections.readOnce((transaction) => matchTasks(transaction, runId, documents, answeredBy));
  }

  /** Whoever works on the run meanwhile would not know what becomes of it. */
  beginReimport(runId: number): Promise<void> {
    return this.#connections.write(async (transaction) => {
      const { name } = await lockRun(transaction, runId);
      await this.#lock.refuseOtherOwnerOf(transaction, name);
      await beginReimport(transaction, runId);
    });
  }

  reimportTasks(runId: number, tasks: readonly NewTask[], options: ReimportOptions): Promise<ImportTally> {
    return this.#connections.write((transaction) => reimportTasks(transaction, runId, tasks, options));
  }

  finishReimport(runId: number): Promise<{ gone: number }> {
    return this.#connections.write((transaction) => finishReimport(transaction, runId), WHOLE_RUN);
  }

  /** A run that somebody else has is paired by whoever had it first. */
  pairTasks(options: SharingOptions, cursor: string | null, limit: number): Promise<string | null> {
    return this.#connections.write(async (transaction) => {
      const { name } = await lockRun(transaction, options.runId);
      if ((await this.#lock.otherOwnerOf(transaction, name)) !== null) return null;
      return pairPage(transaction, options, cursor, limit);
    });
  }

  settlePairs(runId: number, afterTaskId: number, limit: number): Promise<SharedPage> {
    return this.#connections.write((transaction) => settlePage(transaction, runId, afterTaskId, limit));
  }

  claimTasks(options: ClaimOptions): Promise<readonly LeasedTask[]> {
    return this.#connections.write((transaction) => claimTasks(transaction, options), UNTIL_THE_NEXT);
  }

  listWork(): Promise<readonly RunWork[]> {
    return this.#connections.readOnce((transaction) => listWork(transaction));
  }

  readBacklog(): Promise<Backlog> {
    return this.#connections.readOnce((transaction) => readBacklog(transaction));
  }

  nextDueMs(runId: number, among?: readonly number[]): Promise<number | null> {
    return this.#connections.readOnce((transaction) => nextDueMs(transaction, runId, among));
  }

  async record(
    started: readonly CallStart[],
    settlements: readonly Settlement[],
    responses: ResponseNotes = { taken: [], ended: [] },
  ): Promise<RecordedProgress> {
    const { taken, ended } = responses;
    if (started.length + settlements.length + taken.length + ended.length === 0) {
      return { callIds: [], responseIds: [], lostTaskIds: [] };
    }
    return this.#connections.write(async (transaction) => {
      const progress = await recordProgress(transaction, started, settlements);
      return { ...progress, responseIds: await noteResponses(transaction, responses) };
    });
  }

  beat(workerId: string, leaseMs: number): Promise<void> {
    return this.#connections.write(async (transaction) => {
      await beatWorker(transaction, workerId, leaseMs);
    }, UNTIL_THE_NEXT);
  }

  rescueTasks(options: {
    readonly crashLimit: number;
    readonly workers?: readonly string[];
  }): Promise<RescueReport> {
    return this.#connections.write((transaction) => rescueTasks(transaction, options));
  }

  retryTasks(runId: number, filter: { readonly kind?: FailureKind; readonly key?: string }): Promise<number> {
    return this.#connections.write(async (transaction) => {
      const retried = await retryFailedTasks(transaction, runId, filter);
      if (retried > 0) await reopenRun(transaction, runId);
      return retried;
    }, WHOLE_RUN);
  }

  readResults(options: ResultPageOptions): Promise<readonly ResultRow[]> {
    return this.#connections.read(async (transaction) =>
      (await runExists(transaction, options.runId)) ? resultPage(transaction, options) : [],
    );
  }

  listTasks(runId: number, afterTaskId: number, limit: number): Promise<readonly TaskPlace[]> {
    return this.#connections.readOnce((transaction) => listTasks(transaction, runId, afterTaskId, limit));
  }

  readTasks(runId: number, taskIds: readonly number[], includeBody = true): Promise<readonly TaskRow[]> {
    return this.#connections.readOnce((transaction) => readTasks(transaction, runId, taskIds, includeBody));
  }

  summarizeRun(runId: number): Promise<RunSummary> {
    return this.#connections.read((transaction) => summarizeRun(transaction, runId));
  }

  readTimeline(runId: number, mostBuckets: number): Promise<RunTimeline | null> {
    return this.#connections.read((transaction) => timelineOfRun(transaction, runId, mostBuckets), WHOLE_RUN);
  }

  readLatencies(runId: number): Promise<readonly LatencyCount[]> {
    return this.#connections.read((transaction) => latenciesOfRun(transaction, runId));
  }

  readRecentCalls(withinMs: number): Promise<readonly RecentCall[]> {
    return this.#connections.readOnce((transaction) => recentCalls(transaction, withinMs));
  }

  async close(): Promise<void> {
    await this.quotas.close();
    await this.#lock.release();
    await this.#connections.close();
  }
}
