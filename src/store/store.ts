/**
 * The port to durable state. Rules that make one interface fit synchronous SQLite and asynchronous servers:
 * every method is one whole transaction, no connection or cursor crosses the port, and a method that resolved
 * is durable (fsynced). SQL stays inside the backends; only `open.ts` names one.
 */
import type { CallStart, RecentCall } from '../core/call.js';
import type { FailureKind } from '../core/failure.js';
import type { Settlement } from '../core/outcome.js';
import type { ResultFilter, ResultRow, TaskRow } from '../core/result-row.js';
import type { NewRun, RunChange, RunObservation, RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import type { LeasedTask, NewTask, TaskPlace } from '../core/task.js';
import type { LatencyCount, RunTimeline } from '../core/timeline.js';

/** One step by which a store of an earlier version is brought up to date. */
export interface MigrationStep {
  readonly path: string;
  /** Of the store's file. */
  readonly bytes: number;
  /** The schema that the step leads to, and that of this program. */
  readonly version: number;
  readonly lastVersion: number;
}

/**
 * How an input document compares with the task that the run already has under its key. Finished means that it
 * has an answer: a changed document whose task failed is `changed_open`, since calling again loses no answer.
 * `answered_before`: its task has another request or no answer, but this very request was answered at some time.
 */
export type ImportMatch = 'new' | 'unchanged' | 'changed_open' | 'changed_finished' | 'answered_before';

/**
 * Who answers a run, as one text for all that makes answers to equal requests worth the same: the servers, the checks.
 * The store only compares it.
 */
export interface Answerers {
  /** Of the answers that are there; null where nobody can tell: those are kept when they are replaced, but never taken again. */
  readonly soFar: string | null;
  readonly fromNowOn: string;
}

export interface ImportTally {
  readonly added: number;
  readonly unchanged: number;
  /** Changed documents whose task has been put back to ready. */
  readonly replaced: number;
  /** Documents whose request was answered before: they have that answer again. */
  readonly answeredBefore: number;
  /** Changed documents whose finished answer was kept. */
  readonly kept: number;
}

export interface ReimportOptions {
  /** Changed documents that have an answer keep it, unless their request was answered before. */
  readonly keepFinished: boolean;
  readonly answerers: Answerers;
}

export interface ClaimOptions {
  readonly runId: number;
  readonly workerId: string;
  readonly limit: number;
  readonly leaseMs: number;
  readonly nowMs: number;
}

/** Which tasks of a run take the answer to an equal request, one with the same request hash, instead of a call. */
export interface SharingOptions {
  readonly runId: number;
  /** Those of the run itself. */
  readonly dedupe: boolean;
  /** Completed ones of these runs. */
  readonly reuseFrom: readonly number[];
}

export interface SharedPage {
  readonly settledTaskIds: readonly number[];
  /** How many of them took a failure. */
  readonly failed: number;
  /** The last task looked at, to go on after; null when there was none. */
  readonly lastTaskId: number | null;
}

export interface RecordedProgress {
  /** Ids of `started`, in their order. */
  readonly callIds: readonly number[];
  /** Tasks whose lease was no longer ours: nothing of their outcome but the call was kept. */
  readonly lostTaskIds: readonly number[];
}

export interface RescueReport {
  readonly rescued: number;
  /** Calls whose outcome nobody knows; they may have been billed and will be repeated. */
  readonly lostCalls: number;
  /** Parked as failed: the call of each was the only one open at too many crashes. */
  readonly poisoned: number;
}

export interface ResultPageOptions {
  readonly runId: number;
  readonly only: ResultFilter;
  /** Rows after this line, in input order; 0 for the first page. */
  readonly afterLine: number;
  readonly limit: number;
  readonly includeBody: boolean;
  /** The servers' bodies too; default false. */
  readonly includeResponse?: boolean;
  readonly kind?: FailureKind;
}

/** A count that is kept beside the rows it counts, and differs from them. */
export interface CountDifference {
  readonly runName: string;
  /** What is counted, e.g. `failed documents (refused)`. */
  readonly what: string;
  readonly kept: number;
  readonly recounted: number;
}

/** What a look at the store as a whole finds. */
export interface StoreCondition {
  readonly schemaVersion: number;
  /** Of the storage engine, e.g. `SQLite 3.53.2`. */
  readonly engine: string;
  /** What the engine's own check of the stored data complains of; empty when it is sound. */
  readonly damage: readonly string[];
  readonly dataBytes: number;
  /** Of the log that has not been brought into the data yet. */
  readonly logBytes: number;
  /** Room inside the store that could be given back to the file system. */
  readonly freeBytes: number;
  readonly openLeases: number;
  /** Runs that were deleted and still have rows. */
  readonly unsweptRuns: number;
}

/** Who drains this store now. */
export interface StoreOwner {
  readonly pid: number;
  readonly host: string;
  readonly runName: string;
  readonly sinceMs: number;
}

export interface Store {
  /**
   * Where the store lies, absolute; null where it lies in no folder. Paths inside it are kept relative to it, those of a
   * run by the store, those in a run's settings by whoever writes these.
   */
  readonly folder: string | null;

  /** What this backend can and cannot do; code branches on these, never on a backend's name. */
  readonly capabilities: {
    /** Several processes may drain the store at once. */
    readonly sharedDrain: boolean;
  };

  /**
   * Becomes the one process that drains this store; freed by `close` or by the kernel when the process dies.
   * @throws LlmBatchError STORE_LOCKED (exit 5) naming the owner
   */
  acquireDrainLock(owner: StoreOwner): Promise<void>;

  /**
   * Notes that the process that drains has been asked to end. Where it is killed before it has (a container's host
   * waits ten seconds), that is no evidence against a document; the next `rescueTasks` of everyone takes the note away.
   */
  noteStop(): Promise<void>;

  /** @throws LlmBatchError RUN_NAME_TAKEN when the name exists */
  createRun(run: NewRun): Promise<RunRecord>;
  /** Newest first. */
  listRuns(): Promise<readonly RunRecord[]>;
  /** @throws LlmBatchError RUN_MISSING, as every method that names a run that is not there and writes to it */
  updateRun(runId: number, change: RunChange): Promise<RunRecord>;
  /** Takes the place of what was noted of the same kind and subject, and of nothing else. */
  noteObservations(runId: number, observations: readonly RunObservation[]): Promise<void>;
  /**
   * The run is gone for everyone, and its name is free; its number is not given again. What it had is removed by
   * `sweepDeletedRuns`, whether at once or after a crash.
   * @throws LlmBatchError STORE_LOCKED when another process drains or imports this very run
   */
  deleteRun(runId: number): Promise<void>;
  /**
   * Removes what deleted runs left, a page at a time so that no transaction is long; call until `isDone`.
   * @param limit about how many rows to look at
   */
  sweepDeletedRuns(limit: number): Promise<{ readonly isDone: boolean }>;
  /**
   * Gives room that nothing needs any more back to the file system, a page at a time; call while `reclaimedBytes`
   * is not 0. The last call also cuts the log.
   */
  reclaimSpace(limitBytes: number): Promise<{ readonly reclaimedBytes: number }>;
  /**
   * Ends a run for good: every task that is not settled becomes cancelled, and so does the run. What is settled
   * stays and can be read. Call with the drain lock held.
   * @returns how many tasks were cancelled
   */
  cancelRun(runId: number, nowMs: number): Promise<number>;

  /** For a run that is still empty or went on importing: adds what is new, leaves what is there. */
  addTasks(runId: number, tasks: readonly NewTask[]): Promise<{ added: number; duplicates: number }>;
  /**
   * Compares input documents with the run's tasks by key and occurrence; changes nothing.
   * @param answeredBy whose earlier answers may be taken, see `Answerers`
   */
  matchTasks(
    runId: number,
    documents: readonly Pick<NewTask, 'key' | 'occurrence' | 'requestHash'>[],
    answeredBy: string,
  ): Promise<readonly ImportMatch[]>;
  /**
   * Brings the run's tasks in line with an edited input, page by page: adds new ones, moves unchanged ones to
   * their line, and replaces changed ones: they take the answer that their request had before, or go back to ready
   * unless `keepFinished`. The answer that is replaced is kept with the hash of its request until the run is deleted.
   * Tasks never named in a page between `beginReimport` and `finishReimport` are gone from the input: they
   * keep their answers but are neither drained nor exported until they come back. The run is `importing` from
   * begin to finish and `open` afterwards; after a crash in between, begin starts over. A kept answer keeps the
   * document and the request hash it was given for.
   */
  beginReimport(runId: number): Promise<void>;
  reimportTasks(runId: number, tasks: readonly NewTask[], options: ReimportOptions): Promise<ImportTally>;
  finishReimport(runId: number): Promise<{ gone: number }>;

  /**
   * Pairs open tasks with the tasks whose answers they are to take, a page at a time; call until `isDone`, and only
   * while nobody drains the run. What was paired before and waits is paired anew. With `dedupe` all but one of equal
   * requests wait for that one, the first of the highest priority, unless there is an answer already.
   * @param limit about how many tasks to look at
   */
  pairTasks(options: SharingOptions, limit: number): Promise<{ readonly isDone: boolean }>;
  /** Gives tasks that wait their answers, or failures, as far as these are there; a page, in the order of the tasks. */
  settlePairs(runId: number, afterTaskId: number, limit: number, nowMs: number): Promise<SharedPage>;

  /**
   * By priority, higher first, then input order; due delayed tasks are promoted first. A suspect (see
   * `SUSPECT_AFTER_CRASHES`) comes when nothing else is ready, alone, and only to a worker that has no other task in
   * progress; while it is in progress a claim is empty. Among suspects those that crashed the least when they were
   * alone come first. A claim ends where the worker would hold more than `MOST_CRASHED_TOGETHER`.
   */
  claimTasks(options: ClaimOptions): Promise<readonly LeasedTask[]>;
  /** Wall time at which the next delayed task is due, null when none is delayed. */
  nextDueAtMs(runId: number): Promise<number | null>;
  /** Calls about to be sent, and what became of leased tasks: one commit for all of it. */
  record(started: readonly CallStart[], settlements: readonly Settlement[]): Promise<RecordedProgress>;
  extendLeases(
    taskIds: readonly number[],
    attemptTokens: readonly string[],
    untilMs: number,
  ): Promise<number>;
  /**
   * Puts tasks of dead workers back. `everyone`: this process holds the drain lock, so every lease is dead;
   * `expired`: only leases that ended before `nowMs`. A crash counts for those whose calls were open, and not where
   * `noteStop` tells that the process had been asked to end; one that was its worker's only task in progress at
   * `crashLimit` of them is parked as failed.
   */
  rescueTasks(options: {
    readonly nowMs: number;
    readonly whose: 'everyone' | 'expired';
    readonly crashLimit: number;
  }): Promise<RescueReport>;

  /** Puts failed tasks back to ready with attempts and crashes at 0, and opens a finished run. @returns how many */
  retryTasks(runId: number, filter: { readonly kind?: FailureKind; readonly key?: string }): Promise<number>;

  /** One page, empty after the last; more than `limit` rows only where a line stands twice at its end. */
  readResults(options: ResultPageOptions): Promise<readonly ResultRow[]>;
  /**
   * A page of the tasks that are in the run's input, settled or not, in the order they were added, which an edited input
   * may have left; empty after the last.
   */
  listTasks(runId: number, afterTaskId: number, limit: number): Promise<readonly TaskPlace[]>;
  /**
   * In the order asked for, without those that are not in the run's input any more.
   * @param includeBody whether with their documents; default true
   */
  readTasks(runId: number, taskIds: readonly number[], includeBody?: boolean): Promise<readonly TaskRow[]>;
  summarizeRun(runId: number): Promise<RunSummary>;
  /**
   * Reads every call of the run: seconds for a million. Null before the first call.
   * @param mostBuckets the stretches are made so long that they are no more than this
   */
  readTimeline(runId: number, mostBuckets: number): Promise<RunTimeline | null>;
  /** Of calls that ended with an answer, ascending; times that no call took are left out. */
  readLatencies(runId: number): Promise<readonly LatencyCount[]>;
  /** Compares every count and sum that is kept with the rows themselves: reads the whole store. */
  recount(): Promise<readonly CountDifference[]>;
  /** Looks at the store as a whole, its data included. */
  examine(): Promise<StoreCondition>;
  /** Calls of every run started at or after `sinceMs`, oldest first. */
  readRecentCalls(sinceMs: number): Promise<readonly RecentCall[]>;
  readOwner(): Promise<StoreOwner | null>;

  close(): Promise<void>;
}
