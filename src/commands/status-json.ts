/** The JSON of `status --json`. A contract with scripts: fields are added, never renamed. */

import type { TokenUsage } from '../core/usage.js';
import { documentCounts } from '../results/document-counts.js';
import { isoTime } from '../results/result-line.js';
import type { RunInspection } from '../runs/inspect-run.js';
import { haltReasonText } from '../ui/halt-reason.js';

export function statusJson({ run, summary, owner, batches, responses, ...rates }: RunInspection): object {
  const { counts, calls, usage } = summary;
  return {
    run: run.name,
    status: run.status,
    simulated: run.simulated,
    input: run.inputPath,
    created_at: isoTime(run.createdAtMs),
    stopped_at: run.stoppedAtMs === null ? null : isoTime(run.stoppedAtMs),
    halt_reason: run.haltReason === null ? null : haltReasonText(run.haltReason),
    drained_by: owner === null ? null : { pid: owner.pid, host: owner.host, since: isoTime(owner.sinceMs) },
    documents: { ...documentCounts(counts), gone: summary.gone },
    failed_by_kind: summary.failedByKind,
    shared: {
      within_run: summary.shared.withinRun,
      from_earlier_runs: summary.shared.fromEarlierRuns,
      waiting: summary.shared.waiting,
    },
    calls: { ...calls },
    tokens: tokens(usage),
    cost_usd: summary.costMicroUsd / 1_000_000,
    calls_without_cost: summary.callsWithoutCost,
    prices: rates.prices,
    in_doubt: {
      calls: summary.inDoubt.calls,
      calls_without_usage: summary.inDoubt.withoutUsage,
      tokens: summary.inDoubt.tokens,
      cost_usd: summary.inDoubt.costMicroUsd / 1_000_000,
    },
    lanes: summary.lanes.map((lane) => ({
      lane: lane.lane,
      calls: lane.calls,
      failed: lane.failed,
      throttled: lane.throttled,
      tokens: tokens(lane.usage),
      cost_usd: lane.costMicroUsd / 1_000_000,
    })),
    groups:
      rates.groups === null
        ? null
        : {
            calls: rates.groups.calls,
            documents: rates.groups.documents,
            fewest_documents: rates.groups.fewest,
            most_documents: rates.groups.most,
            splits: rates.groups.splits,
          },
    latency_ms: summary.latencyMs,
    requests_per_minute: rates.requestsPerMinute,
    requests_per_minute_limit: rates.requestsPerMinuteLimit,
    tokens_per_minute: rates.tokensPerMinute,
    tokens_per_minute_limit: rates.tokensPerMinuteLimit,
    learnt_limits: rates.learntLimits.map((limit) => ({
      lane: limit.lane,
      requests_per_minute: limit.requestsPerMinute,
      tokens_per_minute: limit.tokensPerMinute,
      requests_per_day: limit.requestsPerDay,
    })),
    outages: rates.outages.map(({ lane, sinceMs, message }) => ({ lane, since: isoTime(sinceMs), message })),
    remote_batches: batches.map((batch) => ({
      shard: batch.shard,
      lane: batch.lane,
      endpoint: batch.endpoint,
      model: batch.model,
      state: batch.state,
      remote_id: batch.remoteId,
      remote_state: batch.remoteState,
      requests: batch.lines,
      completed: batch.requestsCompleted,
      failed: batch.requestsFailed,
      most_cost_usd: batch.mostCostMicroUsd / 1_000_000,
      created_at: isoTime(batch.createdAtMs),
      submitted_at: batch.submittedAtMs === null ? null : isoTime(batch.submittedAtMs),
      message: batch.message,
    })),
    background_responses: responses.map((response) => ({
      lane: response.lane,
      model: response.model,
      remote_id: response.remoteId,
      most_cost_usd: response.mostCostMicroUsd / 1_000_000,
      created_at: isoTime(response.createdAtMs),
    })),
    eta_ms: rates.etaMs === null ? null : Math.round(rates.etaMs),
    files: run.outputPaths,
  };
}

function tokens(usage: TokenUsage): object {
  return {
    input: usage.inputTokens,
    output: usage.outputTokens,
    cached: usage.cachedTokens,
    reasoning: usage.reasoningTokens,
  };
}
