/** A run as the service tells of it. */
import type { RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import { documentCounts } from '../results/document-counts.js';
import { costUsdJson, isoTime } from '../results/result-line.js';

export function runFacts(run: RunRecord, { counts, costMicroUsd }: RunSummary): object {
  return {
    id: run.name,
    status: run.status,
    documents: documentCounts(counts),
    cost_usd: Number(costUsdJson(costMicroUsd)),
    halt_reason: run.haltReason,
    created_at: isoTime(run.createdAtMs),
  };
}
