/**
 * What happens to a run, as it happens: the one stream that the display, the structured log and whatever else watches
 * a run subscribe to. Events carry facts; the words for people are made by whoever shows them.
 */
import type { CallEnd } from './call.js';
import type { ProviderFailure } from './failure.js';
import type { LearntLimits } from './limits.js';
import type { ProgressSnapshot } from './progress-snapshot.js';
import type { Remark } from './remark.js';
import type { TaskRow } from './result-row.js';
import type { RunRecord } from './run.js';
import type { RunSummary } from './run-summary.js';
import type { LeasedTask } from './task.js';

/** Takes each event at once; must not throw, and is not waited for. */
export type TellEvent = (event: RunEvent) => void;

/** A limit that the user set on spending or on failures. */
export type ReachedLimit = 'cost' | 'tokens' | 'failures';

/** How a drain ended. */
export type DrainEnding =
  | { readonly reason: 'drained' }
  | { readonly reason: 'stopped' }
  /** The documents that were chosen are done, others are left. */
  | { readonly reason: 'tried' }
  /** Batches go on at the provider, as the user wanted. */
  | { readonly reason: 'left' }
  | { readonly reason: 'limit_reached'; readonly limit: ReachedLimit }
  | { readonly reason: 'halted'; readonly failure: ProviderFailure; readonly lane: string };

/** Some documents of a run to be tried first. */
export interface Choice {
  /** The first ones, or some from all over the input. */
  readonly by: 'limit' | 'sample';
  readonly count: number;
}

export interface ImportCounts {
  readonly documents: number;
  readonly badLines: number;
  /** Documents whose content or id occurred before in the same input. */
  readonly duplicates: number;
}

/** How an input compares with the run as it is. */
export interface ImportPlan extends ImportCounts {
  readonly unchanged: number;
  readonly changedOpen: number;
  /** Changed documents that already have an answer. */
  readonly changedFinished: number;
  /** Documents that ask again what was answered at some time: they take that answer, and nothing is paid. */
  readonly answeredBefore: number;
  readonly added: number;
  readonly gone: number;
}

/** Calls in a row that all ended in one way, which is why the run stops. */
export interface FailedCalls {
  readonly calls: number;
  /** Of the last one's document. */
  readonly line: number;
  readonly key: string;
}

/** Paths of the files that were written; null for what was not. */
export interface WrittenPaths {
  readonly resultsPath: string | null;
  readonly errorsPath: string | null;
}

/** A document that a call asks for. */
export type CalledTask = Pick<LeasedTask, 'taskId' | 'line' | 'key' | 'traceparent' | 'submittedAtMs'>;

interface OfLane {
  readonly lane: string;
}

/** A batch at a provider, by its number within the run. */
interface OfShard extends OfLane {
  readonly shard: number;
}

