import type { Pause } from './throttle.js';

/** What the server's headers said last; null: nothing yet. */
export interface LearntLimits {
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly requestsPerDay: number | null;
}

export interface LimiterSnapshot {
  /** Calls of the window as the limiter counts it, reserved ones included. */
  readonly requestsInWindow: number;
  readonly tokensInWindow: number;
  readonly requestsInDay: number;
  /** The limits in force, the lower of what was declared and what was learnt; null where none is known. */
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly requestsPerDay: number | null;
  readonly learnt: LearntLimits;
  /** What others, as far as the server's counts tell, use of the same quota now. */
  readonly othersRequests: number;
  readonly othersTokens: number;
  /** Whether the server counts the output cap in full; null until its figures told. */
  readonly chargesOutputCap: boolean | null;
  /** The rate at which calls are spread since the server refused some within its limits; null: not spread. */
  readonly pace: {
    readonly requestsPerMinute: number | null;
    readonly tokensPerMinute: number | null;
  } | null;
  /**
   * Why the lane is silent, since when, and when the next call is tried (monotonic milliseconds; past while that
   * call is on its way); null when it is not.
   */
  readonly pause: Pause | null;
  /** Until the next call is tried; 0 when there is no pause. */
  readonly pausedForMs: number;
}
