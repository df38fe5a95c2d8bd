/** Shares of one bill: what several documents used together, told apart. */
import type { CallShare } from './call.js';
import type { TokenUsage } from './usage.js';

/**
 * Divides what a call used and cost among its documents, in proportion to what each was estimated to use. Tokens stay
 * whole, and the shares add up to the call's.
 * @param weights one for each document, not negative; equal shares where all are 0
 */
export function shareBill(
  usage: TokenUsage | null,
  costMicroUsd: number | null,
  weights: readonly number[],
): readonly CallShare[] {
  if (weights.length === 1) return [{ usage, costMicroUsd }];
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
