import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { costMicroUsd } from '../../src/pricing/cost.js';
import { loadPackagedPrices, PACKAGED_PRICES } from '../../src/pricing/packaged-prices.js';
import type { ModelPrice, PriceBook, PriceTier } from '../../src/pricing/price-book.js';
import { usdPerMillion } from './usd-per-million.js';

const nowMs = Date.parse('2026-11-15T12:00:00Z');
const OPENAI = 'https://api.openai.com/v1';

let book: PriceBook;

beforeAll(async () => {
  book = await loadPackagedPrices();
});

function priceOf(model: string, baseUrl: string | null = null): ModelPrice {
  const price = book.priceOf(model, { baseUrl, nowMs });
  if (price === null) throw new Error(`${model} has no price`);
  return price;
}

/** US dollars per million tokens: input, cached input, output. */
function rates(price: ModelPrice, tier: PriceTier = 'standard', above = -1): (number | null)[] | null {
  const table = price.tiers[tier];
  if (table === null) return null;
  const held = above < 0 ? table.base : table.above[above]?.rates;
  if (held === undefined) return null;
  return [held.input, held.cachedInput, held.output].map((rate) =>
    rate === null ? null : usdPerMillion(rate),
  );
}

describe('the prices that come with the program', () => {
  it('carry the date of the package that is installed', () => {
    const installed: unknown = JSON.parse(
      readFileSync(
        new URL('../../node_modules/@pydantic/genai-prices/package.json', import.meta.url),
        'utf8',
      ),
    );
    // With a new version of the package its publication date must be looked up.
    expect(installed).toMatchObject({ version: PACKAGED_PRICES.version });
    expect(book.date).toBe(PACKAGED_PRICES.date);
    expect(priceOf('gpt-4o').table).toEqual({ source: book.source, date: book.date });
  });

  it.each([
    ['gpt-4o', [2.5, 1.25, 10]],
    ['gpt-4o-2024-05-13', [5, 5, 15]],
    ['gpt-4o-mini', [0.15, 0.075, 0.6]],
    ['gpt-4o-mini-2024-07-18', [0.15, 0.075, 0.6]],
    ['gpt-5', [1.25, 0.125, 10]],
    ['o3', [2, 0.5, 8]],
    ['text-embedding-3-small', [0.02, 0.02, null]],
    ['claude-haiku-4-5', [1, 0.1, 5]],
    ['ft:gpt-4o-mini-2024-07-18:acme::abc', [0.3, 0.3, 1.2]],
  ])('know %s by its name alone', (model, expected) => {
    expect(rates(priceOf(model))).toEqual(expected);
  });

  it.each([
    ['llama-3.3-70b-versatile', 'https://api.groq.com/openai/v1', [0.59, 0.59, 0.79]],
    ['openai/gpt-4o-mini', 'https://openrouter.ai/api/v1', [0.15, 0.075, 0.6]],
    ['gpt-4o', 'https://my-resource.openai.azure.com/openai/v1/', [2.5, 1.25, 10]],
    ['gpt-4o-mini', OPENAI, [0.15, 0.075, 0.6]],
  ])('know %s at %s', (model, baseUrl, expected) => {
    expect(rates(priceOf(model, baseUrl))).toEqual(expected);
  });

  it('hold at a gateway of the user for models that only one vendor serves', () => {
    expect(rates(priceOf('gpt-4o-mini', 'http://127.0.0.1:4000/v1'))).toEqual([0.15, 0.075, 0.6]);
    expect(rates(priceOf('openai/gpt-4o-mini', 'https://llm.example.com/v1'))).toEqual([0.15, 0.075, 0.6]);
  });

  it.each([
    ['gpt-99-mega', null],
    ['gpt-99-mega', OPENAI],
    ['claude-haiku-4-5', OPENAI],
    ['my-deployment', 'https://my-resource.openai.azure.com/openai/v1/'],
    // Open models cost what their host asks, and nothing on one's own machine.
    ['deepseek-r1', 'http://127.0.0.1:11434/v1'],
    ['mistral', null],
    ['openai/gpt-oss-20b', 'http://127.0.0.1:8000/v1'],
    // Paid by the minute, not by the token.
    ['whisper-1', OPENAI],
    ['', null],
  ])('do not know %s at %s', (model, baseUrl) => {
    expect(book.priceOf(model, { baseUrl, nowMs })).toBeNull();
  });

  it('price a simulated model only for a rehearsal', () => {
    const query = { baseUrl: 'http://127.0.0.1:9/v1', nowMs };
    expect(book.priceOf('simulated/gpt-4o-mini', query)).toBeNull();
    expect(book.priceOf('simulated/gpt-4o-mini', { ...query, rehearsed: true })).toEqual(
      priceOf('gpt-4o-mini'),
    );
  });

  it('change on the day the price changed, for the same model', () => {
    const at = (date: string) => book.priceOf('o3', { baseUrl: OPENAI, nowMs: Date.parse(date) });
    const before = at('2025-06-01T00:00:00Z');
    const after = at('2025-07-01T00:00:00Z');
    expect(before !== null && rates(before)).toEqual([10, 0.5, 40]);
    expect(after !== null && rates(after)).toEqual([2, 0.5, 8]);
    expect(at('2025-06-01T00:00:00Z')).toEqual(before);
  });

  it('change with the hour if the provider has an off-peak price', () => {
    const at = (date: string) =>
      book.priceOf('deepseek-chat', { baseUrl: 'https://api.deepseek.com', nowMs: Date.parse(date) });
    const [day, night] = [at('2026-11-15T12:00:00Z'), at('2026-11-15T20:00:00Z')];
    expect(day !== null && night !== null && (rates(night)?.[0] ?? 9) < (rates(day)?.[0] ?? 0)).toBe(true);
  });

  it('keep models apart that share a price list entry', () => {
    expect(priceOf('gpt-5', OPENAI).contextWindowTokens).toBe(400_000);
    expect(priceOf('gpt-5-chat-latest', OPENAI).contextWindowTokens).toBe(128_000);
    expect(priceOf('gpt-5', OPENAI).tiers.flex).not.toBeNull();
    expect(priceOf('gpt-5-chat-latest', OPENAI).tiers.flex).toBeNull();
  });

  it.each([
    ['gpt-4o-mini', 128_000, 16_384],
    ['gpt-4.1', 1_047_576, 32_768],
    ['gpt-4', 8_192, 8_192],
    ['text-embedding-3-small', 8_192, null],
    ['claude-haiku-4-5', 200_000, null],
  ])('know how much %s takes and gives', (model, contextWindowTokens, maxOutputTokens) => {
    expect(priceOf(model)).toMatchObject({ contextWindowTokens, maxOutputTokens });
  });
});

