/** A call: one HTTP request, as the ledger knows it. */
import type { FailureKind } from './failure.js';
import type { TokenUsage } from './usage.js';

/** Written before the request leaves, so that a call that may have been billed is always in the ledger. */
export interface CallStart {
  readonly runId: number;
  readonly taskId: number;
  readonly attemptToken: string;
  readonly lane: string;
  readonly startedAtMs: number;
  readonly reservedTokens: number;
  /** The most that it can be billed. */
  readonly mostTokens: number;
  /** Null where no price is known. */
  readonly mostCostMicroUsd: number | null;
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
}

/** A call inside the limiter's window, to seed it after a restart. */
export interface RecentCall {
  readonly startedAtMs: number;
  readonly lane: string;
  /** Used tokens where known, else reserved. */
  readonly tokens: number;
}
