/** What a lane needs to hand requests in as batches, and what they cost there. */
import type { BilledUsage } from '../../core/usage.js';
import type { ProviderBatchLimits } from '../../provider/batch-limits.js';
import type { RemoteBatches } from '../../provider/remote-batches.js';

export interface LanePrices {
  /** Micro-dollars of a call for `model` at this lane's prices; null where no price is known. */
  readonly costOf: (model: string, usage: BilledUsage) => number | null;
  /**
   * The most a call could cost; null where there is no price or nothing bounds the answer.
   * @param serviceTier that the request asks for; null: none
   */
  readonly mostOf: (
    model: string,
    inputTokens: number,
    outputCap: number | null,
    serviceTier: string | null,
  ) => number | null;
}

/** Its prices are those of batches. */
export interface RemoteLane extends LanePrices {
  readonly batches: RemoteBatches;
  readonly limits: ProviderBatchLimits;
  /** A body as the lane's server takes it: under the name that the model has there. */
  readonly bodyFor: (bodyJson: string) => string;
}
