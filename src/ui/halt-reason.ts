/** Why a run stopped by itself, in words. */
import type { ReachedLimit } from '../core/event.js';

/** What reaching each limit means. */
export const REACHED_LIMITS: Readonly<Record<ReachedLimit, string>> = {
  cost: 'the next call could pass --max-cost; `resume` takes a higher one',
  tokens: 'the next call could pass --max-tokens-total; `resume` takes a higher one',
  failures: 'more documents have failed than --max-failures accepts',
};

/** @param stored with the run: what failed, in its own words, or `limit_reached: ` and which */
export function haltReasonText(stored: string): string {
  const limit = /^limit_reached: (cost|tokens|failures)$/.exec(stored)?.[1] as ReachedLimit | undefined;
  if (limit === undefined) return stored;
  return `${limit === 'failures' ? 'failures' : 'budget'}: ${REACHED_LIMITS[limit]}`;
}
