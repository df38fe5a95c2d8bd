/**
 * What a call cost, and what it could cost at most, in whole micro-dollars. The tier that answered is billed, not the
 * one that was asked for.
 */
import type { BilledUsage } from '../core/usage.js';
import { type AttoUsd, microUsdOfAtto, microUsdOfAttoUp } from './money.js';
import type { ModelPrice, PriceTier, RateTable, TokenRates } from './price-book.js';

export interface CostOptions {
  readonly tier: PriceTier;
}

/**
 * Cost = fresh input + cached + written to cache + output + reasoning, each at its rate, plus a fee per request
 * if there is one; a prompt over a threshold moves the whole request to the dearer rates. The sum is rounded once, half up.
 * Parts larger than their whole (servers report such things) count as the whole.
 *
 * @returns null if a rate that the usage needs is unknown. Tools that are billed by use (web search) are not included
 */
export function costMicroUsd(usage: BilledUsage, price: ModelPrice, options: CostOptions): number | null {
  const table = price.tiers[options.tier];
  if (table === null) return null;
  const input = wholeTokens(usage.inputTokens);
  const output = wholeTokens(usage.outputTokens);
  const cached = Math.min(wholeTokens(usage.cachedTokens), input);
  const written = Math.min(wholeTokens(usage.cacheWriteTokens ?? 0), input - cached);
  const reasoning = Math.min(wholeTokens(usage.reasoningTokens), output);

  const rates = ratesFor(table, input);
  const parts = [
    amount(input - cached - written, rates.input),
    amount(cached, rates.cachedInput),
    amount(written, rates.cacheWrite),
    amount(output - reasoning, rates.output),
    amount(reasoning, rates.reasoning),
  ];
  let sum = rates.perRequest;
  for (const part of parts) {
    if (part === null) return null;
    sum += part;
  }
  return microUsdOfAtto(sum);
}

/**
 * The most that one call can cost, rounded up: all input at the dearest rate it could meet, whether cached or written to a
 * cache, and all the output that is allowed.
 *
 * @param inputTokens an upper bound; an estimate must be raised by its error first
 * @param outputCap the request's cap times its number of choices; null if it has none: then the model's longest output
 * counts, or else its context window
 * @returns null if there is no bound (no cap, and nothing known of the model) or no price: under a budget the call must then
 * be refused, or given a cap
 */
export function worstCaseMicroUsd(
  inputTokens: number,
  outputCap: number | null,
  price: ModelPrice,
  options: CostOptions,
): number | null {
  const table = price.tiers[options.tier];
  const outputTokens = outputCap ?? price.maxOutputTokens ?? price.contextWindowTokens;
  if (table === null || outputTokens === null) return null;
  const input = wholeTokens(inputTokens);
  const reachable = table.above.filter((band) => input > band.inputTokens).map((band) => band.rates);

  let dearest: AttoUsd = 0n;
  for (const rates of [table.base, ...reachable]) {
    const ofInput = amount(input, highest(rates.input, rates.cachedInput, rates.cacheWrite));
    const ofOutput = amount(wholeTokens(outputTokens), highest(rates.output, rates.reasoning));
    if (ofInput === null || ofOutput === null) return null;
    const sum = rates.perRequest + ofInput + ofOutput;
    if (sum > dearest) dearest = sum;
  }
  return microUsdOfAttoUp(dearest);
}

/** @returns the tier that a `service_tier` is priced as; null for a word that no price table knows */
export function tierOfServiceTier(serviceTier: string | null): PriceTier | null {
  switch (serviceTier) {
    case null:
    case 'auto':
    case 'default':
    case 'standard':
    case 'on_demand':
    // Capacity that was paid for in advance. Its tokens are priced as they would be without it.
    case 'scale':
      return 'standard';
    case 'flex':
    case 'batch':
    case 'priority':
      return serviceTier;
    // A newer name for the same in requests; the answer says priority.
    case 'fast':
      return 'priority';
    default:
      return null;
  }
}

/** @returns null if the tier that answered has no known price: it may be dearer than any other */
export function billedMicroUsd(usage: BilledUsage, price: ModelPrice): number | null {
  const tier = tierOfServiceTier(usage.serviceTier ?? null);
  return tier === null ? null : costMicroUsd(usage, price, { tier });
}

/**
 * The most that a call can cost, whichever tier answers: at the standard rates, which bound flex too (a server may
 * answer at the standard tier for want of room), or at the rates of the tier that was asked for where those are dearer.
 * `auto` leaves the tier to the project, which may be set to priority. So does a request that names no tier, but there
 * priority is rare, and reserving its rates for everybody would stop most runs long before their cap. See `isWithinBound`.
 *
 * @param inputTokens, outputCap as for `worstCaseMicroUsd`
 * @param serviceTier the tier that the request asks for; null for none
 * @returns null if there is no bound, or no price for a tier that may be dearer than standard
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
 * Whether `worstCaseAtTier` for the tier that was asked for still bounds a call whose price is unknown. It does not if the
 * project made it priority unasked, or if no table knows the tier that answered.
 */
export function isWithinBound(asked: string | null, answered: string | null): boolean {
  const tier = tierOfServiceTier(answered);
  return tier !== null && (tier !== 'priority' || tierOfServiceTier(asked) === 'priority');
}

/** The rates for a request with this many input tokens. */
export function ratesFor(table: RateTable, inputTokens: number): TokenRates {
  let rates = table.base;
  for (const band of table.above) if (inputTokens > band.inputTokens) rates = band.rates;
  return rates;
}

/** No tokens cost nothing, even at an unknown rate: an embedding has no output to price. */
function amount(tokens: number, rate: AttoUsd | null): AttoUsd | null {
  if (tokens === 0) return 0n;
  return rate === null ? null : BigInt(tokens) * rate;
}

function highest(...rates: readonly (AttoUsd | null)[]): AttoUsd | null {
  let top: AttoUsd | null = null;
  for (const rate of rates) if (rate !== null && (top === null || rate > top)) top = rate;
  return top;
}

function wholeTokens(tokens: number): number {
  return Number.isFinite(tokens) && tokens > 0 ? Math.ceil(tokens) : 0;
}
