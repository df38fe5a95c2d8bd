import type { AttoUsd } from '../../src/pricing/money.js';

/** As price lists have it: US dollars per million tokens. */
export function usdPerMillion(attoPerToken: AttoUsd): number {
  return Number(attoPerToken) / 1e12;
}
