/** Everything `status` shows, from sums and counters: the cost does not grow with the run. */
import type Database from 'better-sqlite3';
import type { FailureKind } from '../../core/failure.js';
import type { SharedFrom } from '../../core/outcome.js';
import type { LaneSummary, RunSummary } from '../../core/run-summary.js';
import { TASK_STATES, type TaskState } from '../../core/task.js';
import { type LatencyBucket, latencyQuantileMs } from '../latency-buckets.js';
import { runMissing } from './runs.js';

interface TotalsRow {
  calls_ended: number;
  calls_lost: number;
  calls_answered: number;
  calls_without_cost: number;
  calls_in_doubt: number;
  calls_without_usage: number;
  tokens_in_doubt: number;
  cost_in_doubt_micro_usd: number;
  latency_sum_ms: number;
  first_call_at_ms: number | null;
  last_call_at_ms: number | null;
}

interface LaneRow {
  lane: string;
  calls_made: number;
  calls_failed: number;
  calls_throttled: number;
  cost_micro_usd: number;
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  reasoning_tokens: number;
}

interface CountRow {
  state: TaskState | 'gone';
  kind: FailureKind | SharedFrom | '';
  tasks: number;
}

export class Summary {
  readonly #totals;
  readonly #lanes;
  readonly #counts;
  readonly #latencies;

  constructor(database: Database.Database) {
    this.#totals = database.prepare<[number], TotalsRow>(
      `SELECT run_totals.* FROM run_totals JOIN runs ON runs.id = run_id WHERE run_id = ? AND deleted = 0`,
    );
    this.#lanes = database.prepare<[number], LaneRow>(
      'SELECT * FROM lane_totals WHERE run_id = ? ORDER BY lane',
    );
    this.#counts = database.prepare<[number], CountRow>(
      'SELECT state, kind, tasks FROM task_counts WHERE run_id = ? AND tasks > 0',
    );
    this.#latencies = database.prepare<[number], LatencyBucket>(
      'SELECT bucket, calls FROM latency_buckets WHERE run_id = ? ORDER BY bucket',
    );
  }

  of(runId: number): RunSummary {
    const totals = this.#totals.get(runId);
    if (totals === undefined) throw runMissing(runId);
    const lanes = this.#lanes.all(runId).map(toLane);
    const sumOf = (figureOf: (lane: LaneSummary) => number): number =>
      lanes.reduce((total, lane) => total + figureOf(lane), 0);
    const made = sumOf(({ calls }) => calls);
    return {
      ...this.#countsOf(runId),
      calls: {
        made,
        open: made - totals.calls_ended,
        failed: sumOf(({ failed }) => failed),
        repeated: totals.calls_lost,
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
      latencyMs: this.#latencyOf(runId, totals),
      firstCallAtMs: totals.first_call_at_ms,
      lastCallAtMs: totals.last_call_at_ms,
    };
  }

  #countsOf(runId: number): Pick<RunSummary, 'counts' | 'gone' | 'failedByKind' | 'shared'> {
    const counts = Object.fromEntries(TASK_STATES.map((state) => [state, 0])) as Record<TaskState, number>;
    const failedByKind: Partial<Record<FailureKind, number>> = {};
    const shared = { withinRun: 0, fromEarlierRuns: 0, waiting: 0 };
    let gone = 0;
    for (const { state, kind, tasks } of this.#counts.all(runId)) {
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

  #latencyOf(runId: number, totals: TotalsRow): RunSummary['latencyMs'] {
    if (totals.calls_answered === 0) return null;
    const buckets = this.#latencies.all(runId);
    const quantile = (share: number): number => latencyQuantileMs(buckets, share) ?? 0;
    return {
      mean: totals.latency_sum_ms / totals.calls_answered,
      p50: quantile(0.5),
      p95: quantile(0.95),
      p99: quantile(0.99),
    };
  }
}

function toLane(row: LaneRow): LaneSummary {
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
