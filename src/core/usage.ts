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
 * Whether a call that has ended may have been billed without our knowing: no usage came back, and no redirect or error
 * status either, which are answers without tokens that servers do not bill.
 * @param httpStatus null when no answer came: it was cut off, timed out, or lost in a crash
 */
export function isInDoubt(usage: TokenUsage | null, httpStatus: number | null): boolean {
  return usage === null && (httpStatus === null || httpStatus < 300);
}
