import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LlmBatchError } from '../../src/core/errors.js';
import { costMicroUsd } from '../../src/pricing/cost.js';
import { openPriceBook } from '../../src/pricing/open-price-book.js';
import type { ModelPrice, PriceBook, PriceTier } from '../../src/pricing/price-book.js';
import { loadPriceFile } from '../../src/pricing/price-file.js';
import { usdPerMillion } from './usd-per-million.js';

const FIXTURES = join(import.meta.dirname, '..', '..', 'fixtures', 'prices');
const OWN = join(FIXTURES, 'own.json');
const LITELLM = join(FIXTURES, 'litellm.json');
const nowMs = Date.parse('2026-11-15T12:00:00Z');

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'llm-batch-prices-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

function priceOf(book: PriceBook, model: string, baseUrl: string | null = null): ModelPrice {
  const price = book.priceOf(model, { baseUrl, nowMs });
  if (price === null) throw new Error(`${model} has no price`);
  return price;
}

/** US dollars per million tokens: input, cached input, output. */
function rates(price: ModelPrice, tier: PriceTier = 'standard', above = -1): (number | null)[] | null {
  const table = price.tiers[tier];
  const held = above < 0 ? table?.base : table?.above[above]?.rates;
  if (held === undefined) return null;
  return [held.input, held.cachedInput, held.output].map((rate) =>
    rate === null ? null : usdPerMillion(rate),
  );
}

async function errorOf(content: string): Promise<LlmBatchError> {
  const path = join(folder, 'prices.json');
  await writeFile(path, content);
  const error: unknown = await loadPriceFile(path).catch((thrown: unknown) => thrown);
  if (!(error instanceof LlmBatchError)) throw new Error('no error was thrown');
  expect(error.exitCode).toBe(2);
  expect(error.message).toContain(path);
  return error;
}

describe('a price file in the short format', () => {
  it('states rates per million tokens, with its date', async () => {
    const book = await loadPriceFile(OWN);
    expect(book).toMatchObject({ source: OWN, date: '2026-11-01' });
    const price = priceOf(book, 'house-model');
    expect(rates(price)).toEqual([0.15, 0.075, 0.6]);
    expect(price).toMatchObject({
      model: 'house-model',
      table: { source: OWN, date: '2026-11-01' },
      contextWindowTokens: 128_000,
      maxOutputTokens: 16_384,
    });
  });

  it('scales every rate by the factor of a tier, and has no tier that it does not state', async () => {
    const price = priceOf(await loadPriceFile(OWN), 'house-model');
    expect(rates(price, 'batch')).toEqual([0.075, 0.0375, 0.3]);
    expect(rates(price, 'batch', 0)).toEqual([0.15, 0.075, 0.45]);
    expect(price.tiers.flex).toBeNull();
  });

  it('takes rates of a tier as they stand', async () => {
    expect(rates(priceOf(await loadPriceFile(OWN), 'gpt-4o'), 'flex')).toEqual([1, 0.25, 4]);
  });

  it('prices a long prompt by the rates above its threshold', async () => {
    const price = priceOf(await loadPriceFile(OWN), 'house-model');
    const cost = (inputTokens: number): number | null =>
      costMicroUsd({ inputTokens, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 }, price, {
        tier: 'standard',
      });
    expect(cost(200_000)).toBe(30_000);
    expect(cost(200_001)).toBe(60_000);
  });

  it('may say that a model is free, and leave out the output of an embedding model', async () => {
    const book = await loadPriceFile(OWN);
    const usage = { inputTokens: 9_000, outputTokens: 70, cachedTokens: 0, reasoningTokens: 0 };
    expect(costMicroUsd(usage, priceOf(book, 'our-llama'), { tier: 'standard' })).toBe(0);
    expect(costMicroUsd(usage, priceOf(book, 'embedder'), { tier: 'standard' })).toBeNull();
  });

  it('prices a dated snapshot as its model, and a simulated model in a rehearsal', async () => {
    const book = await loadPriceFile(OWN);
    expect(rates(priceOf(book, 'gpt-4o-2024-08-06'))).toEqual([2, 2, 8]);
    expect(book.priceOf('simulated/gpt-4o', { baseUrl: null, nowMs })).toBeNull();
    expect(book.priceOf('simulated/gpt-4o', { baseUrl: null, nowMs, rehearsed: true })).not.toBeNull();
  });

  it('keeps rates that a band leaves out', async () => {
    const path = join(folder, 'bands.json');
    const model = {
      input: 1,
      output: 2,
      reasoning: 3,
      above: [
        { input_tokens: 20, output: 9 },
        { input_tokens: 10, input: 5 },
      ],
    };
    await writeFile(path, JSON.stringify({ models: { m: model } }));
    const price = priceOf(await loadPriceFile(path), 'm');
    expect(rates(price, 'standard', 0)).toEqual([5, 5, 2]);
    expect(rates(price, 'standard', 1)).toEqual([1, 1, 9]);
    const reasoning = price.tiers.standard?.above.map((band) => usdPerMillion(band.rates.reasoning ?? 0n));
    expect(reasoning).toEqual([3, 3]);
  });

  it('may begin with a byte order mark', async () => {
    const path = join(folder, 'bom.json');
    await writeFile(path, '\uFEFF{"models":{"m":{"input":1}}}');
    expect(rates(priceOf(await loadPriceFile(path), 'm'))).toEqual([1, 1, null]);
  });
});

