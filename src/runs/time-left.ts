/** When a run will be done: the one formula, for the bar and for `status`. */

/** An estimate from fewer settled documents than this swings too much to be shown. */
const NEEDS_SETTLED = 5;
const MINUTE_MS = 60_000;

export interface RecentPace {
  /** Documents that were settled in the time looked at. */
  readonly settled: number;
  readonly overMs: number;
  /** Documents that still need a call. */
  readonly left: number;
  readonly minute: MinuteUse;
}

/** What was used of the limits within a minute, over all lanes; a limit is null where a lane's is not known. */
export interface MinuteUse {
  readonly requests: number;
  readonly tokens: number;
  readonly requestLimit: number | null;
  readonly tokenLimit: number | null;
}

/**
 * As fast as it went of late, but never faster than the limits allow: a first burst says little of the rest.
 * @returns null where it cannot be told yet
 */
export function timeLeftMs({ settled, overMs, left, minute }: RecentPace): number | null {
  if (settled < NEEDS_SETTLED || overMs <= 0) return null;
  return Math.max((overMs / settled) * left, fastestMs(minute, left));
}

/** The time that the limits need at least for so many documents like the last ones. */
function fastestMs({ requests, tokens, requestLimit, tokenLimit }: MinuteUse, left: number): number {
  const tokensPerRequest = requests === 0 ? 0 : tokens / requests;
  const byRequests = requestLimit === null ? 0 : left / requestLimit;
  const byTokens = tokenLimit === null ? 0 : (left * tokensPerRequest) / tokenLimit;
  return Math.max(byRequests, byTokens) * MINUTE_MS;
}

/** Null where any lane's limit is unknown: a part of the whole would mislead. */
export function sumOfKnown(limits: readonly (number | null)[]): number | null {
  let total = 0;
  for (const limit of limits) {
    if (limit === null) return null;
    total += limit;
  }
  return total;
}
