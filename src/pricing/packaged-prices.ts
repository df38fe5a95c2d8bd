/** Prices from the package `@pydantic/genai-prices`, which its makers keep current and which works offline. */
import type { ModelPrice as ListedPrice, PriceCalculation, TieredPrices } from '@pydantic/genai-prices';
import { bareModelName } from './encoding.js';
import { type AttoUsd, attoOfUsd, attoPerTokenOfMillion } from './money.js';
import {
  type ModelPrice,
  modelToPrice,
  type PriceBook,
  type PriceQuery,
  type PriceTier,
  type RateTable,
  type TokenRates,
  tokenRates,
} from './price-book.js';
import { discountedRates } from './tier-discounts.js';

/** When the version in use was published, since the package itself has no date. A test keeps the two together. */
export const PACKAGED_PRICES = { version: '0.1.8', date: '2026-09-23' } as const;

const TABLE = {
  source: `@pydantic/genai-prices ${PACKAGED_PRICES.version}`,
  date: PACKAGED_PRICES.date,
} as const;

type PricePackage = typeof import('@pydantic/genai-prices');
type ModelLimits = { readonly context_window?: number; readonly max_output_tokens?: number };

/** Loads the tables (some 50 ms and 15 MB), once per process. */
export async function loadPackagedPrices(): Promise<PriceBook> {
  const [prices, limits] = await Promise.all([
    import('@pydantic/genai-prices'),
    import('gpt-tokenizer/models'),
  ]);
  return new PackagedPrices(prices, limits as unknown as Record<string, ModelLimits>);
}

interface KnownPrice {
  readonly listed: ListedPrice | null;
  readonly holdsAlways: boolean;
  readonly price: ModelPrice | null;
}

class PackagedPrices implements PriceBook {
  readonly source = TABLE.source;
  readonly date = TABLE.date;
  readonly #package: PricePackage;
  readonly #limits: Readonly<Record<string, ModelLimits>>;
  /** By server and model. Most prices hold at any time; the others hold until the package lists another. */
  readonly #known = new Map<string, KnownPrice>();

  constructor(pricePackage: PricePackage, limits: Readonly<Record<string, ModelLimits>>) {
    this.#package = pricePackage;
    this.#limits = limits;
  }

  priceOf(asked: string, query: PriceQuery): ModelPrice | null {
    const model = modelToPrice(asked, query);
    if (model === null) return null;
    const key = `${query.baseUrl ?? ''} ${model}`;
    const known = this.#known.get(key);
    if (known?.holdsAlways) return known.price;

    const found = this.#lookUp(model, query);
    if (found !== null && found.model_price === known?.listed) return known.price;
    const price = found === null ? null : this.#convert(model, found);
    this.#known.set(key, {
      listed: found?.model_price ?? null,
      holdsAlways: found === null || !Array.isArray(found.model.prices),
      price,
    });
    return price;
  }

  #lookUp(model: string, { baseUrl, nowMs }: PriceQuery): PriceCalculation | null {
    const { calcPrice, findProvider } = this.#package;
    const timestamp = new Date(nowMs);
    const at = (name: string, providerId: string): PriceCalculation | null =>
      calcPrice(NO_USAGE, name, { providerId, timestamp });
    const provider = baseUrl === null ? undefined : findProvider({ providerApiUrl: baseUrl });
    if (provider !== undefined) return at(model, provider.id);

    // A server that the tables do not know: a gateway, or the user's own. Only the name of a model that nobody else can
    // serve says whose price it is; an open model costs whatever its host asks.
    const name = model.slice(model.lastIndexOf('/') + 1);
    const owner = CLOSED_MODELS.find(([pattern]) => pattern.test(name.toLowerCase()))?.[1];
    return owner === undefined ? null : at(name, owner);
  }

  #convert(asked: string, { model, provider, model_price: listed }: PriceCalculation): ModelPrice | null {
    const standard = rateTable(listed);
    // The one kind of model that OpenAI serves for nothing. Otherwise a model without a token price has another price.
    const isFree = provider.id === 'openai' && model.id === 'moderation';
    if (standard.base.input === null && !isFree) return null;
    const rates = isFree ? FREE : standard;
    const bare = bareModelName(asked);
    const limits = provider.id === 'openai' || provider.id === 'azure' ? this.#limits[bare] : undefined;
    const tier = (name: Exclude<PriceTier, 'standard'>) => discountedRates(rates, provider.id, bare, name);
    return {
      model: model.id,
      table: TABLE,
      tiers: { standard: rates, batch: tier('batch'), flex: tier('flex'), priority: tier('priority') },
      contextWindowTokens: limits?.context_window ?? model.context_window ?? null,
      maxOutputTokens: limits?.max_output_tokens ?? null,
    };
  }
}

/** The package refuses usage that does not add up, so it is asked only for rates. */
const NO_USAGE = { input_tokens: 0, output_tokens: 0 };

const CLOSED_MODELS: readonly (readonly [RegExp, string])[] = [
  [
    /^gpt-(?!oss)|^chatgpt-|^o[134](?:-|$)|^ft:(?:gpt|o\d)|^text-embedding-(?:3|ada)|^(?:omni|text)-moderation/,
    'openai',
  ],
  [/^claude-/, 'anthropic'],
  [/^gemini-/, 'google'],
  [/^grok-/, 'x-ai'],
];

const FREE: RateTable = { base: tokenRates({ input: 0n, output: 0n }), above: [] };

function rateTable(listed: ListedPrice): RateTable {
  const thresholds = new Set<number>();
  for (const price of Object.values(listed)) {
    if (typeof price === 'object') for (const tier of price.tiers) thresholds.add(tier.start);
  }
  return {
    base: ratesAbove(listed, -1),
    above: [...thresholds]
      .sort((a, b) => a - b)
      .map((inputTokens) => ({ inputTokens, rates: ratesAbove(listed, inputTokens) })),
  };
}

function ratesAbove(listed: ListedPrice, threshold: number): TokenRates {
  const rate = (field: string): AttoUsd | null => {
    const price = listed[field];
    return price === undefined ? null : attoPerTokenOfMillion(priceAbove(price, threshold));
  };
  const perThousandRequests = listed['requests_kcount'] ?? 0;
  return tokenRates({
    input: rate('input_mtok'),
    output: rate('output_mtok'),
    cachedInput: rate('cache_read_mtok'),
    cacheWrite: rate('cache_write_mtok'),
    reasoning: rate('output_reasoning_mtok'),
    perRequest: attoOfUsd(priceAbove(perThousandRequests, threshold)) / 1_000n,
  });
}

function priceAbove(price: number | TieredPrices, threshold: number): number {
  if (typeof price === 'number') return price;
  const reached = price.tiers.filter((tier) => tier.start <= threshold);
  return reached.reduce((last, tier) => (tier.start >= last.start ? tier : last), {
    start: -1,
    price: price.base,
  }).price;
}
