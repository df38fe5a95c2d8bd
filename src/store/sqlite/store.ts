/** The store in one SQLite file: each method of the port is one transaction over the parts beside this file. */
import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import type { CallStart, RecentCall } from '../../core/call.js';
import type { Clock } from '../../core/clock.js';
import type { FailureKind } from '../../core/failure.js';
import type { Settlement } from '../../core/outcome.js';
import type { ResultRow, TaskRow } from '../../core/result-row.js';
import type { NewRun, RunChange, RunObservation, RunRecord } from '../../core/run.js';
import type { RunSummary } from '../../core/run-summary.js';
import type { LeasedTask, NewTask, TaskPlace } from '../../core/task.js';
import type { LatencyCount, RunTimeline } from '../../core/timeline.js';
import type {
  ClaimOptions,
  CountDifference,
  ImportMatch,
  ImportTally,
  RecordedProgress,
  ReimportOptions,
  RescueReport,
  ResultPageOptions,
  SharedPage,
  SharingOptions,
  Store,
  StoreCondition,
  StoreOwner,
} from '../store.js';
import type { Connection } from './connection.js';
import { type OpenDatabaseOptions, openDatabase } from './database.js';
import { DrainLock } from './drain-lock.js';
import { examineDatabase } from './examination.js';
import { Imports } from './imports.js';
import { KeyIndex } from './key-index.js';
import { Ledger } from './ledger.js';
import { Queue } from './queue.js';
import { Recount } from './recount.js';
import { Results } from './results.js';
import { Runs } from './runs.js';
import { Settlements } from './settlements.js';
import { PAIRING_START, type Pairing, Sharing } from './sharing.js';
import { Space } from './space.js';
import { storableInteger } from './storable.js';
import { Summary } from './summary.js';
import { Sweep, type SweepPass } from './sweep.js';
import { Tasks } from './tasks.js';
import { Timeline } from './timeline.js';

/** @throws LlmBatchError STORE_* (exit 5) */
export async function openSqliteStore(path: string, options: OpenDatabaseOptions): Promise<Store> {
  return new SqliteStore(await openDatabase(path, options), options.clock);
}

export class SqliteStore implements Store {
  readonly capabilities = { sharedDrain: false };
  readonly folder: string;
  readonly #connection: Connection;
  readonly #lock: DrainLock;
  readonly #runs: Runs;
  readonly #keys: KeyIndex;
  readonly #imports: Imports;
  readonly #queue: Queue;
  readonly #ledger: Ledger;
  readonly #settlements: Settlements;
  readonly #results: Results;
  readonly #tasks: Tasks;
  readonly #summary: Summary;
  readonly #sweep: Sweep;
  readonly #space: Space;
  #sweepPass: SweepPass | null = null;
  #sharing: Sharing | null = null;
  #pairing: { readonly runId: number; readonly at: Pairing } | null = null;

  constructor(connection: Connection, clock: Clock) {
    const { database } = connection;
    this.#connection = connection;
    this.#lock = new DrainLock(connection, clock);
    // The same by whatever name the file was opened.
    this.folder = dirname(realpathSync(connection.path));
    this.#runs = new Runs(database, this.folder);
    this.#keys = new KeyIndex(database);
    this.#imports = new Imports(database, this.#keys);
    this.#queue = new Queue(database);
    this.#ledger = new Ledger(database);
    this.#settlements = new Settlements(database, this.#ledger);
    this.#results = new Results(database);
    this.#tasks = new Tasks(database);
    this.#summary = new Summary(database);
    this.#sweep = new Sweep(database);
    this.#space = new Space(database);
    connection.onUndone = () => this.#keys.forget();
  }

  acquireDrainLock(owner: StoreOwner): Promise<void> {
    return this.#lock.acquire(owner);
  }

  noteStop(): Promise<void> {
    return this.#lock.noteStop();
  }

