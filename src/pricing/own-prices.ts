/** This program's own price format, short enough to write by hand. */
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import { type AttoUsd, attoOfUsd, attoPerTokenOfMillion } from './money.js';
import { type FilePrice, type RateTable, type TokenRates, tokenRates } from './price-book.js';
import { rescaledRates } from './tier-discounts.js';

/** What is wrong with a file of prices. The message continues the place: "must be ...". */
export class PriceProblem extends Error {
  /**
   * @param place e.g. `models["my-model"].input`; empty for the file as a whole
   * @param hint what to do, if it is something other than to follow the format
   */
  constructor(
    readonly place: string,
    reason: string,
    readonly hint: string | null,
  ) {
    super(reason);
  }
}

/**
 * Reads
 *
 *     {
 *       "date": "2026-11-01",
 *       "models": {
 *         "my-model": {
 *           "input": 0.15, "output": 0.60,
 *           "cached_input": 0.075, "cache_write": 0.1875, "reasoning": 0.60, "per_request": 0.005,
 *           "batch": 0.5,
 *           "flex": { "input": 0.075, "output": 0.30 },
 *           "above": [{ "input_tokens": 200000, "input": 0.30, "output": 0.90 }],
 *           "context_window": 128000, "max_output": 16384
 *         }
 *       }
 *     }
 *
 * Rates are US dollars per million tokens; `per_request` is in dollars per call. Only `input` is required; embeddings have
 * no `output`. Unless stated, cached and written tokens cost what input costs, and reasoning what output costs. 0 means
 * free, for a model of one's own. `batch`, `flex` and `priority` are either a factor for every rate or rates of their own; a
 * tier that is left out has no price. The rates `above` a number of input tokens hold for the whole request; those left
 * out there do not change. Misspelt and unknown fields are refused, since ignoring them would cost money.
 * @throws PriceProblem
 */
export function readOwnTable(file: JsonObject): {
  readonly date: string | null;
  readonly prices: Map<string, FilePrice>;
} {
  checkFields(file, ['date', 'models'], '');
  const models = file['models'];
  if (!isJsonObject(models)) fail('models', 'must be an object of model names and their rates');
  const prices = new Map<string, FilePrice>();
  for (const [name, entry] of Object.entries(models)) {
    prices.set(name, readEntry(entry, `models[${JSON.stringify(name)}]`));
  }
  return { date: readDate(file['date']), prices };
}

function fail(place: string, reason: string, hint: string | null = null): never {
  throw new PriceProblem(place, reason, hint);
}

const RATES = ['input', 'output', 'cached_input', 'cache_write', 'reasoning', 'per_request'];
const TIERS = ['batch', 'flex', 'priority'] as const;

function readEntry(entry: Json, place: string): FilePrice {
  if (!isJsonObject(entry)) fail(place, 'must be an object with the rates of the model');
  checkFields(entry, [...RATES, ...TIERS, 'above', 'context_window', 'max_output'], place);
  const base = readRates(entry, place, null);
  const standard: RateTable = { base, above: readBands(entry['above'], base, place) };
  const tier = (name: (typeof TIERS)[number]) => readTier(entry[name], standard, `${place}.${name}`);
  return {
    servedBy: null,
    tiers: { standard, batch: tier('batch'), flex: tier('flex'), priority: tier('priority') },
    contextWindowTokens: readCount(entry['context_window'], `${place}.context_window`),
    maxOutputTokens: readCount(entry['max_output'], `${place}.max_output`),
  };
}

/** @param base the rates that hold unless stated; null if `input` must be stated */
function readRates(entry: JsonObject, place: string, base: TokenRates | null): TokenRates {
  const rate = (field: string): AttoUsd | null => readRate(entry[field], `${place}.${field}`);
  const input = rate('input') ?? base?.input ?? null;
  if (input === null) fail(place, 'lacks "input"');
  const output = rate('output') ?? base?.output ?? null;
  const perRequest = entry['per_request'];
  return tokenRates({
    input,
    output,
    cachedInput: rate('cached_input') ?? discountOf(base?.cachedInput, base?.input),
    cacheWrite: rate('cache_write') ?? discountOf(base?.cacheWrite, base?.input),
    reasoning: rate('reasoning') ?? discountOf(base?.reasoning, base?.output),
    perRequest:
      perRequest === undefined
        ? (base?.perRequest ?? null)
        : attoOfUsd(readNumber(perRequest, `${place}.per_request`)),
  });
}

/** A rate that equalled its whole goes on equalling it; a rate of its own stays as it is. */
function discountOf(rate: AttoUsd | null | undefined, whole: AttoUsd | null | undefined): AttoUsd | null {
  return rate === undefined || rate === whole ? null : rate;
}

function readBands(bands: Json | undefined, base: TokenRates, place: string): RateTable['above'] {
  if (bands === undefined) return [];
  if (!Array.isArray(bands)) fail(`${place}.above`, 'must be an array');
  const read = bands.map((band, index) => {
    const at = `${place}.above[${index}]`;
    if (!isJsonObject(band)) fail(at, 'must be an object with "input_tokens" and rates');
    checkFields(band, [...RATES, 'input_tokens'], at);
    const inputTokens = readCount(band['input_tokens'], `${at}.input_tokens`);
    if (inputTokens === null) fail(at, 'lacks "input_tokens"');
    return { inputTokens, rates: readRates(band, at, base) };
  });
  return read.sort((a, b) => a.inputTokens - b.inputTokens);
}

function readTier(tier: Json | undefined, standard: RateTable, place: string): RateTable | null {
  if (tier === undefined) return null;
  if (isJsonObject(tier)) {
    checkFields(tier, [...RATES, 'above'], place);
    const base = readRates(tier, place, null);
    return { base, above: readBands(tier['above'], base, place) };
  }
  return rescaledRates(
    standard,
    attoOfUsd(readNumber(tier, place, 'must be a factor such as 0.5, or an object of rates')),
    attoOfUsd(1),
  );
}

/** Nobody sells a million tokens for less than a hundredth of a cent: such a number is meant per token. */
const LOWEST_USD_PER_MILLION = 0.0001;

function readRate(value: Json | undefined, place: string): AttoUsd | null {
  if (value === undefined) return null;
  const usd = readNumber(value, place);
  if (usd > 0 && usd < LOWEST_USD_PER_MILLION) {
    fail(
      place,
      `is ${usd}, which is far too little for a million tokens`,
      `If that is the price of one token, write ${Number((usd * 1e6).toPrecision(12))}.`,
    );
  }
  return attoPerTokenOfMillion(usd);
}

function readNumber(
  value: Json,
  place: string,
  demand = 'must be a number of US dollars, 0 or more',
): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0)
    fail(place, `${demand}, not ${JSON.stringify(value)}`);
  return value;
}

function readCount(value: Json | undefined, place: string): number | null {
  if (value === undefined) return null;
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value <= 0) {
    fail(place, `must be a whole number of tokens above 0, not ${JSON.stringify(value)}`);
  }
  return value;
}

function readDate(value: Json | undefined): string | null {
  if (value === undefined) return null;
  const isDate =
    typeof value === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(value) && !Number.isNaN(Date.parse(value));
  if (!isDate) fail('date', `must be a date like "2026-11-01", not ${JSON.stringify(value)}`);
  return value;
}

function checkFields(entry: JsonObject, allowed: readonly string[], place: string): void {
  const unknown = Object.keys(entry).find((field) => !allowed.includes(field));
  if (unknown !== undefined) {
    fail(place, `has an unknown field ${JSON.stringify(unknown)}`, `The fields are: ${allowed.join(', ')}.`);
  }
}
