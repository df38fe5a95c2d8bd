import { describe, expect, it } from 'vitest';
import type { Json } from '../../../src/core/json.js';
import { readBilledUsage, readCostMicroUsd, readUsage } from '../../../src/provider/openai/usage.js';

describe('token usage', () => {
  it.each<[string, Json, [input: number, output: number, cached: number, reasoning: number]]>([
    [
      'OpenAI',
      {
        prompt_tokens: 100,
        completion_tokens: 40,
        total_tokens: 140,
        prompt_tokens_details: { cached_tokens: 64, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 30 },
      },
      [100, 40, 64, 30],
    ],
    ['a server without details', { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 }, [9, 2, 0, 0]],
    [
      'details that are null',
      { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: null },
      [9, 2, 0, 0],
    ],
    [
      'DeepSeek',
      { prompt_tokens: 9, completion_tokens: 2, prompt_cache_hit_tokens: 8, prompt_cache_miss_tokens: 1 },
      [9, 2, 8, 0],
    ],
    ['the names of the Responses API', { input_tokens: 7, output_tokens: 3 }, [7, 3, 0, 0]],
    [
      'Gemini, reasoning only in the total',
      { prompt_tokens: 10, completion_tokens: 5, total_tokens: 115 },
      [10, 105, 0, 0],
    ],
    [
      'xAI, reasoning beside the completion',
      {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 65,
        completion_tokens_details: { reasoning_tokens: 50 },
      },
      [10, 55, 0, 50],
    ],
    ['a prompt alone', { prompt_tokens: 10, total_tokens: 10 }, [10, 0, 0, 0]],
    ['more cached than there was', { prompt_tokens: 10, prompt_cache_hit_tokens: 90 }, [10, 0, 10, 0]],
    ['counts that are none', { prompt_tokens: 4, completion_tokens: -1, total_tokens: 'x' }, [4, 0, 0, 0]],
  ])('is read from %s', (_server, usage, [inputTokens, outputTokens, cachedTokens, reasoningTokens]) => {
    expect(readUsage(usage)).toEqual({ inputTokens, outputTokens, cachedTokens, reasoningTokens });
  });

  it.each<[string, Json, number | undefined]>([
    ['what was written to the cache', { cached_tokens: 20, cache_write_tokens: 50 }, 50],
    ['no more than the input that was not read from it', { cached_tokens: 70, cache_write_tokens: 90 }, 30],
    ['nothing where nothing was written', { cached_tokens: 0, cache_write_tokens: 0 }, undefined],
    ['nothing where the server does not say', { cached_tokens: 0 }, undefined],
  ])('holds %s', (_what, details, written) => {
    const usage = readUsage({ prompt_tokens: 100, completion_tokens: 1, prompt_tokens_details: details });
    expect(usage?.cacheWriteTokens).toBe(written);
  });

  it.each<[Json | undefined, string | undefined]>([
    ['flex', 'flex'],
    ['default', 'default'],
    [null, undefined],
    ['', undefined],
    [5, undefined],
    [undefined, undefined],
  ])('names the tier that answered: %j is %s', (tier, serviceTier) => {
    const body = { usage: { prompt_tokens: 1 }, ...(tier === undefined ? {} : { service_tier: tier }) };
    expect(readBilledUsage(body)?.serviceTier).toBe(serviceTier);
  });

  it.each<[Json | undefined]>([
    [undefined],
    [null],
    [{}],
    ['12'],
    [[]],
    [{ prompt_tokens: 1.5 }],
    [{ prompt_tokens: '9' }],
  ])('is unknown for %j', (usage) => {
    expect(readUsage(usage)).toBeNull();
  });
});

describe('the cost that a server states', () => {
  it.each<[string, Json | undefined, Record<string, string>, number | null]>([
    ['dollars of OpenRouter', { cost: 0.00012 }, {}, 120],
    ['a fraction of a micro-dollar, rounded up', { cost: 0.0000004 }, {}, 1],
    ['a model that is free', { cost: 0 }, {}, 0],
    [
      "one's own key at the provider behind",
      { cost: 0.00001, is_byok: true, cost_details: { upstream_inference_cost: 0.002 } },
      {},
      2_010,
    ],
    ['the header of LiteLLM', {}, { 'x-litellm-response-cost': '2.85e-05' }, 29],
    ['a header that says nothing', {}, { 'x-litellm-response-cost': 'None' }, null],
    ['zero from LiteLLM, which is its word for unknown', {}, { 'x-litellm-response-cost': '0.0' }, null],
    ['no cost', { prompt_tokens: 1 }, {}, null],
    ['no usage', undefined, {}, null],
    ['a negative cost', { cost: -1 }, {}, null],
    ['an empty cost', { cost: '' }, {}, null],
  ])('is read from %s', (_what, usage, headers, microUsd) => {
    expect(readCostMicroUsd(usage, new Headers(headers))).toBe(microUsd);
  });
});
