/** A run over time, and how long its answers took. */

/** What happened within one stretch of a run's time. */
export interface TimelineBucket {
  readonly fromMs: number;
  /** Calls that ended in it with an answer. */
  readonly answered: number;
  /** Calls that ended in it with a failure, those refused by throttling among them. */
  readonly failed: number;
  readonly throttled: number;
  /** Of the calls that ended in it. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costMicroUsd: number;
  /** The most calls that any 60 seconds that end in it have seen start; never more than there were. */
  readonly peakRequestsPerMinute: number;
  /** Of those calls: what they used where that is known, else what was reserved for them. */
  readonly peakTokensPerMinute: number;
}

/**
 * A run over time: buckets of equal length, one after the other, the empty ones too. Pauses in which nobody drained
 * it, ten minutes and more, are left out.
 */
export interface RunTimeline {
  readonly bucketMs: number;
  readonly buckets: readonly TimelineBucket[];
}

/** How many answers took between two times. */
export interface LatencyCount {
  readonly overMs: number;
  readonly upToMs: number;
  readonly calls: number;
}
