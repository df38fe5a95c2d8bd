/** From a run's settings to the budget that its calls are admitted by. */
import type { FailureLimit } from '../config/values.js';
import { EXIT_CODES, type ExitCode, LlmBatchError } from '../core/errors.js';
import { Budget } from '../engine/budget.js';
import { type BillingBounds, mostTokensOf, type RunBudget } from '../engine/call.js';
import type { Lane } from '../engine/lane.js';
import type { RunSummary } from '../store/store.js';
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
  return {
    admit: (most) => budget.admit(most),
    settle: (most, actual) => budget.settle(most, actual),
    close: () => budget.close(),
    mostOf: (bounds) => ({
      costMicroUsd: maxCostMicroUsd === null ? 0 : mostCost(bounds, lanes),
      tokens: mostTokensOf(bounds),
    }),
  };
}

/** On the dearest lane: which one will take the call is not known yet. @throws LlmBatchError PRICE_UNKNOWN */
function mostCost({ model, mostInputTokens, outputCap }: BillingBounds, lanes: readonly Lane[]): number {
  const costs = lanes.map((lane) => lane.mostOf(model, mostInputTokens, outputCap));
  const known = costs.filter((cost) => cost !== null);
  if (known.length < costs.length) throw priceUnknown(model, EXIT_CODES.halted);
  return Math.max(...known);
}

/**
 * Refuses, before the first call, a cap on cost that could not be kept.
 * @throws LlmBatchError PRICE_UNKNOWN (exit 2)
 */
export function checkBudget(settings: BudgetSettings, lanes: readonly Lane[], model: string): void {
  if (settings.maxCostMicroUsd !== null && lanes.some((lane) => lane.mostOf(model, 1, 1) === null)) {
    throw priceUnknown(model, EXIT_CODES.usage);
  }
}

function priceUnknown(model: string, exitCode: ExitCode): LlmBatchError {
  return new LlmBatchError(`--max-cost can not be kept: no price is known for model '${model}'.`, {
    code: 'PRICE_UNKNOWN',
    exitCode,
    hint: 'give its price with --prices FILE, or cap tokens with --max-tokens-total',
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
