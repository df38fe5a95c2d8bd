/** A call: one HTTP request for one task or more, as the ledger knows it. */
import type { FailureKind } from './failure.js';
import type { TokenUsage } from './usage.js';

/** A task's part in a call, as its worker leased it. */
export interface CallTask {
  readonly taskId: number;
  readonly attemptToken: string;
}

/** Written before the request leaves, so that a call that may have been billed is always in the ledger. */
export interface CallStart {
  readonly runId: number;
  readonly lane: string;
  readonly startedAtMs: number;
  readonly reservedTokens: number;
  /** The most that it can be billed. */
  readonly mostTokens: number;
  /** Null where no price is known. */
  readonly mostCostMicroUsd: number | null;
  /** At least one; direct sending has exactly one. */
  readonly tasks: readonly CallTask[];
}

/** How a call ended; the ledger's other half. */
export interface CallEnd {
  readonly callId: number;
  readonly finishedAtMs: number;
  readonly latencyMs: number;
  readonly httpStatus: number | null;
  /** Null for a good answer; `aborted` when our own shutdown cut it off. */
  readonly kind: FailureKind | 'aborted' | null;
  readonly usage: TokenUsage | null;
  /** Null where no price is known. */
  readonly costMicroUsd: number | null;
  readonly requestId: string | null;
  /** What the failure said; null for a good answer. */
  readonly message: string | null;
}

/** A call that was in the ledger and did not leave after all: there was none. */
export interface WithdrawnCall {
  readonly callId: number;
  readonly isWithdrawn: true;
}

/** One task's share of a call's bill; the shares of a call add up to it. */
export interface CallShare {
  readonly usage: TokenUsage | null;
  readonly costMicroUsd: number | null;
}

/** A call inside the limiter's window, to seed it after a restart. */
export interface RecentCall {
  /** How long ago it started, never less than 0. */
  readonly ageMs: number;
  readonly lane: string;
  /** Used tokens where known, else reserved. */
  readonly tokens: number;
}
