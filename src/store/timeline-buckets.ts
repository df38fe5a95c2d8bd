/** How the time of a run is cut into the buckets of a timeline; the same for every backend. */
import type { RunTimeline, TimelineBucket } from './store.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Lengths that people read at ease; every one is a whole number of the steps that `timelineScale` gives with it. */
const BUCKET_LENGTHS_MS = [
  ...[100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12, 24].map((hours) => hours * HOUR_MS),
];

export interface TimelineScale {
  /** When the first bucket begins: a multiple of `bucketMs`. */
  readonly fromMs: number;
  readonly bucketMs: number;
  /** How many buckets reach from the first moment to the last. */
  readonly buckets: number;
  /** What calls are counted by: divides `bucketMs` and a minute. */
  readonly stepMs: number;
}

/** @param mostBuckets at least 1; only a run of many months is cut into longer buckets than a day to keep to it */
export function timelineScale(firstMs: number, lastMs: number, mostBuckets: number): TimelineScale {
  const spanOf = (bucketMs: number): number =>
    Math.floor(lastMs / bucketMs) - Math.floor(firstMs / bucketMs) + 1;
  let bucketMs = BUCKET_LENGTHS_MS.find((lengthMs) => spanOf(lengthMs) <= mostBuckets) ?? 24 * HOUR_MS;
  while (spanOf(bucketMs) > Math.max(2, mostBuckets)) bucketMs *= 2;
  return {
    fromMs: Math.floor(firstMs / bucketMs) * bucketMs,
    bucketMs,
    buckets: spanOf(bucketMs),
    // As fine as the peaks need, and never so fine that a long run has millions of steps.
    stepMs: bucketMs < 1_000 ? 100 : bucketMs < HOUR_MS ? 1_000 : MINUTE_MS,
  };
}

/** Calls that started in one step. */
export interface StartedStep {
  /** Milliseconds since the epoch, divided by `stepMs` and rounded down. */
  readonly step: number;
  readonly calls: number;
  readonly tokens: number;
}

/** Calls that ended in one step. */
export interface EndedStep extends Omit<TimelineBucket, 'peakRequestsPerMinute' | 'peakTokensPerMinute'> {
  readonly step: number;
}

/** Steps outside the scale, which a clock that jumped can leave, count for the nearest bucket. */
export function timelineOf(
  scale: TimelineScale,
  started: Iterable<StartedStep>,
  ended: Iterable<EndedStep>,
): RunTimeline {
  const { fromMs, bucketMs, buckets: count, stepMs } = scale;
  const stepsPerBucket = bucketMs / stepMs;
  const firstStep = fromMs / stepMs;
  const lastIndex = count * stepsPerBucket - 1;
  const indexOf = (step: number): number => Math.min(lastIndex, Math.max(0, step - firstStep));

  const buckets = Array.from({ length: count }, () => ({
    answered: 0,
    failed: 0,
    throttled: 0,
    inputTokens: 0,
    outputTokens: 0,
    costMicroUsd: 0,
    peakRequestsPerMinute: 0,
    peakTokensPerMinute: 0,
  }));
  for (const { step, ...sums } of ended) {
    const bucket = buckets[Math.floor(indexOf(step) / stepsPerBucket)];
    if (bucket === undefined) continue;
    for (const name of Object.keys(sums) as (keyof typeof sums)[]) bucket[name] += sums[name];
  }

  const requests = new Float64Array(lastIndex + 1);
  const tokens = new Float64Array(lastIndex + 1);
  for (const { step, calls, tokens: used } of started) {
    const index = indexOf(step);
    requests[index] = (requests[index] ?? 0) + calls;
    tokens[index] = (tokens[index] ?? 0) + used;
  }
  const inWindow = MINUTE_MS / stepMs;
  let windowRequests = 0;
  let windowTokens = 0;
  for (let index = 0; index <= lastIndex; index += 1) {
    windowRequests += (requests[index] ?? 0) - (requests[index - inWindow] ?? 0);
    windowTokens += (tokens[index] ?? 0) - (tokens[index - inWindow] ?? 0);
    const bucket = buckets[Math.floor(index / stepsPerBucket)];
    if (bucket === undefined) continue;
    bucket.peakRequestsPerMinute = Math.max(bucket.peakRequestsPerMinute, windowRequests);
    bucket.peakTokensPerMinute = Math.max(bucket.peakTokensPerMinute, windowTokens);
  }
  return { fromMs, bucketMs, buckets };
}
