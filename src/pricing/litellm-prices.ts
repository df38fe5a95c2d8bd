/**
 * LiteLLM's `model_prices_and_context_window.json`: US dollars per token by `model` or `provider/model`, with
 * suffixes for tiers (`_batches`, `_flex`, `_priority`) and for long prompts (`_above_200k_tokens`).
 */
import { isJsonObject, type JsonObject } from '../core/json.js';
import { bareModelName } from './encoding.js';
import { type AttoUsd, attoOfUsd } from './money.js';
import {
  type FilePrice,
  mapRates,
  type PriceTier,
  type RateTable,
  type StatedRates,
  type TokenRate,
  type TokenRates,
  tokenRates,
} from './price-book.js';
import { discountedRates } from './tier-discounts.js';

/** Documents the fields; no model. */
const SAMPLE = 'sample_spec';

/** Whether a parsed file looks like LiteLLM's: it has objects with a provider among its values. */
export function isLiteLlmTable(file: JsonObject): boolean {
  return Object.entries(file).some(
    ([name, entry]) =>
      name !== SAMPLE && isJsonObject(entry) && typeof entry['litellm_provider'] === 'string',
  );
}

/**
 * Leaves out models without a price per token (images, speech, rerank) and prices that cannot be sums of dollars: they count
 * as unknown. Off-peak discounts are not read: the full price is taken.
 */
export function readLiteLlmTable(file: JsonObject): Map<string, FilePrice> {
  const prices = new Map<string, FilePrice>();
  for (const [name, entry] of Object.entries(file)) {
    if (name === SAMPLE || !isJsonObject(entry)) continue;
    const price = priceOfEntry(name, entry);
    if (price !== null) prices.set(name, price);
  }
  return prices;
}

function priceOfEntry(name: string, entry: JsonObject): FilePrice | null {
  const standard = rateTable(entry, 'standard', null);
  if (standard === null) return null;
  const provider = providerOf(entry);
  const tier = (of: Exclude<PriceTier, 'standard'>): RateTable | null =>
    rateTable(entry, of, standard) ?? discountedRates(standard, provider, bareModelName(name), of);
  return {
    servedBy: typeof entry['litellm_provider'] === 'string' ? entry['litellm_provider'] : null,
    tiers: { standard, batch: tier('batch'), flex: tier('flex'), priority: tier('priority') },
    contextWindowTokens: countOf(entry['max_input_tokens'] ?? entry['max_tokens']),
    maxOutputTokens: countOf(entry['max_output_tokens'] ?? entry['max_tokens']),
  };
}

const FIELDS: ReadonlyMap<string, keyof StatedRates> = new Map([
  ['input_cost_per_token', 'input'],
  ['output_cost_per_token', 'output'],
  ['cache_read_input_token_cost', 'cachedInput'],
  ['cache_creation_input_token_cost', 'cacheWrite'],
  ['output_cost_per_reasoning_token', 'reasoning'],
  ['input_cost_per_request', 'perRequest'],
]);

const SUFFIXES: ReadonlyMap<string, PriceTier> = new Map([
  ['batches', 'batch'],
  ['flex', 'flex'],
  ['priority', 'priority'],
]);

/** The suffix of the tier comes before or after the threshold. */
const FIELD = /^(\w+?)(?:_(batches|flex|priority))?(?:_above_(\d+)k_tokens)?(?:_(batches|flex|priority))?$/;

/**
 * @param standard null for the standard tier itself. If another tier states no long-prompt rates of its own, the standard
 * ones are carried over in proportion
 */