describe('batch and flex prices', () => {
  it.each([
    ['OpenAI from gpt-5 on, with cached input halved too', 'gpt-5', OPENAI, [0.625, 0.0625, 5]],
    ['OpenAI before, without a discount for cached input', 'gpt-4.1', OPENAI, [1, 1, 4]],
    ['embeddings', 'text-embedding-3-small', OPENAI, [0.01, 0.01, null]],
    [
      'Groq, whose discounts do not add up',
      'openai/gpt-oss-20b',
      'https://api.groq.com/openai/v1',
      [0.0375, 0.0375, 0.15],
    ],
    [
      'Gemini, where the discount of the cache goes first',
      'gemini-2.5-flash',
      'https://generativelanguage.googleapis.com/v1beta/openai/',
      [0.15, 0.03, 1.25],
    ],
  ])('are half for %s', (_, model, baseUrl, expected) => {
    expect(rates(priceOf(model, baseUrl), 'batch')).toEqual(expected);
  });

  it.each([
    ['openai/gpt-4o-mini', 'https://openrouter.ai/api/v1'],
    ['deepseek-chat', 'https://api.deepseek.com'],
    ['meta-llama/Llama-3.3-70B-Instruct-Turbo', 'https://api.together.xyz/v1'],
  ])('are unknown for %s at %s, where none is offered for all models', (model, baseUrl) => {
    const price = priceOf(model, baseUrl);
    expect(price.tiers.batch).toBeNull();
    const usage = { inputTokens: 10, outputTokens: 10, cachedTokens: 0, reasoningTokens: 0 };
    expect(costMicroUsd(usage, price, { tier: 'batch' })).toBeNull();
  });

  it('of flex are those of batch for the reasoning models of OpenAI, and none for others', () => {
    expect(rates(priceOf('o3', OPENAI), 'flex')).toEqual([1, 0.25, 4]);
    expect(rates(priceOf('gpt-5-mini', OPENAI), 'flex')).toEqual([0.125, 0.0125, 1]);
    expect(priceOf('gpt-4o', OPENAI).tiers.flex).toBeNull();
    expect(priceOf('o3', OPENAI).tiers.priority).toBeNull();
  });

  it('of flex are half for Gemini, except for cached input, which has a discount of its own', () => {
    const price = priceOf('gemini-2.5-flash', 'https://generativelanguage.googleapis.com/v1beta/openai/');
    expect(rates(price, 'flex')).toEqual([0.15, 0.03, 1.25]);
    expect(rates(price)).toEqual([0.3, 0.03, 2.5]);
    const cached = { inputTokens: 1_000_000, outputTokens: 0, cachedTokens: 1_000_000, reasoningTokens: 0 };
    expect(costMicroUsd(cached, price, { tier: 'flex' })).toBe(30_000);
  });

  it('of flex are the standard ones at Groq', () => {
    const price = priceOf('llama-3.3-70b-versatile', 'https://api.groq.com/openai/v1');
    expect(rates(price, 'flex')).toEqual(rates(price));
  });

  it('follow a long prompt into its dearer rates', () => {
    const price = priceOf('gpt-5.4', OPENAI);
    expect(rates(price, 'standard', 0)).toEqual([5, 0.5, 22.5]);
    expect(rates(price, 'batch', 0)).toEqual([2.5, 0.25, 11.25]);
  });
});
