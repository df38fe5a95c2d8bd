/** Sums and counters of a run as they are stored, whatever the backend, and what they are to the rest of the program. */
import type { FailureKind } from '../core/failure.js';
import type { SharedFrom } from '../core/outcome.js';
import type { LaneSummary, RunSummary } from '../core/run-summary.js';
import { TASK_STATES, type TaskState } from '../core/task.js';
import type { LANE_SUMS, RUN_SUMS } from './call-sums.js';
import { type LatencyBucket, latencyQuantileMs } from './latency-buckets.js';

export type RunSumsRow = Record<(typeof RUN_SUMS)[number], number> & {
  readonly first_call_at_ms: number | null;
  readonly last_call_at_ms: number | null;
};

export type LaneSumsRow = Record<(typeof LANE_SUMS)[number], number> & { readonly lane: string };

export interface CountRow {
  readonly state: TaskState | 'gone';
  readonly kind: FailureKind | SharedFrom | '';
  readonly tasks: number;
}

/**
 * @param laneRows by name
 * @param counts none that is 0
 * @param latencies by ascending number
 */
export function toRunSummary(
  totals: RunSumsRow,
  laneRows: readonly LaneSumsRow[],
  counts: readonly CountRow[],
  latencies: readonly LatencyBucket[],
): RunSummary {
  const lanes = laneRows.map(toLane);
  const sumOf = (figureOf: (lane: LaneSummary) => number): number =>
    lanes.reduce((total, lane) => total + figureOf(lane), 0);
  const made = sumOf(({ calls }) => calls);
  return {
    ...countsOf(counts),
    calls: {
      made,
      open: made - totals.calls_ended,
      failed: sumOf(({ failed }) => failed),
      repeated: totals.calls_lost,
      late: totals.calls_late,
    },
    usage: {
      inputTokens: sumOf(({ usage }) => usage.inputTokens),
      outputTokens: sumOf(({ usage }) => usage.outputTokens),
      cachedTokens: sumOf(({ usage }) => usage.cachedTokens),
      reasoningTokens: sumOf(({ usage }) => usage.reasoningTokens),
    },
    costMicroUsd: sumOf(({ costMicroUsd }) => costMicroUsd),
    callsWithoutCost: totals.calls_without_cost,
    inDoubt: {
      calls: totals.calls_in_doubt,
      withoutUsage: totals.calls_without_usage,
      tokens: totals.tokens_in_doubt,
      costMicroUsd: totals.cost_in_doubt_micro_usd,
    },
    lanes,
    latencyMs: latencyOf(totals, latencies),
    firstCallAtMs: totals.first_call_at_ms,
    lastCallAtMs: totals.last_call_at_ms,
  };
}

function countsOf(
  rows: readonly CountRow[],
): Pick<RunSummary, 'counts' | 'gone' | 'failedByKind' | 'shared'> {
  const counts = Object.fromEntries(TASK_STATES.map((state) => [state, 0])) as Record<TaskState, number>;
  const failedByKind: Partial<Record<FailureKind, number>> = {};
  const shared = { withinRun: 0, fromEarlierRuns: 0, waiting: 0 };
  let gone = 0;
  for (const { state, kind, tasks } of rows) {
    if (state === 'gone') gone = tasks;
    else counts[state] += tasks;
    if (kind !== 'run' && kind !== 'earlier_run') {
      if (kind !== '') failedByKind[kind] = tasks;
    } else if (state === 'ready') shared.waiting += tasks;
    else if (kind === 'run') shared.withinRun += tasks;
    else shared.fromEarlierRuns += tasks;
  }
  return { counts, gone, failedByKind, shared };
}

function latencyOf(totals: RunSumsRow, latencies: readonly LatencyBucket[]): RunSummary['latencyMs'] {
  if (totals.calls_answered === 0) return null;
  const quantile = (share: number): number => latencyQuantileMs(latencies, share) ?? 0;
  return {
    mean: totals.latency_sum_ms / totals.calls_answered,
    p50: quantile(0.5),
    p95: quantile(0.95),
    p99: quantile(0.99),
  };
}

function toLane(row: LaneSumsRow): LaneSummary {
  return {
    lane: row.lane,
    calls: row.calls_made,
    failed: row.calls_failed,
    throttled: row.calls_throttled,
    usage: {
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
      cachedTokens: row.cached_tokens,
      reasoningTokens: row.reasoning_tokens,
    },
    costMicroUsd: row.cost_micro_usd,
  };
}
