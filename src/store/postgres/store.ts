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
import { endBatchesOfRun, noteResponses, remoteStore } from '../sql/batches.js';
import { recentCalls } from '../sql/open-calls.js';
import { cancelOpenTasks, listWork, readBacklog, retryFailedTasks } from '../sql/open-tasks.js';
import { rescueTasks } from '../sql/rescue.js';
import { resultPage } from '../sql/results.js';
import {
  cancelRun,
  createRun,
  deleteRun,
  listRuns,
  lockRun,
  noteObservations,
  reopenRun,
  updateRun,
} from '../sql/runs.js';
import { servedStore } from '../sql/served.js';
import { pairPage, settlePage } from '../sql/sharing.js';
import { summarizeRun } from '../sql/summary.js';
import { listTasks, readTasks } from '../sql/tasks.js';
import { latenciesOfRun, timelineOfRun } from '../sql/timeline.js';
import { beatWorker, noteStopOfWorker } from '../sql/workers.js';
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
import type { Connections } from './connections.js';
import { type OpenDatabaseOptions, openDatabase } from './database.js';
import { DrainLock } from './drain-lock.js';
import { FIRST_REQUESTS } from './first-requests.js';
import { addTasks, beginReimport, finishReimport, matchTasks, reimportTasks } from './imports.js';
import { sumLost } from './ledger.js';
import { PostgresMaintenance } from './maintenance.js';
import { claimTasks, nextDueMs } from './queue.js';
import { PostgresQuotas } from './quotas.js';
import { PostgresRowTarget } from './row-target.js';
import { recordProgress, settleRemote } from './settlements.js';
import { insertTasks } from './submitted-tasks.js';

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
    this.remote = remoteStore(connections, settleRemote);
    this.served = servedStore(connections, insertTasks);
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
    return this.#connections.write(() => noteStopOfWorker(workerId));
  }

  createRun(run: NewRun): Promise<RunRecord> {
    return this.#connections.write(() => createRun(this, run));
  }

  listRuns(): Promise<readonly RunRecord[]> {
    return this.#connections.read(() => listRuns(this));
  }

  updateRun(runId: number, change: RunChange): Promise<RunRecord> {
    return this.#connections.write(() => updateRun(this, runId, change));
  }

  noteObservations(runId: number, observations: readonly RunObservation[]): Promise<void> {
    return this.#connections.write(() => noteObservations(runId, observations));
  }

  deleteRun(runId: number): Promise<void> {
    const lock = this.#lock;
    return this.#connections.write(function* () {
      const { name } = yield* lockRun(runId);
      yield* lock.refuseOtherOwnerOf(name);
      yield* deleteRun(runId);
    });
  }

  cancelRun(runId: number): Promise<number> {
    return this.#connections.write(function* () {
      yield* cancelRun(runId);
      yield* endBatchesOfRun(runId, sumLost);
      return yield* cancelOpenTasks(runId);
    }, WHOLE_RUN);
  }

  addTasks(runId: number, tasks: readonly NewTask[]): Promise<{ added: number; duplicates: number }> {
    return this.#connections.write(() => addTasks(runId, tasks));
  }

  matchTasks(
    runId: number,
    documents: readonly Pick<NewTask, 'key' | 'occurrence' | 'requestHash'>[],
    answeredBy: string,
  ): Promise<readonly ImportMatch[]> {
    return this.#connections.readOnce(() => matchTasks(runId, documents, answeredBy));
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

  reimportTasks(runId: number, tasks: readonly NewTask[], options: ReimportOptions): Promise<ImportTally> {
    return this.#connections.write(() => reimportTasks(runId, tasks, options));
  }

  finishReimport(runId: number): Promise<{ gone: number }> {
    return this.#connections.write(() => finishReimport(runId), WHOLE_RUN);
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

  settlePairs(runId: number, afterTaskId: number, limit: number): Promise<SharedPage> {
    return this.#connections.write(() => settlePage(runId, afterTaskId, limit));
  }

  claimTasks(options: ClaimOptions): Promise<readonly LeasedTask[]> {
    return this.#connections.write(() => claimTasks(options), UNTIL_THE_NEXT);
  }

  listWork(): Promise<readonly RunWork[]> {
    return this.#connections.readOnce(() => listWork());
  }

  readBacklog(): Promise<Backlog> {
    return this.#connections.readOnce(() => readBacklog());
  }

  nextDueMs(runId: number, among?: readonly number[]): Promise<number | null> {
    return this.#connections.readOnce(() => nextDueMs(runId, among));
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
    return this.#connections.write(function* () {
      const progress = yield* recordProgress(started, settlements);
      return { ...progress, responseIds: yield* noteResponses(responses, sumLost) };
    });
  }

  beat(workerId: string, leaseMs: number): Promise<void> {
    return this.#connections.write(function* () {
      yield* beatWorker(workerId, leaseMs);
    }, UNTIL_THE_NEXT);
  }

  rescueTasks(options: {
    readonly crashLimit: number;
    readonly workers?: readonly string[];
  }): Promise<RescueReport> {
    return this.#connections.write(() => rescueTasks(options, sumLost));
  }

  retryTasks(runId: number, filter: { readonly kind?: FailureKind; readonly key?: string }): Promise<number> {
    return this.#connections.write(function* () {
      const retried = yield* retryFailedTasks(runId, filter);
      if (retried > 0) yield* reopenRun(runId);
      return retried;
    }, WHOLE_RUN);
  }

  readResults(options: ResultPageOptions): Promise<readonly ResultRow[]> {
    return this.#connections.read(() => resultPage(options));
  }

  listTasks(runId: number, afterTaskId: number, limit: number): Promise<readonly TaskPlace[]> {
    return this.#connections.readOnce(() => listTasks(runId, afterTaskId, limit));
  }

  readTasks(runId: number, taskIds: readonly number[], includeBody = true): Promise<readonly TaskRow[]> {
    return this.#connections.readOnce(() => readTasks(runId, taskIds, includeBody));
  }

  summarizeRun(runId: number): Promise<RunSummary> {
    return this.#connections.read(() => summarizeRun(runId));
  }

  readTimeline(runId: number, mostBuckets: number): Promise<RunTimeline | null> {
    return this.#connections.read(() => timelineOfRun(runId, mostBuckets), WHOLE_RUN);
  }

  readLatencies(runId: number): Promise<readonly LatencyCount[]> {
    return this.#connections.read(() => latenciesOfRun(runId));
  }

  readRecentCalls(withinMs: number): Promise<readonly RecentCall[]> {
    return this.#connections.readOnce(() => recentCalls(withinMs));
  }

  async close(): Promise<void> {
    await this.quotas.close();
    await this.#lock.release();
    await this.#connections.close();
  }
}
