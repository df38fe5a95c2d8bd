/**
 * The port to durable state. Rules that make one interface fit synchronous SQLite and asynchronous servers:
 * every method is one whole transaction that needs nothing of the one before but what its caller passes, times are
 * durations that a backend takes by its own clock, and a method that resolved is durable (fsynced). SQL stays inside
 * the backends; only `open.ts` names one.
 */
import type { Backlog } from '../core/backlog.js';
import type { ResponseNotes } from '../core/batch-record.js';
import type { CallStart, RecentCall } from '../core/call.js';
import type { FailureKind } from '../core/failure.js';
import type { Settlement } from '../core/outcome.js';
import type { ResultFilter, ResultRow, TaskRow } from '../core/result-row.js';
import type { NewRun, RunChange, RunObservation, RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import type { LeasedTask, NewTask, TaskPlace } from '../core/task.js';
import type { LatencyCount, RunTimeline } from '../core/timeline.js';
import type { StoreMaintenance } from './maintenance.js';
import type { QuotaStore } from './quota-store.js';
import type { RemoteStore } from './remote-store.js';
import type { ServedStore } from './served-store.js';
import type { RowSource, RowTarget } from './stored-rows.js';

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
  /** How long the worker counts as alive, where it is new. */
  readonly leaseMs: number;
  /** None but these, and those whose answers they wait for; absent: all of the run. */
  readonly among?: readonly number[] | undefined;
  /** None of a lower priority: for this claim they are not ready. Absent: all. */
  readonly atLeastPriority?: number | undefined;
}

/** A run that has something for who asks for work. */
export interface RunWork {
  readonly runId: number;
  /** The highest that its next claim could give. */
  readonly priority: number;
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
  /** Ids of `started`, in their order; null for a call that is not to be made, since a task of it is not ours any more. */
  readonly callIds: readonly (number | null)[];
  /** Numbers of the responses that were taken, in their order; null for one whose task is not ours any more. */
  readonly responseIds: readonly (number | null)[];
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

/** Who drains this store now. */
export interface StoreOwner {
  readonly pid: number;
  readonly host: string;
  /** Null: all runs, whichever have work. */
  readonly runName: string | null;
  readonly sinceMs: number;
}

export interface Store {
  /**
   * Where the store lies, absolute; null where it lies in no folder. Paths inside it are kept relative to it, those of a
   * run by the store, those in a run's settings by whoever writes these.
   */
  readonly folder: string | null;
  /** Where the user works: where that folder is a part of it, paths in it are kept like those inside. */
  readonly workingFolder?: string | undefined;

  /** What this backend can and cannot do; code branches on these, never on a backend's name. */
  readonly capabilities: {
    /** Several processes may drain the store at once. */
    readonly sharedDrain: boolean;
    /** Room that nothing needs any more goes back to the file system; otherwise it is kept for other rows. */
    readonly givesRoomBack: boolean;
  };

  readonly maintenance: StoreMaintenance;
  readonly remote: RemoteStore;
  /** What processes that drain it side by side share of the limits of their keys; null: there is only one. */
  readonly quotas: QuotaStore | null;
  readonly served: ServedStore;
  /** What runs are copied to another store by; null where they cannot be. */
  readonly rowSource: RowSource | null;
  readonly rowTarget: RowTarget | null;

  /**
   * Says that this process drains or changes a run, in place of what it has said before; over with `close`, and with the
   * process, however it dies. Where a store is not shared it becomes the one process that does, so that every worker before
   * it is dead. Where it is, it keeps nobody out but those that would delete the run or import it anew.
   * @throws LlmBatchError STORE_LOCKED (exit 5) naming the owner
   */
  acquireDrainLock(owner: StoreOwner): Promise<void>;

  /**
   * Notes that a worker has been asked to end. Where it is killed before it has (a container's host waits ten seconds),
   * that is no evidence against a document.
   */
  noteStop(workerId: string): Promise<void>;

