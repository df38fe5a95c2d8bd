/** What a `service_tier` means for the price: the tier that answered is billed, not the one that was asked for. */
import type { BilledUsage } from '../core/usage.js';
import { costMicroUsd, worstCaseMicroUsd } from './cost.js';
import type { ModelPrice, PriceTier } from './model-price.js';

/** @returns the tier that a `service_tier` is priced as; null for a word that no table has a price for */
export function tierOfServiceTier(serviceTier: string | null): PriceTier | null {
  switch (serviceTier) {
    case null:
    case 'auto':
    case 'default':
    case 'standard':
    case 'on_demand':
    // Capacity that was paid for in advance; what a token of it costs is what the token would cost without.
    case 'scale':
      return 'standard';
    case 'flex':
    case 'batch':
    case 'priority':
      return serviceTier;
    // The newer name to ask for it; the answer says priority.
    case 'fast':
      return 'priority';
    default:
      return null;
  }
}

/** @returns null where the tier that answered has no known price: it may be dearer than any other */
export function billedMicroUsd(usage: BilledUsage, price: ModelPrice): number | null {
  const tier = tierOfServiceTier(usage.serviceTier ?? null);
  return tier === null ? null : costMicroUsd(usage, price, { tier });
}

/**
 * The most that a call can cost, whichever tier answers: at the standard rates, which bound flex too (a server may
 * answer at the standard tier for want of room), or at the rates of the tier that was asked for where those are dearer.
 * `auto` leaves it to the project, which may be set to priority. So does a request that names no tier, but priority is
 * the rare case: reserving its rates for everybody would stop most runs long before their cap. See `isWithinBound`.
 *
 * @param inputTokens, outputCap as for `worstCaseMicroUsd`
 * @param serviceTier that the request asks for; null: none
 * @returns null where there is no bound, or no price for a tier that may be dearer than standard
 */
export function worstCaseAtTier(
  inputTokens: number,
  outputCap: number | null,
  serviceTier: string | null,
  price: ModelPrice,
): number | null {
  const asked = tierOfServiceTier(serviceTier);
  if (asked === null) return null;
  const at = (tier: PriceTier): number | null => worstCaseMicroUsd(inputTokens, outputCap, price, { tier });
  const standard = at('standard');
  const other = serviceTier === 'auto' ? 'priority' : asked;
  const dearest = other === 'standard' ? standard : at(other);
  if (standard === null || (asked === 'priority' && dearest === null)) return null;
  return Math.max(standard, dearest ?? 0);
}

/**
 * Whether `worstCaseAtTier` for what was asked still bounds a call whose price is not known: not when the project made
 * it priority unasked, or a tier of which no table knows.
 */
export function isWithinBound(asked: string | null, answered: string | null): boolean {
  const tier = tierOfServiceTier(answered);
  return tier !== null && (tier !== 'priority' || tierOfServiceTier(asked) === 'priority');
}