export type RunEvent =
  | { readonly type: 'import_started' }
  /** An input was opened: `totalBytes` null where nobody knows. */
  | { readonly type: 'input_opened'; readonly totalBytes: number | null }
  | { readonly type: 'importing'; readonly documents: number; readonly bytesRead: number }
  | { readonly type: 'import_ended' }
  /** The lines that cannot become documents: how many, and the first of them. `input` is a path or `-`. */
  | {
      readonly type: 'bad_lines';
      readonly input: string;
      readonly count: number;
      readonly first: readonly { readonly line: number; readonly reason: string; readonly place?: string }[];
    }
  /** They were set aside. */
  | { readonly type: 'rejects_written'; readonly path: string }
  | ({ readonly type: 'imported'; readonly run: string } & ImportCounts)
  | ({ readonly type: 'planned'; readonly run: string } & ImportPlan)
  /** Ctrl-C before the first call. */
  | { readonly type: 'import_interrupted'; readonly input: string }
  /** Before the first call: what is sent, to which model, where. */
  | { readonly type: 'sending'; readonly message: string; readonly model: string; readonly endpoint: string }
  | { readonly type: 'warning'; readonly message: string }
  /** What is of so many documents, with the first of them. */
  | (Remark & { readonly type: 'remark'; readonly count: number })
  /** Documents that a crash had left in progress. */
  | {
      readonly type: 'rescued';
      readonly rescued: number;
      readonly lostCalls: number;
      readonly poisoned: number;
    }
  /** Before the first call, where documents share answers. */
  | ({ readonly type: 'sharing' } & RunSummary['shared'])
  /** Calls are made from here on. `progress` says at any time how far it is. */
  | { readonly type: 'started'; readonly run: string; readonly progress: () => ProgressSnapshot }
  | ({
      readonly type: 'call_started';
      readonly callId: number;
      readonly model: string;
      /** As traces call it, e.g. `chat`. */
      readonly operation: string;
      readonly tasks: readonly CalledTask[];
      /** In whose trace the whole run was handed in; null where it was not, or nobody traced it. */
      readonly runTraceparent: string | null;
    } & OfLane)
  /** Told as the answer comes, before it is committed. */
  | ({ readonly type: 'call_ended'; readonly tasks: readonly CalledTask[] } & CallEnd & OfLane)
  /** Nothing left for so long, for this one cause, while a call was ready to. */
  | { readonly type: 'waited'; readonly blockedBy: string; readonly waitMs: number }
  /** A call failed; its document is tried again or has failed for good. */
  | ({ readonly type: 'call_failed'; readonly line: number; readonly failure: ProviderFailure } & OfLane)
  /** Committed together, in the order of commits. */
  | {
      readonly type: 'tasks_settled';
      readonly completed: readonly number[];
      readonly failed: readonly number[];
      /** Have used an attempt, and wait for the next. */
      readonly retried: readonly number[];
      /** From their submission to now, of those that have ended and of which it is known. */
      readonly timesToAnswerMs: readonly number[];
    }
  /** Documents that took the answer, or the failure, of an equal one. */
  | { readonly type: 'answers_shared'; readonly taskIds: readonly number[]; readonly failed: number }
  /** Calls of a model have another number of documents from here on. */
  | { readonly type: 'groups_sized'; readonly model: string; readonly documents: number }
  /** A call for so many documents failed: they go again in halves. */
  | { readonly type: 'group_split'; readonly documents: number }
  | ({ readonly type: 'throttled'; readonly failure: ProviderFailure } & OfLane)
  /** Nothing that is sent over a lane is answered any more: it is paused, and asked now and then. */
  | ({ readonly type: 'lane_down'; readonly failure: ProviderFailure } & OfLane)
  | ({ readonly type: 'lane_up'; readonly downForMs: number } & OfLane)
  /** A lane's key or account fails, or its server is gone for too long; its work goes to the lanes that are left. */
  | ({ readonly type: 'lane_set_aside'; readonly failure: ProviderFailure } & OfLane)
  /** What a lane's server says of its limits; null where it says nothing. */
  | ({ readonly type: 'limit_learnt' } & LearntLimits & OfLane)
  | { readonly type: 'limit_reached'; readonly limit: ReachedLimit }
  /** Answers or failures of so many documents came too late: another worker had taken them over, or they were cancelled. */
  | { readonly type: 'leases_lost'; readonly documents: number }
  /** A worker cannot send a run from where it is, and goes on with the others. */
  | { readonly type: 'run_passed_over'; readonly run: string; readonly message: string }
  | ({ readonly type: 'remote_submitted'; readonly requests: number; readonly remoteId: string } & OfShard)
  /** The provider says something new of a batch; `state` is its word. */
  | ({
      readonly type: 'remote_polled';
      readonly state: string;
      readonly requests: number;
      readonly completed: number;
      readonly failed: number;
    } & OfShard)
  /** The provider takes no more now: the batch is handed in again later, and no document fails for it. */
  | ({ readonly type: 'remote_queue_full'; readonly message: string } & OfShard)
  /** `returned`: documents that were not run, or are tried again. */
  | ({
      readonly type: 'remote_settled';
      readonly state: string;
      readonly completed: number;
      readonly failed: number;
      readonly returned: number;
    } & OfShard)
  /** Not done in time: cancelled, so that what is left is sent directly. */
  | ({ readonly type: 'remote_overdue' } & OfShard)
  /** They go on at the provider while this program does not run. */
  | { readonly type: 'remote_left'; readonly batches: number; readonly documents: number }
  /** Background responses go on at servers while this program does not run. */
  | { readonly type: 'responses_left'; readonly responses: number }
  /** A background response whose answer is stored could not be removed at its server; told of the first. */
  | { readonly type: 'response_kept'; readonly failure: ProviderFailure }
  /** From here on one call at a time is made: one of so many documents may have brought the program down. */
  | { readonly type: 'suspects'; readonly left: number }
  /** This machine can open no connection now; the document goes back unharmed. */
  | ({ readonly type: 'machine_short'; readonly failure: ProviderFailure } & OfLane)
  | { readonly type: 'store_trouble'; readonly message: string }
  | { readonly type: 'store_recovered' }
  /** Outcomes that were paid for wait in a file for the next start. */
  | { readonly type: 'salvaged'; readonly outcomes: number; readonly path: string }
  | ({
      readonly type: 'halted';
      readonly failure: ProviderFailure;
      readonly series: FailedCalls | null;
    } & OfLane)
  /** The user has asked to stop, for the `count`th time. */
  | {
      readonly type: 'interrupted';
      readonly count: number;
      readonly openCalls: number;
      readonly graceMs: number;
    }
  /** No call is made any more, and none is open. */
  | { readonly type: 'calls_ended' }
  /** What the documents that were chosen came to. */
  | {
      readonly type: 'tried';
      readonly by: Choice['by'];
      readonly chosen: number;
      /** Of the whole run. */
      readonly documents: number;
      /** In input order; the first of them alone where they are many. */
      readonly answers: readonly TaskRow[];
      /** What the whole would cost if each document took what these took on average; null where that is not known. */
      readonly wholeCostMicroUsd: number | null;
      readonly simulated: boolean;
    }
  | { readonly type: 'written'; readonly run: string; readonly files: WrittenPaths }
  | {
      readonly type: 'ended';
      readonly run: RunRecord;
      /** What the run had done before. */
      readonly before: RunSummary;
      readonly summary: RunSummary;
      readonly end: DrainEnding;
      readonly files: WrittenPaths;
      /** Of this drain, not of the whole run. */
      readonly elapsedMs: number;
      /** What the calls were priced by; null where there was none. */
      readonly prices: { readonly source: string; readonly date: string | null } | null;
      /** The reader of the answers went away, for which the run was stopped. */
      readonly readerGone: boolean;
    };
