/** What a call used and cost, as the server itself reports it. */
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';
import type { BilledUsage } from '../../core/usage.js';
import type { HeaderReader } from './headers.js';

/** The usage of a response, with the tier that served it; null as `readUsage`. */
export function readBilledUsage(body: JsonObject): BilledUsage | null {
  const usage = readUsage(body['usage']);
  if (usage === null) return null;
  const { model, service_tier: serviceTier } = body;
  if (typeof model === 'string' && model !== '') usage.answeredBy = model;
  if (typeof serviceTier === 'string' && serviceTier !== '') usage.serviceTier = serviceTier;
  return usage;
}

/**
 * Normalises the `usage` of an answer, of chat completions or of responses; null where it is missing or holds no counts.
 *
 * Gemini and xAI leave reasoning out of `completion_tokens` but not out of `total_tokens`, which is what
 * they bill: what the total has over prompt and completion is output.
 */
export function readUsage(usage: Json | undefined): Writable<BilledUsage> | null {
  if (!isJsonObject(usage)) return null;
  const input = readCount(usage['prompt_tokens'] ?? usage['input_tokens']);
  const completion = readCount(usage['completion_tokens'] ?? usage['output_tokens']);
  if (input === undefined && completion === undefined) return null;
  const inputTokens = input ?? 0;
  const outputTokens = Math.max(completion ?? 0, (readCount(usage['total_tokens']) ?? 0) - inputTokens);
  const promptDetails = usage['prompt_tokens_details'] ?? usage['input_tokens_details'];
  const cached =
    readDetail(promptDetails, 'cached_tokens') ?? readCount(usage['prompt_cache_hit_tokens']) ?? 0;
  const reasoning =
    readDetail(usage['completion_tokens_details'] ?? usage['output_tokens_details'], 'reasoning_tokens') ??
    readCount(usage['reasoning_tokens']) ??
    0;
  const cachedTokens = Math.min(cached, inputTokens);
  const written = readDetail(promptDetails, 'cache_write_tokens') ?? 0;
  const cacheWriteTokens = Math.min(written, inputTokens - cachedTokens);
  return {
    inputTokens,
    outputTokens,
    cachedTokens,
    reasoningTokens: Math.min(reasoning, outputTokens),
    ...(cacheWriteTokens > 0 ? { cacheWriteTokens } : {}),
  };
}

type Writable<Value> = { -readonly [Name in keyof Value]: Value[Name] };

function readDetail(details: Json | undefined, name: string): number | undefined {
  return isJsonObject(details) ? readCount(details[name]) : undefined;
}

function readCount(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Undoes the noise of binary fractions (0.00012 * 1e6 = 120.00000000000001) before rounding up. */
const NOISE_MICRO_USD = 1e-6;

/**
 * The cost in micro-dollars where the server states it, else null: `usage.cost` (OpenRouter, dollars; with a key
 * of one's own, what the provider behind it charges stands apart) or the header `x-litellm-response-cost`, where
 * zero means that LiteLLM knows no price. Rounded up, so that a budget is never passed by rounding.
 */
export function readCostMicroUsd(usage: Json | undefined, headers: HeaderReader): number | null {
  if (isJsonObject(usage)) {
    const cost = readDollars(usage['cost']);
    if (cost !== undefined) {
      const details = usage['cost_details'];
      const upstream =
        usage['is_byok'] === true && isJsonObject(details)
          ? (readDollars(details['upstream_inference_cost']) ?? 0)
          : 0;
      return toMicroUsd(cost + upstream);
    }
  }
  const litellm = readDollars(headers.get('x-litellm-response-cost'));
  return litellm !== undefined && litellm > 0 ? toMicroUsd(litellm) : null;
}

function readDollars(value: Json | undefined): number | undefined {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined;
  if (value === '') return undefined;
  const dollars = Number(value);
  return Number.isFinite(dollars) && dollars >= 0 && dollars < 1e6 ? dollars : undefined;
}

function toMicroUsd(dollars: number): number {
  return Math.max(0, Math.ceil(dollars * 1e6 - NOISE_MICRO_USD));
}
