/** Sums over the calls of a run, gathered while their rows are written, so that each is stored once a transaction. */
import type { CallEnd } from '../core/call.js';
import { type Doubt, doubtOf } from '../core/usage.js';
import { latencyBucket } from './latency-buckets.js';
import { storableCount, storableReal } from './storable.js';

/** What is summed in `lane_totals` and, apart from it, in `run_totals`: the names of their columns. */
export const LANE_SUMS = [
  ...(['calls_made', 'calls_failed', 'calls_throttled', 'cost_micro_usd'] as const),
  ...(['input_tokens', 'output_tokens', 'cached_tokens', 'reasoning_tokens'] as const),
] as const;
export const RUN_SUMS = [
  ...(['calls_ended', 'calls_lost', 'calls_answered', 'calls_without_cost', 'calls_in_doubt'] as const),
  ...(['calls_without_usage', 'tokens_in_doubt', 'cost_in_doubt_micro_usd', 'latency_sum_ms'] as const),
] as const;

type Sums<Column extends string> = Record<Column, number>;

function zeros<Column extends string>(columns: readonly Column[]): Sums<Column> {
  return Object.fromEntries(columns.map((column) => [column, 0])) as Sums<Column>;
}

/** What one transaction adds to the sums of one run. */
export class CallSums {
  readonly run = zeros(RUN_SUMS);
  readonly lanes = new Map<string, Sums<(typeof LANE_SUMS)[number]>>();
  readonly latencyBuckets = new Map<number, number>();
  firstAtMs: number | null = null;
  lastAtMs: number | null = null;

  lane(name: string): Sums<(typeof LANE_SUMS)[number]> {
    let lane = this.lanes.get(name);
    if (lane === undefined) {
      lane = zeros(LANE_SUMS);
      this.lanes.set(name, lane);
    }
    return lane;
  }

  /** @param calls 1 for one that is in doubt, -1 for one that is so no more */
  doubt(doubt: Doubt, calls: 1 | -1, mostTokens: number | null, mostCostMicroUsd: number | null): void {
    this.run[doubt === 'cut_off' ? 'calls_in_doubt' : 'calls_without_usage'] += calls;
    this.run.tokens_in_doubt += calls * (mostTokens ?? 0);
    this.run.cost_in_doubt_micro_usd += calls * (mostCostMicroUsd ?? 0);
  }

  answeredAfter(latencyMs: number): void {
    this.run.calls_answered += 1;
    this.run.latency_sum_ms += latencyMs;
    const bucket = latencyBucket(latencyMs);
    this.latencyBuckets.set(bucket, (this.latencyBuckets.get(bucket) ?? 0) + 1);
  }

  /** What a call that has ended used and cost, and what it failed for. */
  end(
    laneName: string,
    call: EndOfRequest,
    mostTokens: number | null,
    mostCostMicroUsd: number | null,
  ): void {
    const { usage, kind, costMicroUsd } = call;
    const { run } = this;
    const lane = this.lane(laneName);
    const doubt = doubtOf(usage, call.httpStatus);
    if (doubt !== null) this.doubt(doubt, 1, mostTokens, mostCostMicroUsd);
    if (kind !== null && kind !== 'aborted') {
      lane.calls_failed += 1;
      if (kind === 'rate_limited') lane.calls_throttled += 1;
    }
    if (costMicroUsd !== null) lane.cost_micro_usd += storableReal(costMicroUsd);
    if (usage === null) return;
    lane.input_tokens += storableCount(usage.inputTokens);
    lane.output_tokens += storableCount(usage.outputTokens);
    lane.cached_tokens += storableCount(usage.cachedTokens);
    lane.reasoning_tokens += storableCount(usage.reasoningTokens);
    if (costMicroUsd === null && usage.inputTokens + usage.outputTokens > 0) {
      run.calls_without_cost += 1;
      run.cost_in_doubt_micro_usd += mostCostMicroUsd ?? 0;
    }
  }

  seen(atMs: number): void {
    this.firstAtMs = Math.min(this.firstAtMs ?? atMs, atMs);
    this.lastAtMs = Math.max(this.lastAtMs ?? atMs, atMs);
  }
}

/** How a request ended, whichever way it was sent. */
export type EndOfRequest = Omit<CallEnd, 'callId' | 'latencyMs'>;