describe("a price file in LiteLLM's format", () => {
  it('states rates per token', async () => {
    const book = await loadPriceFile(LITELLM);
    expect(book.date).toBeNull();
    const price = priceOf(book, 'gpt-4.1');
    expect(rates(price)).toEqual([2, 0.5, 8]);
    expect(price).toMatchObject({ contextWindowTokens: 1_047_576, maxOutputTokens: 32_768 });
    expect(rates(priceOf(book, 'text-embedding-3-small'))).toEqual([0.02, 0.02, 0]);
  });

  it('has batch, flex and priority rates; a cached rate that a tier does not state is its input rate', async () => {
    const book = await loadPriceFile(LITELLM);
    expect(rates(priceOf(book, 'gpt-4.1'), 'batch')).toEqual([1, 1, 4]);
    expect(rates(priceOf(book, 'gpt-4.1'), 'priority')).toEqual([3.5, 3.5, 14]);
    expect(rates(priceOf(book, 'gpt-5.5'), 'flex')).toEqual([2.5, 0.25, 15]);
  });

  it("falls back on the provider's rule for a tier it does not state", async () => {
    const price = priceOf(await loadPriceFile(LITELLM), 'gpt-5-2025-08-07');
    expect(rates(price, 'batch')).toEqual([0.625, 0.0625, 5]);
    expect(price.tiers.priority).toBeNull();
  });

  it('has rates for long prompts, carried over to tiers in proportion', async () => {
    const price = priceOf(await loadPriceFile(LITELLM), 'gpt-5.5');
    expect(price.tiers.standard?.above.map((band) => band.inputTokens)).toEqual([272_000]);
    expect(rates(price, 'standard', 0)).toEqual([10, 1, 45]);
    expect(rates(price, 'flex', 0)).toEqual([5, 0.5, 22.5]);
    expect(rates(price, 'priority', 0)).toEqual([20, 20, 90]);
  });

  it('charges cached input of a long prompt as fresh where no discount is stated', async () => {
    const price = priceOf(await loadPriceFile(LITELLM), 'dashscope/qwen-long');
    expect(rates(price, 'standard', 0)).toEqual([3, 3, 5]);
  });

  it('reads long-prompt rates given as factors', async () => {
    const price = priceOf(await loadPriceFile(LITELLM), 'grok-long', 'https://api.x.ai/v1');
    expect(rates(price, 'standard', 0)).toEqual([2, 2, 3]);
  });

  it('finds a model under the prefix of its server', async () => {
    const book = await loadPriceFile(LITELLM);
    expect(rates(priceOf(book, 'llama-3.3-70b-versatile', 'https://api.groq.com/openai/v1'))).toEqual([
      0.59, 0.59, 0.79,
    ]);
    expect(rates(priceOf(book, 'gpt-4.1', 'https://my-resource.openai.azure.com/openai/v1/'))).toEqual([
      2, 0.5, 8,
    ]);
  });

  it("never takes another provider's price for a model of the same name", async () => {
    const book = await loadPriceFile(LITELLM);
    expect(
      book.priceOf('deepseek/deepseek-chat', { baseUrl: 'https://openrouter.ai/api/v1', nowMs }),
    ).toBeNull();
    expect(rates(priceOf(book, 'deepseek-chat', 'https://api.deepseek.com'))).toEqual([0.28, 0.28, 0.42]);
  });

  it.each(['sample_spec', '1024-x-1024/dall-e-2', 'meant-per-million', 'gpt-4o'])(
    'has no price for %s',
    async (model) => {
      expect((await loadPriceFile(LITELLM)).priceOf(model, { baseUrl: null, nowMs })).toBeNull();
    },
  );
});

