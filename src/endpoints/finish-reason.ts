/** Why a text ended, in the words of many servers. */
import type { JsonObject } from '../core/json.js';

/** @returns `unknown` where a choice says none */
export function finishReasonOf({ finish_reason: told }: JsonObject): string {
  return typeof told === 'string' && told !== '' ? told : 'unknown';
}

export type BadEnd = 'truncated' | 'filtered' | 'gave_up';

/** Cut off at the output limit; `model_length` is Mistral's for the context's end. */
const TRUNCATED = new Set(['length', 'max_tokens', 'max_output_tokens', 'model_length']);
const FILTERED = new Set(['content_filter', 'content-filter', 'safety', 'sensitive', 'recitation']);
/** The server gave up: OpenRouter, DeepSeek, Zhipu, vLLM and SGLang. */
const GAVE_UP = new Set(['error', 'insufficient_system_resource', 'network_error', 'abort']);

/** @returns null where the text ended as it should */
export function badEndOf(finishReason: string): BadEnd | null {
  const reason = finishReason.toLowerCase();
  if (TRUNCATED.has(reason)) return 'truncated';
  if (FILTERED.has(reason) || reason.startsWith('content_filter')) return 'filtered';
  return GAVE_UP.has(reason) ? 'gave_up' : null;
}

export const FILTERED_WORDS = "The server's content filter stopped the answer";

export function gaveUpWords(finishReason: string): string {
  return `The server gave up while answering (${finishReason})`;
}

/** What a cut at the length limit has left. Reasoning counts against it, and not every server shows what it was. */
export function cutWords({
  hasText,
  hasCalls,
  hasReasoned,
}: Readonly<Record<'hasText' | 'hasCalls' | 'hasReasoned', boolean>>): string {
  if (hasCalls) return 'The tool call was cut off at the length limit';
  if (hasText) return 'The answer was cut off at its length limit';
  return hasReasoned
    ? 'There was only reasoning, no text, before the length limit'
    : 'No text came before the length limit';
}
