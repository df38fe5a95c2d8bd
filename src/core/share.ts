/** Shares of one bill: what several documents used together, told apart. */
import type { CallShare } from './call.js';
import type { TokenUsage } from './usage.js';

/**
 * Divides what a call used and cost among its documents, in proportion to what each was estimated to use. Tokens stay
 * whole, and the shares add up to the call's.
 * @param weights one for each document, not negative; equal shares where all are 0
 * @param told what each used, where the server says: it rules where it adds up to the bill
 */
export function shareBill(
  usage: TokenUsage | null,
  costMicroUsd: number | null,
  weights: readonly number[],
  told?: readonly TokenUsage[],
): readonly CallShare[] {
  if (weights.length === 1) return [{ usage, costMicroUsd }];
  if (told !== undefined && usage !== null && addsUp(told, usage)) {
    const costs = shareBill(null, costMicroUsd, told.map(tokensOf));
    return told.map((each, index) => ({ usage: each, costMicroUsd: costs[index]?.costMicroUsd ?? null }));
  }
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  // The running sum is rounded, not the shares, so that what one loses the next one gets.
  let sum = 0;
  let upTo = 0;
  return weights.map((weight) => {
    const from = upTo;
    sum += total === 0 ? 1 : weight;
    upTo = sum / (total === 0 ? weights.length : total);
    const tokens = (amount: number): number => Math.round(amount * upTo) - Math.round(amount * from);
    return {
      usage:
        usage === null
          ? null
          : {
              inputTokens: tokens(usage.inputTokens),
              outputTokens: tokens(usage.outputTokens),
              cachedTokens: tokens(usage.cachedTokens),
              reasoningTokens: tokens(usage.reasoningTokens),
            },
      costMicroUsd: costMicroUsd === null ? null : costMicroUsd * (upTo - from),
    };
  });
}

function addsUp(told: readonly TokenUsage[], usage: TokenUsage): boolean {
  const sum = (of: (each: TokenUsage) => number): number => told.reduce((total, each) => total + of(each), 0);
  return (
    sum(({ inputTokens }) => inputTokens) === usage.inputTokens &&
    sum(({ outputTokens }) => outputTokens) === usage.outputTokens
  );
}

function tokensOf({ inputTokens, outputTokens }: TokenUsage): number {
  return inputTokens + outputTokens;
}