  /** @throws LlmBatchError RUN_NAME_TAKEN when the name exists */
  createRun(run: NewRun): Promise<RunRecord>;
  /** Newest first. */
  listRuns(): Promise<readonly RunRecord[]>;
  /**
   * A run that was cancelled stays so, whatever status the change names.
   * @throws LlmBatchError RUN_MISSING, as every method that names a run that is not there and writes to it
   */
  updateRun(runId: number, change: RunChange): Promise<RunRecord>;
  /** Takes the place of what was noted of the same kind and subject, and of nothing else. */
  noteObservations(runId: number, observations: readonly RunObservation[]): Promise<void>;
  /**
   * The run is gone for everyone, its name and its idempotency key are free; its number is not given again. What it had
   * is removed by `maintenance.sweepDeletedRuns`, whether at once or after a crash.
   * @throws LlmBatchError STORE_LOCKED when another process drains or imports this very run
   */
  deleteRun(runId: number): Promise<void>;
  /**
   * Ends a run for good: every task that is not settled becomes cancelled, and so does the run. What is settled
   * stays and can be read; batches at a provider are given up. Call with the drain lock held.
   * @returns how many tasks were cancelled
   */
  cancelRun(runId: number): Promise<number>;

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
   * Pairs open tasks with the tasks whose answers they are to take, a page at a time, and only while nobody drains the
   * run. What was paired before and waits is paired anew. With `dedupe` all but one of equal requests wait for that
   * one, the first of the highest priority, unless there is an answer already.
   * @param cursor what the page before returned; null for the first, also after a crash
   * @param limit about how many tasks to look at
   * @returns where to go on; null when all are paired
   */
  pairTasks(options: SharingOptions, cursor: string | null, limit: number): Promise<string | null>;
  /** Gives tasks that wait their answers, or failures, as far as these are there; a page, in the order of the tasks. */
  settlePairs(runId: number, afterTaskId: number, limit: number): Promise<SharedPage>;

  /**
   * By priority, higher first, then input order; due delayed tasks are promoted first. A suspect (see
   * `SUSPECT_AFTER_CRASHES`) comes when nothing else is ready, alone, and only to a worker that has no other task in
   * progress, of whichever run; while it is in progress a claim is empty. Among suspects those that crashed the least when they were
   * alone come first. A claim ends where the worker would hold more than `MOST_CRASHED_TOGETHER`.
   */
  claimTasks(options: ClaimOptions): Promise<readonly LeasedTask[]>;
  /**
   * Runs with tasks that can be claimed now, ready or due, in no order; none that is being imported or was cancelled. Asked
   * before each claim of a worker that has several runs, so that it is as cheap as a look into an index for each.
   */
  listWork(): Promise<readonly RunWork[]>;
  /** Open tasks of every run; reads what there is of them in an index, so that it is for whoever looks every few seconds. */
  readBacklog(): Promise<Backlog>;
  /**
   * How long until the next delayed task is due, 0 when it is; null when none is delayed.
   * @param among as for `claimTasks`
   */
  nextDueMs(runId: number, among?: readonly number[]): Promise<number | null>;
  /**
   * Calls about to be sent, what became of leased tasks, and calls whose task is from here on a response's: one commit
   * for all of it.
   */
  record(
    started: readonly CallStart[],
    settlements: readonly Settlement[],
    responses?: ResponseNotes,
  ): Promise<RecordedProgress>;
  /**
   * Says that a worker is alive for `leaseMs` more, and with it all its tasks are leased. One that was given up is known
   * again from here on; what it had is not its own any more.
   */
  beat(workerId: string, leaseMs: number): Promise<void>;
  /**
   * Puts the tasks of dead workers back and ends their open calls as lost: of those whose lease has ended, or of `workers`,
   * whose death somebody has seen. A crash counts for tasks whose calls were open, and not where `noteStop` tells that
   * the worker had been asked to end; one that was its worker's only task in progress at `crashLimit` of them is parked
   * as failed.
   */
  rescueTasks(options: {
    readonly crashLimit: number;
    readonly workers?: readonly string[];
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
  /** Calls of every run that started within the last `withinMs`, oldest first. */
  readRecentCalls(withinMs: number): Promise<readonly RecentCall[]>;
  /** @param runName who drains or changes this run, or all runs; default: whoever it is */
  readOwner(runName?: string): Promise<StoreOwner | null>;

  close(): Promise<void>;
}
