/** From a run's settings to the budget that its calls are admitted by. */
import type { FailureLimit } from '../config/values.js';
import { EXIT_CODES, type ExitCode, LlmBatchError } from '../core/errors.js';
import type { RunSummary } from '../core/run-summary.js';
import { type BillingBounds, mostTokensOf, type RunBudget } from '../engine/billing.js';
import { Budget } from '../engine/budget.js';
import type { Lane } from '../engine/lane.js';
import type { BudgetSettings } from './run-settings.js';

/** A share of failures says little of the first few documents. */
const DOCUMENTS_FOR_A_SHARE = 50;

/**
 * @param summary what the run has spent so far; calls that may have been billed count with the most they can be
 * @returns null without a cap
 */
export function createRunBudget(
  settings: BudgetSettings,
  lanes: readonly Lane[],
  summary: RunSummary,
): RunBudget | null {
  const { maxCostMicroUsd, maxTokensTotal } = settings;
  if (maxCostMicroUsd === null && maxTokensTotal === null) return null;
  const { usage, costMicroUsd, inDoubt } = summary;
  const budget = new Budget(
    { maxCostMicroUsd, maxTokens: maxTokensTotal },
    {
      costMicroUsd: costMicroUsd + inDoubt.costMicroUsd,
      tokens: usage.inputTokens + usage.outputTokens + inDoubt.tokens,
    },
  );
  return Object.assign(budget, {
    mostOf: (bounds: BillingBounds) => ({
      costMicroUsd: maxCostMicroUsd === null ? 0 : mostCost(bounds, lanes),
      tokens: mostTokensOf(bounds),
    }),
  });
}

/** On the dearest lane: which one will take the call is not known yet. @throws LlmBatchError PRICE_UNKNOWN */
function mostCost(bounds: BillingBounds, lanes: readonly Lane[]): number {
  const { model, mostInputTokens, outputCap, serviceTier } = bounds;
  const costs = lanes.map((lane) => lane.mostOf(model, mostInputTokens, outputCap, serviceTier));
  const known = costs.filter((cost) => cost !== null);
  if (known.length < costs.length) throw priceUnknown(model, serviceTier, EXIT_CODES.halted);
  return Math.max(...known);
}

/**
 * Refuses, before the first call, a cap on cost that could not be kept.
 * @throws LlmBatchError PRICE_UNKNOWN (exit 2)
 */
export function checkBudget(
  settings: BudgetSettings,
  lanes: readonly Pick<Lane, 'mostOf'>[],
  { model, outputCap, serviceTier }: Omit<BillingBounds, 'mostInputTokens'>,
): void {
  if (settings.maxCostMicroUsd === null) return;
  if (lanes.some((lane) => lane.mostOf(model, 1, outputCap ?? 1, serviceTier) === null)) {
    throw priceUnknown(model, serviceTier, EXIT_CODES.usage);
  }
}

function priceUnknown(model: string, serviceTier: string | null, exitCode: ExitCode): LlmBatchError {
  const tier = serviceTier === null ? '' : ` with service_tier '${serviceTier}'`;
  return new LlmBatchError(`The cap on cost cannot be kept: no price is known for model '${model}'${tier}.`, {
    code: 'PRICE_UNKNOWN',
    exitCode,
    facts: { model, serviceTier },
  });
}

/** @returns null without a limit */
export function failureLimit(
  limit: FailureLimit | null,
): ((completed: number, failed: number) => boolean) | null {
  if (limit === null) return null;
  if ('documents' in limit) return (_completed, failed) => failed > limit.documents;
  return (completed, failed) => {
    const done = completed + failed;
    return done >= DOCUMENTS_FOR_A_SHARE && failed / done > limit.share;
  };
}
