/** The JSON of `estimate --json` and `run --dry-run --json`. A contract with scripts: fields are added, never renamed. */
import type { DurationRange, EstimateReport, PlannedModel } from '../runs/estimate/estimate-input.js';
import type { CostRange } from '../runs/estimate/model-estimate.js';
import type { EstimatedTotal } from '../runs/estimate/total-estimator.js';
import { DAYS_PER_MONTH, shownRequest } from '../ui/estimate-page.js';

export function estimateJson(inputName: string, report: EstimateReport): object {
  return {
    input: inputName,
    documents: report.documents,
    bad_lines: report.badLines,
    repeats: report.duplicates,
    shared_answers: report.sharedAnswers ?? 0,
    counted_documents: report.sampled ?? report.documents - (report.sharedAnswers ?? 0),
    exact: report.sampled === null,
    models: report.models.map((model) => modelJson(model, report)),
    limits: {
      requests_per_minute: report.limits.requestsPerMinute,
      tokens_per_minute: report.limits.tokensPerMinute,
      requests_per_day: report.limits.requestsPerDay,
      concurrency: report.limits.concurrency,
    },
    latency: {
      assumed: report.assumesLatency,
      base_ms: report.latency.baseMs,
      ms_per_output_token: report.latency.msPerOutputToken,
    },
    daily_documents: report.dailyDocuments,
    simulated: report.simulated,
    prices: report.prices,
    first_request: { line: report.firstRequest.line, body: shownRequest(report.firstRequest.bodyJson) },
  };
}

function modelJson(model: PlannedModel, report: EstimateReport): object {
  const { input, output, cost, duration, dailyDuration, models } = model;
  const share = (report.dailyDocuments ?? 0) / report.documents;
  return {
    model: model.asked ?? (models.length === 1 ? models[0]?.model : null),
    models: models.map(({ model: name, counted, tokenizer, ownTokenizer, priceTable }) => ({
      model: name,
      counted_documents: counted,
      tokenizer,
      own_tokenizer: ownTokenizer,
      price_source: priceTable?.source ?? null,
      price_date: priceTable?.date ?? null,
    })),
    input_tokens: { ...total(input), document: input.document },
    output_tokens: {
      basis: output.bases,
      low: Math.round(output.low.total),
      high: Math.round(output.high.total),
      document: output.document,
    },
    cost_usd: costsJson(cost),
    duration: durationJson(duration),
    daily:
      dailyDuration === null
        ? null
        : {
            day_cost_usd: costsJson(cost, share),
            month_days: DAYS_PER_MONTH,
            month_cost_usd: costsJson(cost, share * DAYS_PER_MONTH),
            duration: durationJson(dailyDuration),
          },
    estimated_documents: model.estimatedDocuments,
    uncounted_parts: model.uncountedParts,
  };
}

/** `low` and `high` bound the 95 % interval. */
function total({ total: tokens, plusMinus }: EstimatedTotal): object {
  return {
    total: Math.round(tokens),
    low: Number.isFinite(plusMinus) ? Math.max(0, Math.round(tokens - plusMinus)) : null,
    high: Number.isFinite(plusMinus) ? Math.round(tokens + plusMinus) : null,
  };
}

function costsJson({ direct, flex, batch }: PlannedModel['cost'], share = 1): object {
  return { direct: costJson(direct, share), flex: costJson(flex, share), batch: costJson(batch, share) };
}

/** Null where it is unknown. `plus_minus` is half of the 95 % interval of `high`. */
function costJson(cost: CostRange | null, share: number): object | null {
  if (cost === null) return null;
  const plusMinus = Number.isFinite(cost.plusMinus) ? usd(cost.plusMinus * share) : null;
  return { low: usd(cost.low * share), high: usd(cost.high * share), plus_minus: plusMinus };
}

/** Whole micro-dollars, as everywhere. */
function usd(microUsd: number): number {
  return Math.round(microUsd) / 1_000_000;
}

function durationJson({ low, high }: DurationRange): object {
  return {
    low_ms: Math.round(low.ms),
    high_ms: Math.round(high.ms),
    held_back_by: high.heldBackBy,
  };
}
