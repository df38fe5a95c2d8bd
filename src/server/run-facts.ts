/** A run as the service tells of it. */
import type { RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import { costUsdJson, isoTime } from '../results/result-line.js';

export function runFacts(run: RunRecord, { counts, costMicroUsd }: RunSummary): object {
  const { ready, delayed, in_progress, completed, failed, cancelled } = counts;
  return {
    id: run.name,
    status: run.status,
    documents: {
      total: ready + delayed + in_progress + completed + failed + cancelled,
      pending: ready + delayed,
      ...{ in_progress, completed, failed, cancelled },
    },
    cost_usd: Number(costUsdJson(costMicroUsd)),
    halt_reason: run.haltReason,
    created_at: isoTime(run.createdAtMs),
  };
}
