/** What a run has done so far, counted. */
import type { FailureKind } from './failure.js';
import type { TaskCounts } from './task.js';
import type { TokenUsage } from './usage.js';

/** What one lane has done for a run. */
export interface LaneSummary {
  readonly lane: string;
  readonly calls: number;
  /** Those refused by throttling among them. */
  readonly failed: number;
  readonly throttled: number;
  readonly usage: TokenUsage;
  /** Sum of known costs. */
  readonly costMicroUsd: number;
}

/** What one run has done so far; everything `status` shows. */
export interface RunSummary {
  readonly counts: TaskCounts;
  /** Tasks whose document is no longer in the input; not part of `counts`. */
  readonly gone: number;
  readonly calls: {
    readonly made: number;
    readonly open: number;
    readonly failed: number;
    /** Calls cut off by a crash, or of a worker that was not heard of for too long; made again afterwards. */
    readonly repeated: number;
    /** Of those, the ones that were answered after all: too late, their answers are not kept. */
    readonly late: number;
  };
  readonly usage: TokenUsage;
  /** Sum of known costs; whole micro-dollars as far as the costs recorded were. */
  readonly costMicroUsd: number;
  /** Calls that used tokens and have no known cost. */
  readonly callsWithoutCost: number;
  /**
   * Calls that may have been billed without our knowing (see `doubtOf`): those that were cut off, those whose answers
   * do not say what they used, and the most that both can be; the cost has besides what those can have been billed that
   * have no known cost.
   */
  readonly inDoubt: {
    readonly calls: number;
    readonly withoutUsage: number;
    readonly tokens: number;
    readonly costMicroUsd: number;
  };
  /** Completed documents that took the answer to an equal request, and those that wait for it, which are ready. */
  readonly shared: {
    readonly withinRun: number;
    readonly fromEarlierRuns: number;
    readonly waiting: number;
  };
  /** Lanes that have made calls, by name. */
  readonly lanes: readonly LaneSummary[];
  readonly failedByKind: Readonly<Partial<Record<FailureKind, number>>>;
  /** Of calls that ended with an answer; null when there was none. */
  readonly latencyMs: {
    readonly mean: number;
    readonly p50: number;
    readonly p95: number;
    readonly p99: number;
  } | null;
  /** When the first call started. */
  readonly firstCallAtMs: number | null;
  /** When a call last started or ended. */
  readonly lastCallAtMs: number | null;
}
