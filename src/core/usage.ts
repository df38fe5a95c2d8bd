/** Tokens of one call as the provider reported them; cached is part of input, reasoning part of output. */
export interface TokenUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly reasoningTokens: number;
}

/** Of a call that never reached a server. */
export const NO_TOKENS: TokenUsage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 };

/** Usage with what its price depends on besides; that goes into the cost of the call and is not stored. */
export interface BilledUsage extends TokenUsage {
  /** Part of the input; dearer at some models. */
  readonly cacheWriteTokens?: number;
  /** The model that the server says answered; absent where it says none. */
  readonly answeredBy?: string;
  /** `service_tier` of the answer, in the server's word; absent where it says none. */
  readonly serviceTier?: string;
}

/**
 * Statuses by which a gateway says that it, or its client, waited no longer (RFC 9110 for 408 and 504, nginx for 499,
 * Cloudflare for 524): the server behind it may have been generating all the while.
 */
export const GAVE_UP_STATUSES: readonly number[] = [408, 499, 504, 524];

/** Why nobody knows whether, or how much, a call was billed. */
export type Doubt =
  /** No whole answer came: it was cut off, timed out, lost in a crash, or a gateway gave up on it. */
  | 'cut_off'
  /** An answer came that does not say what it used. */
  | 'without_usage';

/**
 * Whether a call that has ended may have been billed without our knowing: no usage came back, and no redirect or other
 * error status either, which are answers without tokens that servers do not bill.
 * @param httpStatus null when no answer came
 */
export function doubtOf(usage: TokenUsage | null, httpStatus: number | null): Doubt | null {
  if (usage !== null) return null;
  if (httpStatus === null || GAVE_UP_STATUSES.includes(httpStatus)) return 'cut_off';
  return httpStatus < 300 ? 'without_usage' : null;
}
