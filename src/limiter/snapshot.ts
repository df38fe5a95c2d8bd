import type { LearntLimits } from '../core/limits.js';
import type { Pause } from './throttle.js';

export interface LimiterSnapshot {
  /** Length of the window, its margin included. */
  readonly windowMs: number;
  /** Requests in the window, reserved ones included. */
  readonly requestsInWindow: number;
  readonly tokensInWindow: number;
  readonly requestsInDay: number;
  /** The limits in force, the lower of what was declared and what was learnt; null where none is known. */
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly requestsPerDay: number | null;
  readonly learnt: LearntLimits;
  /** What others use of the same quota now, as far as the server's counts show. */
  readonly othersRequests: number;
  readonly othersTokens: number;
  /** Whether the server counts the output cap in full; null until its figures have shown it. */
  readonly chargesOutputCap: boolean | null;
  /** The rate to which calls are spread because the server refused some within its limits; null: not spread. */
  readonly pace: {
    readonly requestsPerMinute: number | null;
    readonly tokensPerMinute: number | null;
  } | null;
  /**
   * Why the lane is silent, since when, and when the next call is tried (monotonic milliseconds; in the past while that call
   * is on its way); null when it is not silent.
   */
  readonly pause: Pause | null;
  /** Until the next call is tried; 0 without a pause. */
  readonly pausedForMs: number;
}
