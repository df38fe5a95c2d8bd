/** The store in one SQLite file: each method of the port is one transaction over the parts beside this file. */

import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Backlog } from '../../core/backlog.js';
import type { ResponseNotes } from '../../core/batch-record.js';
import type { CallStart, RecentCall } from '../../core/call.js';
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
import { recentCalls, type SumLost } from '../sql/open-calls.js';
import { cancelOpenTasks, listWork, nextDue, readBacklog, retryFailedTasks } from '../sql/open-tasks.js';
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
import { openServedRun, servedStore } from '../sql/served.js';
import { type FirstRequests, pairPage, settlePage } from '../sql/sharing.js';
import { already } from '../sql/steps.js';
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
import { insertTasks } from './submitted-tasks.js';

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

export class SqliteStore implements Store {
  readonly capabilities = { sharedDrain: false, givesRoomBack: true };
  readonly folder: string;
  readonly workingFolder: string | undefined;
  readonly maintenance: StoreMaintenance;
  readonly remote: RemoteStore;
  readonly quotas = null;
  readonly served: ServedStore;
  readonly rowSource: RowSource;
  readonly rowTarget = null;
  readonly #connection: Connection;
  readonly #lock: DrainLock;
  readonly #statements: Statements;
  readonly #keys: KeyIndex;
  readonly #imports: Imports;
  readonly #queue: Queue;
  readonly #ledger: Ledger;
  readonly #settlements: Settlements;
  readonly #sumLost: SumLost = (calls) => already(this.#ledger.lose(calls));
  readonly #schedule: Schedule;
  #firstRequests: FirstRequests | null = null;

  constructor(connection: Connection, { clock, workingFolder }: OpenDatabaseOptions) {
    const { database } = connection;
    this.workingFolder = workingFolder;
    this.#connection = connection;
    this.#schedule = new Schedule(clock);
    this.#lock = new DrainLock(connection, clock);
    // The same by whatever name the file was opened.
    this.folder = dirname(realpathSync(connection.path));
    this.#statements = new Statements(connection, clock, this.#schedule);
    this.maintenance = new SqliteMaintenance(connection, this.#statements);
    this.#keys = new KeyIndex(database);
    this.#imports = new Imports(database, this.#keys);
    this.#queue = new Queue(database);
    this.#ledger = new Ledger(database);
    this.#settlements = new Settlements(database, this.#ledger);
    this.remote = remoteStore(this.#statements, (origin, settlements) =>
      already(this.#settlements.settleRemote(origin, settlements, this.#schedule.now())),
    );
    this.served = this.#served();
    this.rowSource = sqliteRows(connection);
    connection.onUndone = () => {
      this.#keys.forget();
      this.#ledger.forget();
    };
  }

  acquireDrainLock(owner: StoreOwner): Promise<void> {
    return this.#lock.acquire(owner);
  }

  noteStop(workerId: string): Promise<void> {
    return this.#statements.write(() => noteStopOfWorker(workerId));
  }

  readOwner(runName?: string): Promise<StoreOwner | null> {
    return this.#lock.readOwner(runName);
  }

  createRun(run: NewRun): Promise<RunRecord> {
    return this.#statements.write(() => createRun(this, run));
  }

  listRuns(): Promise<readonly RunRecord[]> {
    return this.#statements.read(() => listRuns(this));
  }

  updateRun(runId: number, change: RunChange): Promise<RunRecord> {
    return this.#connection.write(() => {
      if (change.status !== undefined && change.status !== 'importing') this.#keys.settle(runId);
      return this.#statements.play(updateRun(this, runId, change));
    });
  }

  noteObservations(runId: number, observations: readonly RunObservation[]): Promise<void> {
    return this.#statements.write(() => noteObservations(runId, observations));
  }

