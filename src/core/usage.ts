/** Tokens of one call as the provider reported them; cached is part of input, reasoning part of output. */
export interface TokenUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly reasoningTokens: number;
}
