/** What is asked of a limiter and what it answers. */
import type { QuotaAmounts } from './shared-quota.js';

export interface Cost {
  readonly requests: number;
  /** What the call is expected to be charged, prompt and output together; rather too much than too little. */
  readonly tokens: number;
  /**
   * What the call is charged if the server counts the output cap in full: prompt plus cap. Absent: the same as `tokens`.
   * The limiter finds out which of the two holds.
   */
  readonly tokensAtCap?: number;
}

/** `share`: others use the same limits, and what of them is ours is used. */
export type BlockedBy = 'requests' | 'tokens' | 'requests_per_day' | 'concurrency' | 'pause' | 'share';

/**
 * Why the server refused: its quota (`rate`), growth that was too fast for it (`slow_down`), or a lack of capacity that has
 * nothing to do with our quota (`overload`: 503, 529). Or it does not answer at all (`unreachable`), which is for the caller
 * to conclude.
 */
export type RefusalReason = 'rate' | 'slow_down' | 'overload' | 'unreachable';

/** The effect of a refusal: the lane is silent (`slowed`), or only the refused call has to wait (`stray`). */
export type RefusalEffect = 'slowed' | 'stray';

/** A place in the window, handed from `reserve` to `sent` and then `commit` or `cancel`. Opaque. */
export interface Grant {
  readonly cost: Cost;
}

export type Reservation =
  | { readonly granted: true; readonly grant: Grant }
  | {
      readonly granted: false;
      readonly impossible: false;
      /**
       * Until the earliest moment at which this very cost could be granted if nothing else happens. A correction or a
       * cancelled call may free room sooner; an unsent call or a failed probe may hold it longer.
       */
      readonly waitMs: number;
      readonly blockedBy: BlockedBy;
      /** What the call adds to the windows, where it waits for a larger share. */
      readonly wants?: QuotaAmounts;
    }
  /** The cost is larger than the whole limit: no waiting helps. `reason` is a sentence. */
  | { readonly granted: false; readonly impossible: true; readonly reason: string };
