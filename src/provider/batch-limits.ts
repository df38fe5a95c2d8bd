/** What one batch takes at most, by who takes it. */

export interface ProviderBatchLimits {
  readonly lines: number;
  readonly bytes: number;
  /** Entries in arrays of inputs, over all its lines. */
  readonly inputs: number;
}

/** OpenAI's guide to the Batch API (50,000 requests, 200 MB, 50,000 embedding inputs), which most others repeat. */
const USUAL: ProviderBatchLimits = { lines: 50_000, bytes: 200_000_000, inputs: 50_000 };

const LIMITS: readonly (readonly [host: RegExp, limits: ProviderBatchLimits])[] = [
  // Together's page on batch inference: 50,000 requests, 100 MB.
  [/(^|\.)together\.(ai|xyz)$/, { ...USUAL, bytes: 100_000_000 }],
];

export function batchLimitsOf(baseUrl: string): ProviderBatchLimits {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : '';
  return LIMITS.find(([pattern]) => pattern.test(host))?.[1] ?? USUAL;
}