describe('a price file beside the prices that come with the program', () => {
  it('overrules them for the models it names, and leaves the others alone', async () => {
    const book = await openPriceBook(OWN);
    expect(rates(priceOf(book, 'gpt-4o'))).toEqual([2, 2, 8]);
    expect(priceOf(book, 'gpt-4o').table.source).toBe(OWN);
    expect(rates(priceOf(book, 'gpt-4o-mini'))).toEqual([0.15, 0.075, 0.6]);
    expect(book.source).toMatch(/own\.json \+ @pydantic\/genai-prices \d/);
    expect(book.date).toBe('2026-11-01');
  });

  it('is not needed', async () => {
    expect(rates(priceOf(await openPriceBook(null), 'gpt-4o'))).toEqual([2.5, 1.25, 10]);
  });
});

describe('a bad price file', () => {
  it('that does not exist is named', async () => {
    const path = join(folder, 'none.json');
    await expect(loadPriceFile(path)).rejects.toMatchObject({
      code: 'PRICES_UNREADABLE',
      message: `The price file ${path} does not exist.`,
    });
    await expect(loadPriceFile(folder)).rejects.toMatchObject({ code: 'PRICES_UNREADABLE' });
  });

  it('that is not JSON is reported with line and column', async () => {
    await expect(loadPriceFile(join(FIXTURES, 'comma-too-many.json'))).rejects.toMatchObject({
      code: 'PRICES_NOT_JSON',
      message: expect.stringContaining('comma-too-many.json is not JSON (line 3, column 52).'),
    });
    expect((await errorOf('{"models": {\n')).message).toContain('(line 2, column 1)');
    expect((await errorOf('')).message).toContain('(line 1, column 1)');
    expect((await errorOf('input: 3')).message).toContain('input: 3');
  });

  it.each([
    ['[]', 'must be a JSON object'],
    ['{}', 'models in the price file'],
    ['{"models": []}', 'models in the price file'],
    ['{"gpt-4o": {"input": 1}}', 'has an unknown field "gpt-4o"'],
    ['{"models": {"m": 3}}', 'models["m"] in the price file'],
    ['{"models": {"m": {"output": 3}}}', 'models["m"] in the price file'],
    ['{"models": {"m": {"input": "0.15"}}}', 'must be a number of US dollars, 0 or more, not "0.15"'],
    ['{"models": {"m": {"input": -1}}}', 'models["m"].input in the price file'],
    ['{"models": {"m": {"input": null}}}', 'not null'],
    ['{"models": {"m": {"input": 1, "cached-input": 1}}}', 'has an unknown field "cached-input"'],
    [
      '{"models": {"m": {"input": 1, "batch": "half"}}}',
      'must be a factor such as 0.5, or an object of rates',
    ],
    ['{"models": {"m": {"input": 1, "flex": {"output": 1}}}}', 'models["m"].flex in the price file'],
    ['{"models": {"m": {"input": 1, "above": {}}}}', 'models["m"].above in the price file'],
    ['{"models": {"m": {"input": 1, "above": [{"input": 2}]}}}', 'lacks "input_tokens"'],
    ['{"models": {"m": {"input": 1, "context_window": 1.5}}}', 'must be a whole number of tokens above 0'],
    ['{"models": {"m": {"input": 1}}, "date": "1.11.2026"}', 'must be a date like "2026-11-01"'],
  ])('%s is refused, saying where and why', async (content, said) => {
    const error = await errorOf(content);
    expect(error.code).toBe('PRICES_INVALID');
    expect(error.message).toContain(said);
    expect(error.hint).toBeTruthy();
  });

  it('with a price per token instead of per million is refused with the number to write', async () => {
    const error = await errorOf('{"models": {"m": {"input": 1.5e-7}}}');
    expect(error.message).toContain('models["m"].input');
    expect(error.hint).toContain('write 0.15');
  });
});
