/**
 * Percentiles of any number of latencies from a few hundred counters: logarithmic buckets, as in DDSketch
 * (Masson, Rim, Lee: "DDSketch: A Fast and Fully-Mergeable Quantile Sketch", VLDB 2019).
 */

/** Any percentile is within this share of a latency that was measured. */
export const RELATIVE_ERROR = 0.015;
const GROWTH = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR);
const LOG_GROWTH = Math.log(GROWTH);
/** Shorter ones share the lowest bucket. */
const SHORTEST_MS = 0.01;
const LONGEST_MS = 1e9;

export interface LatencyBucket {
  readonly bucket: number;
  readonly calls: number;
}

/** The number of the bucket that counts `latencyMs`; whatever a clock gave, NaN included, has one. */
export function latencyBucket(latencyMs: number): number {
  const bounded = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, latencyMs || 0));
  return Math.ceil(Math.log(bounded) / LOG_GROWTH);
}

/**
 * The latency in milliseconds that `quantile` (0 to 1) of the calls did not exceed, by the nearest-rank method;
 * null when there are none.
 * @param buckets by ascending number
 */
export function latencyQuantileMs(buckets: readonly LatencyBucket[], quantile: number): number | null {
  const calls = buckets.reduce((sum, bucket) => sum + bucket.calls, 0);
  const rank = Math.max(1, Math.ceil(quantile * calls));
  let seen = 0;
  for (const bucket of buckets) {
    seen += bucket.calls;
    if (seen >= rank) return bucketMiddleMs(bucket.bucket);
  }
  return null;
}

/** As far, relatively, from the bucket's lower as from its upper edge. */
function bucketMiddleMs(bucket: number): number {
  return (2 * GROWTH ** bucket) / (GROWTH + 1);
}

/** The latencies that a bucket counts: above its lower edge, up to its upper one. */
export function latencyBucketEdgesMs(bucket: number): { readonly overMs: number; readonly upToMs: number } {
  return { overMs: GROWTH ** (bucket - 1), upToMs: GROWTH ** bucket };
}
