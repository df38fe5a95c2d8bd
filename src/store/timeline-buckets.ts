/** How the time of a run is cut into the buckets of a timeline; the same for every backend. */
import type { RunTimeline, TimelineBucket } from '../core/timeline.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Lengths that people read at ease; every one is a whole number of the steps that go with it. */
const BUCKET_LENGTHS_MS = [
  ...[100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12, 24].map((hours) => hours * HOUR_MS),
];

/** A run that nobody drained for longer than this had a pause, which a timeline leaves out. */
const SHORTEST_PAUSE_MINUTES = 10;

/** A stretch of time without a pause. */
interface Sitting {
  /** A multiple of the bucket's length. */
  readonly fromMs: number;
  readonly buckets: number;
}

export interface TimelineScale {
  readonly bucketMs: number;
  /** What calls are counted by: divides `bucketMs` and a minute. */
  readonly stepMs: number;
  /** One after the other, with time between them. */
  readonly sittings: readonly Sitting[];
}

/**
 * @param activeMinutes minutes since the epoch in which a call started or ended, ascending
 * @param mostBuckets at least 2, as a border may fall into any stretch
 */
export function timelineScale(
  firstMs: number,
  lastMs: number,
  activeMinutes: readonly number[],
  mostBuckets: number,
): TimelineScale {
  const spans = spansOf(firstMs, lastMs, activeMinutes);
  const scaleOf = (bucketMs: number): TimelineScale => ({
    bucketMs,
    sittings: sittingsOf(spans, bucketMs),
    // As fine as the peaks need, and never so fine that a long run has millions of steps.
    stepMs: bucketMs < 1_000 ? 100 : bucketMs < HOUR_MS ? 1_000 : MINUTE_MS,
  });
  const fits = ({ sittings }: TimelineScale): boolean =>
    sittings.reduce((sum, { buckets }) => sum + buckets, 0) <= mostBuckets;
  for (const lengthMs of BUCKET_LENGTHS_MS) {
    const scale = scaleOf(lengthMs);
    if (fits(scale)) return scale;
  }
  let scale = scaleOf(2 * DAY_MS);
  while (!fits(scale) && scale.bucketMs < lastMs) scale = scaleOf(2 * scale.bucketMs);
  return scale;
}

interface Span {
  readonly fromMs: number;
  /** Not part of it. */
  readonly toMs: number;
}

function spansOf(firstMs: number, lastMs: number, activeMinutes: readonly number[]): Span[] {
  const spans: Span[] = [];
  let fromMs = firstMs;
  activeMinutes.forEach((minute, index) => {
    const next = activeMinutes[index + 1];
    if (next === undefined || next - minute <= SHORTEST_PAUSE_MINUTES) return;
    // A minute longer, so that what was sent before the pause has left every window of 60 seconds.
    spans.push({ fromMs, toMs: (minute + 2) * MINUTE_MS });
    fromMs = next * MINUTE_MS;
  });
  return [...spans, { fromMs, toMs: lastMs + 1 }];
}

/** Whole buckets; a pause that has no bucket to itself is none. */
function sittingsOf(spans: readonly Span[], bucketMs: number): Sitting[] {
  const sittings: Sitting[] = [];
  for (const span of spans) {
    const before = sittings.at(-1);
    const alignedMs = Math.floor(span.fromMs / bucketMs) * bucketMs;
    const joins = before !== undefined && alignedMs <= before.fromMs + before.buckets * bucketMs;
    if (joins) sittings.pop();
    const fromMs = joins ? before.fromMs : alignedMs;
    sittings.push({ fromMs, buckets: Math.ceil((span.toMs - fromMs) / bucketMs) });
  }
  return sittings;
}

/** Calls that started in one step. */
export interface StartedStep {
  /** Milliseconds since the epoch, divided by `stepMs` and rounded down. */
  readonly step: number;
  readonly calls: number;
  readonly tokens: number;
}

/** Calls that ended in one step. */
export interface EndedStep
  extends Omit<TimelineBucket, 'fromMs' | 'peakRequestsPerMinute' | 'peakTokensPerMinute'> {
  readonly step: number;
}

/** Steps outside the scale, which a clock that jumped can leave, count for the nearest bucket before them. */
export function timelineOf(
  scale: TimelineScale,
  started: Iterable<StartedStep>,
  ended: Iterable<EndedStep>,
): RunTimeline {
  const { bucketMs, stepMs } = scale;
  const stepsPerBucket = bucketMs / stepMs;
  const buckets = scale.sittings.flatMap(({ fromMs, buckets: count }) =>
    Array.from({ length: count }, (_, index) => ({
      fromMs: fromMs + index * bucketMs,
      answered: 0,
      failed: 0,
      throttled: 0,
      inputTokens: 0,
      outputTokens: 0,
      costMicroUsd: 0,
      peakRequestsPerMinute: 0,
      peakTokensPerMinute: 0,
    })),
  );
  const indexOf = stepIndex(scale);
  for (const { step, ...sums } of ended) {
    const bucket = buckets[Math.floor(indexOf(step) / stepsPerBucket)];
    if (bucket === undefined) continue;
    for (const name of Object.keys(sums) as (keyof typeof sums)[]) bucket[name] += sums[name];
  }

  const steps = buckets.length * stepsPerBucket;
  const requests = new Float64Array(steps);
  const tokens = new Float64Array(steps);
  for (const { step, calls, tokens: used } of started) {
    const index = indexOf(step);
    requests[index] = (requests[index] ?? 0) + calls;
    tokens[index] = (tokens[index] ?? 0) + used;
  }
  const inWindow = MINUTE_MS / stepMs;
  let windowRequests = 0;
  let windowTokens = 0;
  for (let index = 0; index < steps; index += 1) {
    windowRequests += (requests[index] ?? 0) - (requests[index - inWindow] ?? 0);
    windowTokens += (tokens[index] ?? 0) - (tokens[index - inWindow] ?? 0);
    const bucket = buckets[Math.floor(index / stepsPerBucket)];
    if (bucket === undefined) continue;
    bucket.peakRequestsPerMinute = Math.max(bucket.peakRequestsPerMinute, windowRequests);
    bucket.peakTokensPerMinute = Math.max(bucket.peakTokensPerMinute, windowTokens);
  }
  return { bucketMs, buckets };
}

/** Where a step is among all steps of all sittings, pauses left out. */
function stepIndex({ bucketMs, stepMs, sittings }: TimelineScale): (step: number) => number {
  let before = 0;
  const places = sittings.map(({ fromMs, buckets }) => {
    const place = { firstStep: fromMs / stepMs, steps: (buckets * bucketMs) / stepMs, before };
    before += place.steps;
    return place;
  });
  return (step) => {
    const place = places.findLast(({ firstStep }) => firstStep <= step) ?? places[0];
    if (place === undefined) return 0;
    return place.before + Math.min(place.steps - 1, Math.max(0, step - place.firstStep));
  };
}
