/** The store in one SQLite file: each method of the port is one transaction over the parts beside this file. */

import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Backlog } from '../../core/backlog.js';
import type { NewResponse, ResponseNotes } from '../../core/batch-record.js';
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
import type { RowSource } from '../stored-rows.js';
import { Batches } from './batches.js';
import type { Connection } from './connection.js';
import { type OpenDatabaseOptions, openDatabase } from './database.js';
import { DrainLock } from './drain-lock.js';
import { translateError } from './errors.js';
import { Imports } from './imports.js';
import { KeyIndex } from './key-index.js';
import { Ledger } from './ledger.js';
import { SqliteMaintenance } from './maintenance.js';
import { OpenTasks } from './open-tasks.js';
import { Queue } from './queue.js';
import { Results } from './results.js';
import { sqliteRows } from './row-source.js';
import { Runs } from './runs.js';
import { Schedule } from './schedule.js';
import { Served } from './served.js';
import { Settlements } from './settlements.js';
import { Sharing } from './sharing.js';
import { Summary } from './summary.js';
import { Tasks } from './tasks.js';
import { Timeline } from './timeline.js';
import { Workers } from './workers.js';

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
  readonly served: ServedStore;
  readonly rowSource: RowSource;
  readonly rowTarget = null;
  readonly #connection: Connection;
  readonly #lock: DrainLock;
  readonly #runs: Runs;
  readonly #keys: KeyIndex;
  readonly #imports: Imports;
  readonly #queue: Queue;
  readonly #openTasks: OpenTasks;
  readonly #ledger: Ledger;
  readonly #settlements: Settlements;
  readonly #batches: Batches;
  readonly #results: Results;
  readonly #tasks: Tasks;
  readonly #summary: Summary;
  readonly #workers: Workers;
  readonly #clock: Clock;
  readonly #schedule: Schedule;
  #sharing: Sharing | null = null;

  constructor(connection: Connection, { clock, workingFolder }: OpenDatabaseOptions) {
    const { database } = connection;
    this.workingFolder = workingFolder;
    this.#connection = connection;
    this.#clock = clock;
    this.#schedule = new Schedule(clock);
    this.#workers = new Workers(database);
    this.#lock = new DrainLock(connection, this.#workers, clock);
    this.maintenance = new SqliteMaintenance(connection);
    // The same by whatever name the file was opened.
    this.folder = dirname(realpathSync(connection.path));
    this.#runs = new Runs(database, this);
    this.#keys = new KeyIndex(database);
    this.#imports = new Imports(database, this.#keys);
    this.#queue = new Queue(database);
    this.#openTasks = new OpenTasks(connection.database);
    this.#ledger = new Ledger(database);
    this.#settlements = new Settlements(database, this.#ledger);
    this.#batches = new Batches(database, this.#settlements);
    this.remote = this.#remote();
    this.served = this.#served(new Served(database));
    this.rowSource = sqliteRows(connection);
    this.#results = new Results(database);
    this.#tasks = new Tasks(database);
    this.#summary = new Summary(database);
    connection.onUndone = () => this.#keys.forget();
  }

  acquireDrainLock(owner: StoreOwner): Promise<void> {
    return this.#lock.acquire(owner);
  }

  noteStop(workerId: string): Promise<void> {
    return this.#connection.write(() => this.#workers.noteStop(workerId));
  }

  readOwner(runName?: string): Promise<StoreOwner | null> {
    return this.#lock.readOwner(runName);
  }

  createRun(run: NewRun): Promise<RunRecord> {
    return this.#connection.write(() => this.#runs.create(run));
  }

  listRuns(): Promise<readonly RunRecord[]> {
    return this.#connection.read(() => this.#runs.list());
  }

  updateRun(runId: number, change: RunChange): Promise<RunRecord> {
    return this.#connection.write(() => {
      if (change.status !== undefined && change.status !== 'importing') this.#keys.settle(runId);
      return this.#runs.update(runId, change);
    });
  }

  noteObservations(runId: number, observations: readonly RunObservation[]): Promise<void> {
    return this.#connection.write(() => this.#runs.note(runId, observations));
  }

  deleteRun(runId: number): Promise<void> {
    return this.#connection.write(() => {
      this.#lock.refuseOtherOwnerOf(this.#runs.get(runId).name);
      this.#keys.forget();
      this.#runs.delete(runId);
    });
  }

  cancelRun(runId: number): Promise<number> {
    return this.#connection.write(() => {
      this.#keys.settle(runId);
      this.#runs.cancel(runId, this.#clock.now());
      this.#ledger.begin();
      for (const { id, kind } of this.#batches.list(runId))
        if (kind === 'response') this.#ledger.loseOfResponse(id, this.#clock.now());
      this.#ledger.flush();
      this.#batches.endOfRun(runId);
      return this.#queue.cancelOpen(runId);
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
    const sharing = this.#shares;
    return this.#connection.write(() => sharing.pairPage(options, cursor, limit));
  }

  settlePairs(runId: number, afterTaskId: number, limit: number): Promise<SharedPage> {
    const sharing = this.#shares;
    return this.#connection.write(() => sharing.settlePage(runId, afterTaskId, limit, this.#clock.now()));
  }

  claimTasks({ workerId, leaseMs, ...claim }: ClaimOptions): Promise<readonly LeasedTask[]> {
    return this.#connection.write(() => {
      const nowMs = this.#schedule.now();
      const worker = this.#workers.claiming(workerId, leaseMs, nowMs);
      return this.#queue.claim(claim, worker, nowMs);
    });
  }

  listWork(): Promise<readonly RunWork[]> {
    return this.#connection.read(() => this.#queue.work(this.#schedule.now()));
  }

  readBacklog(): Promise<Backlog> {
    return this.#connection.read(() => this.#openTasks.read(this.#schedule.now()));
  }

  nextDueMs(runId: number, among?: readonly number[]): Promise<number | null> {
    return this.#connection.read(() => {
      const dueAtMs = this.#queue.nextDueAtMs(runId, among);
      return dueAtMs === null ? null : this.#schedule.waitMs(dueAtMs);
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
      this.#ledger.begin();
      const callIds = started.map((call) => this.#ledger.start(call));
      const lostTaskIds = settlements.flatMap((settlement) =>
        this.#settlements.settle(settlement, this.#schedule.now()),
      );
      const responseIds = taken.map((response) => this.#takeResponse(response));
      for (const batchId of ended) this.#endResponse(batchId);
      this.#ledger.flush();
      return { callIds, responseIds, lostTaskIds };
    });
  }

  #takeResponse(response: NewResponse): number | null {
    const batchId = this.#batches.take(response);
    if (batchId !== null) this.#ledger.handOver(response.callId, batchId);
    return batchId;
  }

  /** One whose task was taken from it, for a document that was edited, may have been billed. */
  #endResponse(batchId: number): void {
    if (this.#batches.end(batchId)) this.#ledger.loseOfResponse(batchId, this.#clock.now());
  }

  beat(workerId: string, leaseMs: number): Promise<void> {
    return this.#connection.write(() => void this.#workers.beat(workerId, leaseMs, this.#schedule.now()));
  }

  rescueTasks(options: {
    readonly crashLimit: number;
    readonly workers?: readonly string[];
  }): Promise<RescueReport> {
    return this.#connection.write(() => {
      this.#ledger.begin();
      const dead = this.#workers.dead(options.workers ?? null, this.#schedule.now());
      const total = { rescued: 0, lostCalls: 0, poisoned: 0 };
      for (const worker of dead) {
        const report = this.#settlements.rescue(worker, options.crashLimit, this.#clock.now());
        this.#workers.forget(worker.id);
        total.rescued += report.rescued;
        total.lostCalls += report.lostCalls;
        total.poisoned += report.poisoned;
      }
      this.#ledger.flush();
      return total;
    });
  }

  retryTasks(runId: number, filter: { readonly kind?: FailureKind; readonly key?: string }): Promise<number> {
    return this.#connection.write(() => {
      const retried = this.#queue.retryFailed(runId, filter);
      if (retried > 0) this.#runs.reopen(runId);
      return retried;
    });
  }

  readResults(options: ResultPageOptions): Promise<readonly ResultRow[]> {
    return this.#connection.read(() => (this.#runs.exists(options.runId) ? this.#results.page(options) : []));
  }

  listTasks(runId: number, afterTaskId: number, limit: number): Promise<readonly TaskPlace[]> {
    return this.#connection.read(() =>
      this.#runs.exists(runId) ? this.#tasks.list(runId, afterTaskId, limit) : [],
    );
  }

  readTasks(runId: number, taskIds: readonly number[], includeBody = true): Promise<readonly TaskRow[]> {
    return this.#connection.read(() =>
      this.#runs.exists(runId) ? this.#tasks.read(runId, taskIds, includeBody) : [],
    );
  }

  summarizeRun(runId: number): Promise<RunSummary> {
    return this.#connection.read(() => this.#summary.of(runId));
  }

  readTimeline(runId: number, mostBuckets: number): Promise<RunTimeline | null> {
    return this.#connection.read(() => new Timeline(this.#connection.database).of(runId, mostBuckets));
  }

  readLatencies(runId: number): Promise<readonly LatencyCount[]> {
    return this.#connection.read(() => new Timeline(this.#connection.database).latenciesOf(runId));
  }

  readRecentCalls(withinMs: number): Promise<readonly RecentCall[]> {
    return this.#connection.read(() => this.#ledger.recent(withinMs, this.#clock.now()));
  }

  #remote(): RemoteStore {
    const connection = this.#connection;
    const batches = this.#batches;
    return {
      begin: (batch) =>
        connection.write(() => {
          this.#runs.get(batch.runId);
          return batches.begin(batch);
        }),
      give: (batchId, tasks, load) => connection.write(() => batches.give(batchId, tasks, load)),
      note: (batchId, progress) => connection.write(() => batches.note(batchId, progress)),
      tasksOf: (batchId, { taskIds, limit }) =>
        connection.read(() => batches.tasksOf(batchId, taskIds ?? null, limit, this.#schedule.now())),
      settle: (batchId, settlements) =>
        connection.write(() => {
          this.#ledger.begin();
          const lost = batches.settle(batchId, settlements, this.#schedule.now());
          this.#ledger.flush();
          return lost;
        }),
      giveBack: (batchId, limit) => connection.write(() => batches.giveBack(batchId, limit)),
      end: (batchId) => connection.write(() => batches.end(batchId)),
      list: (runId) => connection.read(() => (this.#runs.exists(runId) ? batches.list(runId) : [])),
      responsesOf: (runId) =>
        connection.read(() =>
          batches.responsesOf(runId, (batchId) => this.#ledger.handedOver(batchId), this.#schedule.now()),
        ),
    };
  }

  #served(served: Served): ServedStore {
    const connection = this.#connection;
    const now = (): number => this.#clock.now();
    const dueNow = (): number => this.#schedule.now();
    return {
      adoptRun: (runId, isBulk) => connection.write(() => served.adoptRun(runId, isBulk)),
      listRuns: () => connection.read(() => served.runs()),
      submit: (runId, tasks, options) => connection.write(() => served.submit(runId, tasks, options, now())),
      openRun: (runId, publicId, idempotency) =>
        connection.write(() => {
          this.#keys.settle(runId);
          return served.openRun(runId, publicId, idempotency);
        }),
      find: (publicId) => connection.read(() => served.find(publicId)),
      cancel: (publicId) => connection.write(() => served.cancel(publicId)),
      takeWebhooks: (limit, holdMs) => connection.write(() => served.take(limit, holdMs, dueNow())),
      noteWebhooks: (tries) => connection.write(() => served.note(tries, dueNow())),
      nextWebhookMs: () =>
        connection.read(() => {
          const dueAtMs = served.nextDueAtMs();
          return dueAtMs === null ? null : Math.max(0, dueAtMs - dueNow());
        }),
      listWebhooks: (afterTaskId, limit) => connection.read(() => served.parked(afterTaskId, limit)),
      retryWebhooks: (publicId) => connection.write(() => served.retry(publicId)),
      countWebhooks: () => connection.read(() => served.countWebhooks()),
      expire: (ttlMs, cursor, limit) => connection.write(() => served.expire(ttlMs, cursor, limit, now())),
    };
  }

  /** Made when it is first needed, since most runs share nothing, and outside a transaction that may be undone. */
  get #shares(): Sharing {
    this.#sharing ??= new Sharing(this.#connection.database);
    return this.#sharing;
  }

  async close(): Promise<void> {
    this.#lock.release();
    this.#connection.close();
  }
}
