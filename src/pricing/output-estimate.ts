/**
 * How many output tokens to reserve for a call before it is answered. The output cap is the only bound that can be relied
 * on, but answers are often far shorter, and reserving the cap would leave most of a tokens-per-minute limit idle. So once
 * there are answers, the estimate is what they needed, and some more.
 */
export interface OutputEstimator {
  /** Never above the cap. @param cap the request's output cap (`max_tokens` and the like); null if it has none */
  outputTokens(cap: number | null): number;
  /** An answer's output tokens, reasoning included. */
  observe(outputTokens: number): void;
}

/** Without a cap and before any answer: longer than most answers to a document. */
const DEFAULT_OUTPUT_TOKENS = 1_024;
/** Among fewer answers than this, the long ones may simply not have come yet. */
const ANSWERS_NEEDED = 10;
/** Enough to know the 99th percentile of this run's answers, few enough to follow when the documents change. */
const ANSWERS_KEPT = 500;
const QUANTILE = 0.99;
const HEADROOM = 1.1;
/** Short answers vary by a few tokens whatever the percentile says. */
const HEADROOM_TOKENS = 8;
/** Sorting at every answer would cost more than it is worth. */
const ANSWERS_PER_UPDATE = 10;

export function createOutputEstimator(): OutputEstimator {
  const recent: number[] = [];
  let seen = 0;
  let reservation: number | null = null;
  return {
    outputTokens(cap) {
      if (reservation === null) return cap ?? DEFAULT_OUTPUT_TOKENS;
      return cap === null ? reservation : Math.min(cap, reservation);
    },
    observe(outputTokens) {
      if (!Number.isFinite(outputTokens) || outputTokens < 0) return;
      recent[seen % ANSWERS_KEPT] = outputTokens;
      seen += 1;
      if (seen < ANSWERS_NEEDED || seen % ANSWERS_PER_UPDATE !== 0) return;
      const ascending = [...recent].sort((a, b) => a - b);
      const quantile =
        ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * QUANTILE))] ?? 0;
      reservation = Math.ceil(quantile * HEADROOM + HEADROOM_TOKENS);
    },
  };
}
