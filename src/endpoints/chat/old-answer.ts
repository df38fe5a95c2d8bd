/** Answers of early stores, which knew chat completions alone. */
import type { CompletedResult } from '../../core/outcome.js';
import type { TokenUsage } from '../../core/usage.js';

/**
 * Stores of schema 1 and 2 have not kept bodies. What they have kept is put into the shape of one; what they have not
 * (`id`, `created`, `logprobs`, …) is left out rather than made up.
 * @returns null for an answer of another endpoint: generated text has a reason to end
 */
export function bodyOfOldAnswer(result: CompletedResult, usage: TokenUsage | null): string | null {
  const { outputJson, model, finishReason } = result;
  if (finishReason === '') return null;
  return (
    `{"object":"chat.completion","model":${JSON.stringify(model)},"choices":[{"index":0,"message":` +
    `{"role":"assistant",${messageMember(outputJson, finishReason)}},"finish_reason":${JSON.stringify(finishReason)}}]` +
    `${usageField(usage)}}`
  );
}

/** Tool calls were kept as text in place of the content; a structured answer as what its text said. */
function messageMember(outputJson: string, finishReason: string): string {
  const text = outputJson.startsWith('"') ? (JSON.parse(outputJson) as string) : outputJson;
  const isCall = finishReason === 'tool_calls' || finishReason === 'function_call';
  return isCall && isJson(text) ? `"${finishReason}":${text}` : `"content":${JSON.stringify(text)}`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function usageField(usage: TokenUsage | null): string {
  if (usage === null) return '';
  return (
    `,"usage":{"prompt_tokens":${usage.inputTokens},"completion_tokens":${usage.outputTokens}` +
    `,"total_tokens":${usage.inputTokens + usage.outputTokens}` +
    `,"prompt_tokens_details":{"cached_tokens":${usage.cachedTokens}}` +
    `,"completion_tokens_details":{"reasoning_tokens":${usage.reasoningTokens}}}`
  );
}
