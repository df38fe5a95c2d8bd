/**
 * What a server said about its limits, in one shape whatever the header dialect. Every field is optional:
 * most servers say a part of it, many say nothing.
 */
export interface QuotaHint {
  /** The whole quota of one window. */
  readonly limit?: number;
  /** What is left of it now. */
  readonly remaining?: number;
  /** Milliseconds until the quota is full again (not: until one more fits). */
  readonly resetMs?: number;
  /** The window's length where the dialect implies it (a minute, a day on Groq, a second on Together). */
  readonly windowMs?: number;
}

export interface RateLimitHints {
  readonly requests?: QuotaHint;
  readonly tokens?: QuotaHint;
  readonly requestsPerDay?: QuotaHint;
}

/** What a server's headers last said of its whole quotas; null: nothing yet. */
export interface LearntLimits {
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly requestsPerDay: number | null;
}