  readOwner(): Promise<StoreOwner | null> {
    return this.#lock.readOwner();
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

  async sweepDeletedRuns(limit: number): Promise<{ readonly isDone: boolean }> {
    // Remembered only once the page is committed.
    this.#sweepPass = await this.#connection.write(() => this.#sweep.page(this.#sweepPass, limit));
    return { isDone: this.#sweepPass === null };
  }

  async reclaimSpace(limitBytes: number): Promise<{ readonly reclaimedBytes: number }> {
    const reclaimedBytes = await this.#connection.patiently(() => this.#space.reclaim(limitBytes));
    if (reclaimedBytes === 0) await this.#connection.patiently(() => this.#space.cutLog());
    return { reclaimedBytes };
  }

  cancelRun(runId: number, nowMs: number): Promise<number> {
    return this.#connection.write(() => {
      this.#keys.settle(runId);
      this.#runs.cancel(runId, nowMs);
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

  async pairTasks(options: SharingOptions, limit: number): Promise<{ readonly isDone: boolean }> {
    const sharing = this.#shares;
    const { runId } = options;
    const at = this.#pairing?.runId === runId ? this.#pairing.at : PAIRING_START;
    const next = await this.#connection.write(() => sharing.pairPage(options, at, limit));
    // Remembered only once the page is committed.
    this.#pairing = next === null ? null : { runId, at: next };
    return { isDone: next === null };
  }

  settlePairs(runId: number, afterTaskId: number, limit: number, nowMs: number): Promise<SharedPage> {
    const sharing = this.#shares;
    return this.#connection.write(() =>
      sharing.settlePage(runId, afterTaskId, limit, storableInteger(nowMs)),
    );
  }

  claimTasks(options: ClaimOptions): Promise<readonly LeasedTask[]> {
    return this.#connection.write(() => this.#queue.claim(options));
  }

  nextDueAtMs(runId: number): Promise<number | null> {
    return this.#connection.read(() => this.#queue.nextDueAtMs(runId));
  }

  async record(started: readonly CallStart[], settlements: readonly Settlement[]): Promise<RecordedProgress> {
    if (started.length === 0 && settlements.length === 0) return { callIds: [], lostTaskIds: [] };
    return this.#connection.write(() => {
      this.#ledger.begin();
      const callIds = started.map((call) => this.#ledger.start(call));
      const lostTaskIds = settlements.flatMap((settlement) => this.#settlements.settle(settlement));
      this.#ledger.flush();
      return { callIds, lostTaskIds };
    });
  }

  extendLeases(
    taskIds: readonly number[],
    attemptTokens: readonly string[],
    untilMs: number,
  ): Promise<number> {
    return this.#connection.write(() => this.#queue.extend(taskIds, attemptTokens, untilMs));
  }

  rescueTasks(options: {
    readonly nowMs: number;
    readonly whose: 'everyone' | 'expired';
    readonly crashLimit: number;
  }): Promise<RescueReport> {
    const nowMs = storableInteger(options.nowMs);
    const everyone = options.whose === 'everyone';
    return this.#connection.write(() => {
      this.#ledger.begin();
      const beforeMs = everyone ? Number.POSITIVE_INFINITY : nowMs;
      const isCrash = !(everyone && this.#lock.takeStopNote());
      const report = this.#settlements.rescue(nowMs, beforeMs, options.crashLimit, isCrash);
      // Calls of tasks that had already left their worker's hands when it died.
      const others = new Set(everyone ? this.#ledger.openTasks().map(({ callId }) => callId) : []);
      this.#ledger.lose(others, nowMs);
      this.#ledger.flush();
      const lostCalls = report.lostCallIds.size + others.size;
      return { rescued: report.rescued, lostCalls, poisoned: report.poisoned };
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

  recount(): Promise<readonly CountDifference[]> {
    return this.#connection.read(() => new Recount(this.#connection.database).differences());
  }

  examine(): Promise<StoreCondition> {
    return this.#connection.read(() => examineDatabase(this.#connection));
  }

  readRecentCalls(sinceMs: number): Promise<readonly RecentCall[]> {
    return this.#connection.read(() => this.#ledger.recent(sinceMs));
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
