/** What a call can be billed at most before it is sent, and what it counts for once it has ended. */

import type { CallEnd } from '../core/call.js';
import { doubtOf } from '../core/usage.js';
import { isWithinBound } from '../pricing/cost.js';
import type { Budget, Spending } from './budget.js';

/** Bounds of what a call can be billed. */
export interface BillingBounds {
  readonly model: string;
  /** More than any tokenizer makes of the request. */
  readonly mostInputTokens: number;
  /** Null: the request sets no cap of its own. */
  readonly outputCap: number | null;
  /** `service_tier` that the request asks for; null: none. */
  readonly serviceTier: string | null;
}

/** Where nothing bounds an answer's length, no budget of tokens could be kept. */
const LONGEST_ANSWER_TOKENS = 131_072;

/** The most tokens, in and out, that a call can be billed. */
export function mostTokensOf({ mostInputTokens, outputCap }: BillingBounds): number {
  return mostInputTokens + (outputCap ?? LONGEST_ANSWER_TOKENS);
}

/** A budget that knows what a call could cost at most. */
export interface RunBudget extends Pick<Budget, 'admit' | 'settle' | 'close' | 'setAside' | 'lacking'> {
  mostOf(bounds: BillingBounds): Spending;
}

export const NOTHING_SPENT: Spending = { costMicroUsd: 0, tokens: 0 };

/**
 * What is not known to be free counts as the most it could be: a call that was cut off may have been billed.
 * @param call null: none was made
 * @param answeredTier `service_tier` of the answer; null where it names none, or nothing was answered
 */
export function billedFor(
  call: Pick<CallEnd, 'usage' | 'costMicroUsd' | 'httpStatus'> | null,
  most: Spending,
  askedTier: string | null,
  answeredTier: string | null,
): Spending {
  if (call === null) return NOTHING_SPENT;
  const { usage, costMicroUsd } = call;
  if (usage !== null) {
    // A tier that was not asked for, at a price that nobody knows, ends what a cap on cost can promise.
    const bound = isWithinBound(askedTier, answeredTier) ? most.costMicroUsd : Number.POSITIVE_INFINITY;
    return {
      costMicroUsd: costMicroUsd ?? bound,
      tokens: usage.inputTokens + usage.outputTokens,
    };
  }
  return doubtOf(usage, call.httpStatus) === null ? NOTHING_SPENT : most;
}
