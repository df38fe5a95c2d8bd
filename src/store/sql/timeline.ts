/** How a run went over time, from its ledger: one pass by the start of its calls and one by their end. */
import type { LatencyCount, RunTimeline } from '../../core/timeline.js';
import { latencyBucketEdgesMs } from '../latency-buckets.js';
import { runMissing } from '../run-errors.js';
import { type EndedStep, type StartedStep, timelineOf, timelineScale } from '../timeline-buckets.js';
import { runExists } from './runs.js';
import { all, one, type Steps } from './steps.js';
import { latencyBuckets } from './summary.js';

/** Of the run, between its first and its last call: the terms of an index. */
const CALLS = `calls INDEXED BY calls_started
  WHERE run_id = $1 AND started_at_ms BETWEEN $2 AND $3 AND remote_batch_id IS NULL`;
/** A call that was lost and of which nothing came later has no latency: it is no answer and no refusal. */
const ENDED = `${CALLS} AND latency_ms IS NOT NULL`;

/** @throws LlmBatchError RUN_MISSING */
export function* timelineOfRun(runId: number, mostBuckets: number): Steps<RunTimeline | null> {
  if (!(yield* runExists(runId))) throw runMissing(runId);
  const span = yield* one<{ firstMs: number | null; lastMs: number | null }>(
    `SELECT min(first_call_at_ms) AS "firstMs", max(last_call_at_ms) AS "lastMs" FROM run_totals WHERE run_id = $1`,
    runId,
  );
  if (span === undefined || span.firstMs === null || span.lastMs === null) return null;
  const ofRun = [runId, span.firstMs, span.lastMs] as const;
  const minutes = yield* all<{ minute: number }>(
    `SELECT started_at_ms / 60000 AS minute FROM ${CALLS}
     UNION SELECT finished_at_ms / 60000 FROM ${ENDED} ORDER BY minute`,
    ...ofRun,
  );
  const scale = timelineScale(
    span.firstMs,
    span.lastMs,
    minutes.map(({ minute }) => minute),
    mostBuckets,
  );
  // SQLite is given numbers as fractions: without the cast each millisecond would be a step of its own.
  const started = yield* all<StartedStep>(
    `SELECT started_at_ms / CAST($4 AS bigint) AS step, count(*) AS calls,
       sum(coalesce(input_tokens + output_tokens, reserved_tokens)) AS tokens
     FROM ${CALLS} GROUP BY 1`,
    ...ofRun,
    scale.stepMs,
  );
  const ended = yield* all<EndedStep>(
    `SELECT finished_at_ms / CAST($4 AS bigint) AS step,
       count(*) FILTER (WHERE kind IS NULL) AS answered,
       count(*) FILTER (WHERE kind <> 'aborted') AS failed,
       count(*) FILTER (WHERE kind = 'rate_limited') AS throttled,
       coalesce(sum(input_tokens), 0) AS "inputTokens",
       coalesce(sum(output_tokens), 0) AS "outputTokens",
       coalesce(sum(cost_micro_usd), 0) AS "costMicroUsd"
     FROM ${ENDED} GROUP BY 1`,
    ...ofRun,
    scale.stepMs,
  );
  return timelineOf(scale, started, ended);
}

/** @throws LlmBatchError RUN_MISSING */
export function* latenciesOfRun(runId: number): Steps<LatencyCount[]> {
  if (!(yield* runExists(runId))) throw runMissing(runId);
  const buckets = yield* latencyBuckets(runId);
  return buckets.map(({ bucket, calls }) => ({ ...latencyBucketEdgesMs(bucket), calls }));
}
