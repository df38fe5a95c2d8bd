/** What a call cost, and what it could cost at most, in whole micro-dollars. */
import type { BilledUsage } from '../core/usage.js';
import type { ModelPrice, PriceTier, RateTable, TokenRates } from './model-price.js';
import { type AttoUsd, microUsdOfAtto, microUsdOfAttoUp } from './money.js';

export interface CostOptions {
  readonly tier: PriceTier;
}

/**
 * Cost = fresh input + cached + written to cache + output + reasoning, each at its rate, plus a fee per request
 * where there is one; a prompt over a threshold moves the whole request to the dearer rates. Rounded half up once,
 * on the sum. Parts larger than their whole (servers report such things) count as the whole.
 *
 * @returns null where a rate that the usage needs is unknown; tools that are billed by use (web search) are not in it
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
 * The most that one call can cost, rounded up: all input at the dearest rate it could meet, whatever is cached or
 * written to a cache, and all output that is allowed.
 *
 * @param inputTokens an upper bound; an estimate must be raised by its error first
 * @param outputCap the request's cap, times its number of choices; null without one. Then the model's longest
 * output is taken, else its context window
 * @returns null where there is no bound (no cap, and nothing known of the model) or no price: the call must then
 * be refused under a budget, or given a cap
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

/** The rates that hold for a request of so many input tokens. */
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