  deleteRun(runId: number): Promise<void> {
    return this.#connection.write(() => {
      this.#lock.refuseOtherOwnerOf(this.#statements.play(lockRun(runId)).name);
      this.#keys.forget();
      this.#statements.play(deleteRun(runId));
    });
  }

  cancelRun(runId: number): Promise<number> {
    return this.#connection.write(() => {
      this.#keys.settle(runId);
      this.#statements.play(cancelRun(runId));
      this.#statements.play(endBatchesOfRun(runId, this.#sumLost));
      return this.#statements.play(cancelOpenTasks(runId));
    });
  }

  addTasks(runId: number, tasks: readonly NewTask[]): Promise<{ added: number; duplicates: number }> {
    return this.#connection.write(() => this.#imports.add(runId, tasks));
  }

  matchTasks(
    runId: number,
    documents: readonly Pick<NewTask, 'key' | 'occurrence' | 'requestHash'>[],
    answeredBy: string,
  ): Promise<readonly ImportMatch[]> {
    return this.#connection.read(() => this.#imports.match(runId, documents, answeredBy));
  }

  beginReimport(runId: number): Promise<void> {
    return this.#connection.write(() => this.#imports.begin(runId));
  }

  reimportTasks(runId: number, tasks: readonly NewTask[], options: ReimportOptions): Promise<ImportTally> {
    return this.#connection.write(() => this.#imports.reimport(runId, tasks, options));
  }

  finishReimport(runId: number): Promise<{ gone: number }> {
    return this.#connection.write(() => this.#imports.finish(runId));
  }

  pairTasks(options: SharingOptions, cursor: string | null, limit: number): Promise<string | null> {
    this.#firstRequests ??= firstRequests(this.#connection.database);
    const first = this.#firstRequests;
    return this.#statements.write(() => pairPage(first, options, cursor, limit));
  }

  settlePairs(runId: number, afterTaskId: number, limit: number): Promise<SharedPage> {
    return this.#statements.write(() => settlePage(runId, afterTaskId, limit));
  }

  claimTasks({ workerId, leaseMs, ...claim }: ClaimOptions): Promise<readonly LeasedTask[]> {
    return this.#connection.write(() => {
      const nowMs = this.#schedule.now();
      const worker = this.#statements.play(claimingWorker(workerId, leaseMs));
      return this.#queue.claim(claim, worker, nowMs);
    });
  }

  listWork(): Promise<readonly RunWork[]> {
    return this.#statements.read(() => listWork());
  }

  readBacklog(): Promise<Backlog> {
    return this.#statements.read(() => readBacklog());
  }

  nextDueMs(runId: number, among?: readonly number[]): Promise<number | null> {
    return this.#connection.read(() => {
      const next = this.#statements.play(nextDue(runId, among));
      return next === null ? null : this.#schedule.waitMs(next.atMs);
    });
  }

  async record(
    started: readonly CallStart[],
    settlements: readonly Settlement[],
    responses: ResponseNotes = { taken: [], ended: [] },
  ): Promise<RecordedProgress> {
    const { taken, ended } = responses;
    if (started.length + settlements.length + taken.length + ended.length === 0)
      return { callIds: [], responseIds: [], lostTaskIds: [] };
    return this.#connection.write(() => {
      const callIds = started.map((call) => this.#ledger.start(call));
      const lostTaskIds = settlements.flatMap((settlement) =>
        this.#settlements.settle(settlement, this.#schedule.now()),
      );
      const responseIds = this.#statements.play(noteResponses(responses, this.#sumLost));
      this.#ledger.flush();
      return { callIds, responseIds, lostTaskIds };
    });
  }

  beat(workerId: string, leaseMs: number): Promise<void> {
    return this.#statements.write(function* () {
      yield* beatWorker(workerId, leaseMs);
    });
  }

  rescueTasks(options: {
    readonly crashLimit: number;
    readonly workers?: readonly string[];
  }): Promise<RescueReport> {
    return this.#statements.write(() => rescueTasks(options, this.#sumLost));
  }

  retryTasks(runId: number, filter: { readonly kind?: FailureKind; readonly key?: string }): Promise<number> {
    return this.#connection.write(() => {
      const retried = this.#statements.play(retryFailedTasks(runId, filter));
      if (retried > 0) this.#statements.play(reopenRun(runId));
      return retried;
    });
  }

  readResults(options: ResultPageOptions): Promise<readonly ResultRow[]> {
    return this.#statements.read(() => resultPage(options));
  }

  listTasks(runId: number, afterTaskId: number, limit: number): Promise<readonly TaskPlace[]> {
    return this.#statements.read(() => listTasks(runId, afterTaskId, limit));
  }

  readTasks(runId: number, taskIds: readonly number[], includeBody = true): Promise<readonly TaskRow[]> {
    return this.#statements.read(() => readTasks(runId, taskIds, includeBody));
  }

  summarizeRun(runId: number): Promise<RunSummary> {
    return this.#statements.read(() => summarizeRun(runId));
  }

  readTimeline(runId: number, mostBuckets: number): Promise<RunTimeline | null> {
    return this.#statements.read(() => timelineOfRun(runId, mostBuckets));
  }

  readLatencies(runId: number): Promise<readonly LatencyCount[]> {
    return this.#statements.read(() => latenciesOfRun(runId));
  }

  readRecentCalls(withinMs: number): Promise<readonly RecentCall[]> {
    return this.#statements.read(() => recentCalls(withinMs));
  }

  #served(): ServedStore {
    return {
      ...servedStore(this.#statements, insertTasks),
      openRun: (runId, publicId, idempotency) =>
        this.#connection.write(() => {
          this.#keys.settle(runId);
          return this.#statements.play(openServedRun(runId, publicId, idempotency));
        }),
    };
  }

  async close(): Promise<void> {
    this.#lock.release();
    this.#connection.close();
  }
}
