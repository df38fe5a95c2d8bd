/** What to do about a failed call. Pure: time and chance are arguments; the engine acts on the answer. */
import type { Random } from './clock.js';
import type { FailureKind, ProviderFailure } from './failure.js';

export interface RetryPolicy {
  /** Attempts a task may use in all, the first included. */
  readonly maxAttempts: number;
  /** How long one task may be sent back by throttling, in all, before it counts as failed. */
  readonly maxWaitMs: number;
}

export interface AttemptHistory {
  /** Attempts used before this one. */
  readonly attempts: number;
  /** Wall time at which throttling, or a server's trouble, first sent this task back, if it is being sent back. */
  readonly throttledSinceMs: number | null;
  /**
   * What the other calls of the lane say of a failure that a server or a network may cause; null where nothing of the
   * kind was asked, and each failure is an attempt.
   */
  readonly trouble: { readonly isCharged: boolean; readonly failures: number } | null;
}

export type RetryDecision =
  /** Uses an attempt; ready again after `delayMs`. */
  | { readonly action: 'retry'; readonly delayMs: number }
  /** Uses no attempt; ready again after `delayMs`. */
  | { readonly action: 'release'; readonly delayMs: number }
  | { readonly action: 'fail' }
  /** The whole run stops; the task goes back unharmed. */
  | { readonly action: 'halt' };

/** `bad_output` costs tokens at every try and seldom heals, so it gets fewer. */
const BAD_OUTPUT_ATTEMPTS = 3;
const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 60_000;
/** A gateway that is overloaded wants longer than a dropped connection. */
const FIRST_OVERLOAD_BACKOFF_MS = 2_000;
/** No server's word makes one task wait longer than this for its next try; the lane's pause is apart. */
const LONGEST_SERVER_WAIT_MS = 15 * 60_000;
/** No decision delays a task for longer. */
export const LONGEST_RETRY_DELAY_MS = Math.max(LONGEST_BACKOFF_MS, LONGEST_SERVER_WAIT_MS);

/** This machine's own shortage may be over in a moment, or last for hours: the longer it does, the seldomer it is tried. */
const FIRST_SHORTAGE_WAIT_MS = 1_000;
const LONGEST_SHORTAGE_WAIT_MS = 60_000;
const WAIT_PER_SHORTAGE = 0.25;

type Treatment = 'again' | 'again_few_times' | 'release' | 'fail' | 'halt';

const TREATMENTS: Readonly<Record<FailureKind, Treatment>> = {
  rate_limited: 'release',
  overloaded: 'again',
  network: 'again',
  timeout: 'again',
  bad_output: 'again_few_times',
  truncated: 'fail',
  content_filtered: 'fail',
  refused: 'fail',
  invalid_request: 'fail',
  too_large: 'fail',
  poison: 'fail',
  quota_exhausted: 'halt',
  auth: 'halt',
  not_found: 'halt',
};

/** True for what a server, a gateway or a network does instead of answering: it may be none of the document's doing. */
export function isTrouble(kind: FailureKind): boolean {
  return TREATMENTS[kind] === 'again';
}

/** True when a failure of this kind stops the run rather than the document. */
export function haltsRun(kind: FailureKind): boolean {
  return TREATMENTS[kind] === 'halt';
}

/**
 * Decides what becomes of a task whose call failed.
 * @param nowMs of the clock of `throttledSinceMs`, for the bound on throttling
 */
export function decideRetry(
  failure: ProviderFailure,
  history: AttemptHistory,
  policy: RetryPolicy,
  nowMs: number,
  random: Random,
): RetryDecision {
  const waitedMs = history.throttledSinceMs === null ? 0 : nowMs - history.throttledSinceMs;
  if (failure.shortOf !== undefined) {
    const delayMs = Math.max(FIRST_SHORTAGE_WAIT_MS, waitedMs * WAIT_PER_SHORTAGE);
    return release(Math.min(delayMs, LONGEST_SHORTAGE_WAIT_MS), waitedMs, policy);
  }
  switch (TREATMENTS[failure.kind]) {
    case 'halt':
      return { action: 'halt' };
    case 'fail':
      return { action: 'fail' };
    case 'release':
      return release(clampServerWait(failure.retryAfterMs ?? 0), waitedMs, policy);
    case 'again': {
      const { trouble, attempts } = history;
      const delayMs = delayAfter(failure, Math.max(attempts, (trouble?.failures ?? 0) - 1), random);
      if (trouble !== null && !trouble.isCharged) return release(delayMs, waitedMs, policy);
      return attempts + 1 >= policy.maxAttempts ? { action: 'fail' } : { action: 'retry', delayMs };
    }
    case 'again_few_times': {
      const { attempts } = history;
      if (attempts + 1 >= Math.min(BAD_OUTPUT_ATTEMPTS, policy.maxAttempts)) return { action: 'fail' };
      return { action: 'retry', delayMs: delayAfter(failure, attempts, random) };
    }
  }
}

function release(delayMs: number, waitedMs: number, { maxWaitMs }: RetryPolicy): RetryDecision {
  return waitedMs >= maxWaitMs ? { action: 'fail' } : { action: 'release', delayMs };
}

/** @param failuresBefore of the same document */
function delayAfter(failure: ProviderFailure, failuresBefore: number, random: Random): number {
  const firstMs = failure.kind === 'overloaded' ? FIRST_OVERLOAD_BACKOFF_MS : FIRST_BACKOFF_MS;
  const delayMs = backoffMs(failuresBefore, firstMs, random);
  return Math.max(delayMs, clampServerWait(failure.retryAfterMs ?? 0));
}

function clampServerWait(waitMs: number): number {
  return Number.isFinite(waitMs) ? Math.min(Math.max(0, waitMs), LONGEST_SERVER_WAIT_MS) : 0;
}

/**
 * Exponential back-off with full jitter (AWS Architecture Blog, "Exponential Backoff And Jitter"): uniform
 * between a small floor and `firstMs * 2^attempts`, so that tasks that failed together do not return together.
 */
export function backoffMs(attempts: number, firstMs: number, random: Random): number {
  const ceiling = Math.min(LONGEST_BACKOFF_MS, firstMs * 2 ** Math.min(attempts, 20));
  const floor = Math.min(50, ceiling);
  return floor + (ceiling - floor) * random();
}
