/**
 * What providers charge for their Batch API and for flex processing, relative to their standard price. Price tables leave
 * this out, since it is one rule per provider. Priority costs more, differently for each model, so no rule covers it.
 */

import type { AttoUsd } from './money.js';
import { mapRates, type PriceTier, type RateTable, type TokenRates } from './price-book.js';

/** Which discount cached tokens get, as they have one of their own. */
type CachedTokens =
  /** Both discounts apply. */
  | 'both'
  /** Only the cache's. */
  | 'cache'
  /** Only the tier's; also if the provider does not say, since this is the dearer guess. */
  | 'tier';

interface Discount {
  readonly percentOfStandard: bigint;
  readonly cachedTokens: CachedTokens;
}

type DiscountRule = (model: string) => Discount | null;

const half = (cachedTokens: CachedTokens): Discount => ({ percentOfStandard: 50n, cachedTokens });

/**
 * OpenAI lists a batch price for cached input from gpt-5 on, and none for older models. Flex is offered for o3,
 * o4-mini and gpt-5 onwards, at batch prices.
 */
const openaiBatch: DiscountRule = (model) => half(/^gpt-[5-9]/.test(model) ? 'both' : 'tier');
const openaiFlex: DiscountRule = (model) =>
  /^(?:o3|o4-mini)(?:-\d|$)|^gpt-[5-9](?!.*(?:chat|codex))/.test(model) ? half('both') : null;

/** By provider, as the price package names them. Those not listed offer none, or only for some models (Together). */
const RULES: Readonly<Record<string, Readonly<Partial<Record<PriceTier, DiscountRule>>>>> = {
  openai: { batch: openaiBatch, flex: openaiFlex },
  azure: { batch: () => half('tier') },
  anthropic: { batch: () => half('both') },
  google: { batch: () => half('cache'), flex: () => half('cache') },
  groq: { batch: () => half('tier'), flex: () => ({ percentOfStandard: 100n, cachedTokens: 'both' }) },
  mistral: { batch: () => half('tier') },
};

/** @returns the provider's rates in a tier other than standard; null if none are known */
export function discountedRates(
  standard: RateTable,
  provider: string | null,
  model: string,
  tier: Exclude<PriceTier, 'standard'>,
): RateTable | null {
  const discount = provider === null ? undefined : RULES[provider]?.[tier]?.(model);
  if (discount === undefined || discount === null) return null;
  return mapTable(standard, (rates) => discounted(rates, discount));
}

/** With a user's own factor for a tier, e.g. 0.5. Cached tokens get both discounts, since that is what the user says. */
export function rescaledRates(standard: RateTable, part: AttoUsd, whole: AttoUsd): RateTable {
  return mapTable(standard, (rates) => mapRates(rates, (rate) => share(rate, part, whole)));
}

function mapTable(table: RateTable, change: (rates: TokenRates) => TokenRates): RateTable {
  return {
    base: change(table.base),
    above: table.above.map(({ inputTokens, rates }) => ({ inputTokens, rates: change(rates) })),
  };
}

function discounted(rates: TokenRates, { percentOfStandard, cachedTokens }: Discount): TokenRates {
  const at = (rate: AttoUsd | null): AttoUsd | null => share(rate, percentOfStandard, 100n);
  const cachedInput = { both: at(rates.cachedInput), cache: rates.cachedInput, tier: at(rates.input) };
  return { ...mapRates(rates, at), cachedInput: cachedInput[cachedTokens] };
}

function share(rate: AttoUsd | null, part: AttoUsd, whole: AttoUsd): AttoUsd | null {
  return rate === null ? null : (rate * part + whole / 2n) / whole;
}
