/** Everything `status` shows, from sums and counters: the cost does not grow with the run. */
import type { RunSummary } from '../../core/run-summary.js';
import { LANE_SUMS, RUN_SUMS } from '../call-sums.js';
import type { LatencyBucket } from '../latency-buckets.js';
import { runMissing } from '../run-errors.js';
import { type CountRow, type LaneSumsRow, type RunSumsRow, toRunSummary } from '../summary-rows.js';
import { all, one, type Steps } from './steps.js';

/** Sums may be kept in several rows, and for a run without calls in none. */
const ADDED_UP = (columns: readonly string[]): string =>
  columns.map((column) => `coalesce(sum(${column}), 0) AS ${column}`).join(', ');

/** @throws LlmBatchError RUN_MISSING */
export function* summarizeRun(runId: number): Steps<RunSummary> {
  const totals = yield* one<RunSumsRow>(
    `SELECT ${ADDED_UP(RUN_SUMS)}, min(first_call_at_ms) AS first_call_at_ms, max(last_call_at_ms) AS last_call_at_ms
     FROM runs LEFT JOIN run_totals ON run_id = id WHERE id = $1 AND deleted = 0 GROUP BY id`,
    runId,
  );
  if (totals === undefined) throw runMissing(runId);
  const lanes = yield* all<LaneSumsRow>(
    `SELECT lane, ${ADDED_UP(LANE_SUMS)} FROM lane_totals WHERE run_id = $1 GROUP BY lane ORDER BY lane COLLATE "C"`,
    runId,
  );
  const counts = yield* all<CountRow>(
    `SELECT state, kind, sum(tasks) AS tasks FROM task_counts WHERE run_id = $1
     GROUP BY state, kind HAVING sum(tasks) > 0`,
    runId,
  );
  return toRunSummary(totals, lanes, counts, yield* latencyBuckets(runId));
}

/** By ascending number. */
export function latencyBuckets(runId: number): Steps<LatencyBucket[]> {
  return all(
    'SELECT bucket, sum(calls) AS calls FROM latency_buckets WHERE run_id = $1 GROUP BY bucket ORDER BY bucket',
    runId,
  );
}