function rateTable(entry: JsonObject, tier: PriceTier, standard: RateTable | null): RateTable | null {
  const stated = statedRates(entry, tier);
  const { input, output, ...others } = stated.get(0) ?? {};
  if (input === undefined) return null;
  const base = tokenRates({ input, output: output ?? null, ...others });

  const carried = new Map<number, TokenRates>();
  for (const band of standard === null ? multiplied(entry, base) : standard.above) {
    carried.set(
      band.inputTokens,
      standard === null ? band.rates : inProportion(base, standard.base, band.rates),
    );
  }
  const thresholds = new Set([...stated.keys(), ...carried.keys()].filter((threshold) => threshold > 0));
  const above = [...thresholds]
    .sort((a, b) => a - b)
    .map((inputTokens) => {
      const rates = overlaid(base, carried.get(inputTokens) ?? base, stated.get(inputTokens) ?? {});
      return { inputTokens, rates };
    });
  return { base, above };
}

/** By threshold in tokens, 0 for the base. */
function statedRates(entry: JsonObject, tier: PriceTier): Map<number, Partial<StatedRates>> {
  const stated = new Map<number, Partial<StatedRates>>();
  for (const [name, value] of Object.entries(entry)) {
    const [, field = '', before, thousands, after] = FIELD.exec(name) ?? [];
    const rate = FIELDS.get(field);
    const suffix = before ?? after;
    const tierHere = suffix === undefined ? 'standard' : SUFFIXES.get(suffix);
    if (rate === undefined || tierHere !== tier || !isPlausible(value, rate)) continue;
    const threshold = Number(thousands ?? 0) * 1_000;
    stated.set(threshold, { ...stated.get(threshold), [rate]: attoOfUsd(value) });
  }
  return stated;
}

/** A cent per token is ten times the dearest model there ever was; a larger number means something else. */
const HIGHEST_USD_PER_TOKEN = 0.01;

function isPlausible(value: unknown, field: keyof StatedRates): value is number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) return false;
  return field === 'perRequest' || value <= HIGHEST_USD_PER_TOKEN;
}

/** A rate that equals its whole at the base (no discount for cached input, say) also equals it above the threshold. */
function overlaid(base: TokenRates, carried: TokenRates, stated: Partial<StatedRates>): TokenRates {
  const whole = { input: stated.input ?? carried.input, output: stated.output ?? carried.output };
  const rates = mapRates(carried, (rate, field) => {
    const side = sideOf(field);
    return stated[field] ?? (base[field] === base[side] ? whole[side] : rate);
  });
  return { ...rates, ...whole, perRequest: stated.perRequest ?? carried.perRequest };
}

/** The other way to state long-prompt rates: a threshold, and factors for input and output. */
function multiplied(entry: JsonObject, base: TokenRates): RateTable['above'] {
  const threshold = countOf(entry['long_context_input_token_threshold']);
  if (threshold === null) return [];
  const times = (rate: AttoUsd | null, factor: unknown): AttoUsd | null =>
    rate === null || typeof factor !== 'number' || !(factor >= 0)
      ? rate
      : (rate * attoOfUsd(factor)) / attoOfUsd(1);
  const onInput = entry['long_context_input_cost_multiplier'];
  const onOutput = entry['long_context_output_cost_multiplier'];
  const rates = mapRates(base, (rate, field) => times(rate, sideOf(field) === 'output' ? onOutput : onInput));
  return [{ inputTokens: threshold, rates }];
}

function inProportion(tier: TokenRates, standard: TokenRates, standardAbove: TokenRates): TokenRates {
  return mapRates(tier, (here, field) => {
    const [base, above] = [standard[field], standardAbove[field]];
    if (here === null || base === null || above === null || base === 0n) return here;
    return (here * above + base / 2n) / base;
  });
}

/** Providers whose tier discounts are known, under the names that the price package has for them. */
function providerOf(entry: JsonObject): string | null {
  const name = entry['litellm_provider'];
  if (typeof name !== 'string') return null;
  if (name === 'gemini' || name.startsWith('vertex_ai-language')) return 'google';
  return name === 'text-completion-openai' ? 'openai' : name;
}

function countOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null;
}

/** Which of the two whole rates a rate goes with. */
function sideOf(field: TokenRate): 'input' | 'output' {
  return field === 'output' || field === 'reasoning' ? 'output' : 'input';
}
