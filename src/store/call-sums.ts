/** Sums over the calls of a run, gathered while their rows are written, so that each is stored once a transaction. */
import type { CallEnd } from '../core/call.js';
import { type Doubt, doubtOf } from '../core/usage.js';
import { latencyBucket } from './latency-buckets.js';
import { storableCount, storableInteger, storableReal } from './storable.js';

/** What is summed in `lane_totals` and, apart from it, in `run_totals`: the names of their columns. */
export const LANE_SUMS = [
  ...(['calls_made', 'calls_failed', 'calls_throttled', 'cost_micro_usd'] as const),
  ...(['input_tokens', 'output_tokens', 'cached_tokens', 'reasoning_tokens'] as const),
] as const;
export const RUN_SUMS = [
  ...(['calls_ended', 'calls_lost', 'calls_late', 'calls_answered', 'calls_without_cost'] as const),
  ...(['calls_in_doubt', 'calls_without_usage', 'tokens_in_doubt', 'cost_in_doubt_micro_usd'] as const),
  'latency_sum_ms',
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

  /** @param calls 1 for one that is about to be sent, -1 for one that did not leave after all */
  made(laneName: string, calls: 1 | -1): void {
    this.#lane(laneName).calls_made += calls;
  }

  /** When a call started or ended. */
  seen(atMs: number): void {
    this.firstAtMs = Math.min(this.firstAtMs ?? atMs, atMs);
    this.lastAtMs = Math.max(this.lastAtMs ?? atMs, atMs);
  }

  /** @param wasLost it had been given up, and was in doubt already */
  end(
    laneName: string,
    call: EndOfRequest & { readonly latencyMs: number },
    most: Most,
    wasLost: boolean,
  ): void {
    if (wasLost) this.#doubt('cut_off', -1, most);
    else this.run.calls_ended += 1;
    this.seen(storableInteger(call.finishedAtMs));
    if (call.kind === null) this.#answeredAfter(storableReal(call.latencyMs));
    if (call.kind === null && wasLost) this.run.calls_late += 1;
    this.#add(laneName, call, most);
  }

  /** A request that was worked off in a batch: it says nothing of limits and of speed, so that no time of it is kept. */
  workedOff(laneName: string, call: EndOfRequest, most: Most): void {
    this.made(laneName, 1);
    this.run.calls_ended += 1;
    this.#add(laneName, call, most);
  }

  /** Nobody knows how the call ended. */
  lose(most: Most): void {
    this.run.calls_ended += 1;
    this.run.calls_lost += 1;
    this.#doubt('cut_off', 1, most);
  }

  #lane(name: string): Sums<(typeof LANE_SUMS)[number]> {
    let lane = this.lanes.get(name);
    if (lane === undefined) {
      lane = zeros(LANE_SUMS);
      this.lanes.set(name, lane);
    }
    return lane;
  }

  /** @param calls 1 for one that is in doubt, -1 for one that is so no more */
  #doubt(doubt: Doubt, calls: 1 | -1, { most_tokens, most_cost_micro_usd }: Most): void {
    this.run[doubt === 'cut_off' ? 'calls_in_doubt' : 'calls_without_usage'] += calls;
    this.run.tokens_in_doubt += calls * (most_tokens ?? 0);
    this.run.cost_in_doubt_micro_usd += calls * (most_cost_micro_usd ?? 0);
  }

  #answeredAfter(latencyMs: number): void {
    this.run.calls_answered += 1;
    this.run.latency_sum_ms += latencyMs;
    const bucket = latencyBucket(latencyMs);
    this.latencyBuckets.set(bucket, (this.latencyBuckets.get(bucket) ?? 0) + 1);
  }

  /** What a call that has ended used and cost, and what it failed for. */
  #add(laneName: string, call: EndOfRequest, most: Most): void {
    const { usage, kind, costMicroUsd } = call;
    const { run } = this;
    const lane = this.#lane(laneName);
    const doubt = doubtOf(usage, call.httpStatus);
    if (doubt !== null) this.#doubt(doubt, 1, most);
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
      run.cost_in_doubt_micro_usd += most.most_cost_micro_usd ?? 0;
    }
  }
}

/** The sums of a run, among those that one transaction adds to. */
export function sumsOf(added: Map<number, CallSums>, runId: number): CallSums {
  let sums = added.get(runId);
  if (sums === undefined) {
    sums = new CallSums();
    added.set(runId, sums);
  }
  return sums;
}

/** The most that a call can be billed, by its columns. */
interface Most {
  readonly most_tokens: number | null;
  readonly most_cost_micro_usd: number | null;
}

/** How a request ended, whichever way it was sent. */
export type EndOfRequest = Omit<CallEnd, 'callId' | 'latencyMs'>;
