/** How a run went over time, from its ledger: one pass by the start of its calls and one by their end. */
import type Database from 'better-sqlite3';
import type { LatencyCount, RunTimeline } from '../../core/timeline.js';
import { type LatencyBucket, latencyBucketEdgesMs } from '../latency-buckets.js';
import { runMissing } from '../run-errors.js';
import { type EndedStep, type StartedStep, timelineOf, timelineScale } from '../timeline-buckets.js';

interface SpanRow {
  firstMs: number | null;
  lastMs: number | null;
}

type StepsOfRun = [stepMs: number, firstMs: number, lastMs: number, runId: number];

export class Timeline {
  readonly #span;
  readonly #minutes;
  readonly #started;
  readonly #ended;
  readonly #latencies;

  constructor(database: Database.Database) {
    this.#span = database.prepare<[number], SpanRow>(
      `SELECT first_call_at_ms AS firstMs, last_call_at_ms AS lastMs
       FROM run_totals JOIN runs ON runs.id = run_id WHERE run_id = ? AND deleted = 0`,
    );
    this.#minutes = database
      .prepare<[number, number, number, number, number, number], number>(
        `SELECT started_at_ms / 60000 AS minute FROM calls INDEXED BY calls_started
         WHERE started_at_ms BETWEEN ? AND ? AND remote_batch_id IS NULL AND run_id = ?
         UNION SELECT finished_at_ms / 60000 FROM calls INDEXED BY calls_started
         WHERE started_at_ms BETWEEN ? AND ? AND remote_batch_id IS NULL AND run_id = ? AND latency_ms IS NOT NULL
         ORDER BY minute`,
      )
      .pluck();
    // Numbers are bound as REAL: without the cast a step would be a fraction of its own for every millisecond.
    this.#started = database.prepare<StepsOfRun, StartedStep>(
      `SELECT started_at_ms / CAST(? AS INTEGER) AS step, count(*) AS calls,
         sum(coalesce(input_tokens + output_tokens, reserved_tokens)) AS tokens
       FROM calls INDEXED BY calls_started
       WHERE started_at_ms BETWEEN ? AND ? AND remote_batch_id IS NULL AND run_id = ? GROUP BY step`,
    );
    // A call that was lost and of which nothing came later has no latency: it is no answer and no refusal.
    this.#ended = database.prepare<StepsOfRun, EndedStep>(
      `SELECT finished_at_ms / CAST(? AS INTEGER) AS step,
         sum(kind IS NULL) AS answered,
         sum(kind IS NOT NULL AND kind <> 'aborted') AS failed,
         sum(kind IS 'rate_limited') AS throttled,
         coalesce(sum(input_tokens), 0) AS inputTokens,
         coalesce(sum(output_tokens), 0) AS outputTokens,
         coalesce(sum(cost_micro_usd), 0) AS costMicroUsd
       FROM calls INDEXED BY calls_started
       WHERE started_at_ms BETWEEN ? AND ? AND remote_batch_id IS NULL AND run_id = ? AND latency_ms IS NOT NULL GROUP BY step`,
    );
    this.#latencies = database.prepare<[number], LatencyBucket>(
      'SELECT bucket, calls FROM latency_buckets WHERE run_id = ? ORDER BY bucket',
    );
  }

  of(runId: number, mostBuckets: number): RunTimeline | null {
    const { firstMs, lastMs } = this.#spanOf(runId);
    if (firstMs === null || lastMs === null) return null;
    const minutes = this.#minutes.all(firstMs, lastMs, runId, firstMs, lastMs, runId);
    const scale = timelineScale(firstMs, lastMs, minutes, mostBuckets);
    const steps: StepsOfRun = [scale.stepMs, firstMs, lastMs, runId];
    return timelineOf(scale, this.#started.iterate(...steps), this.#ended.iterate(...steps));
  }

  latenciesOf(runId: number): LatencyCount[] {
    this.#spanOf(runId);
    return this.#latencies
      .all(runId)
      .map(({ bucket, calls }) => ({ ...latencyBucketEdgesMs(bucket), calls }));
  }

  #spanOf(runId: number): SpanRow {
    const span = this.#span.get(runId);
    if (span === undefined) throw runMissing(runId);
    return span;
  }
}
