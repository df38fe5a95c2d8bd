/** The body that a document's vector would have come in alone; of a group's answer it is made when it is asked for. */
import type { CompletedResult } from '../../core/outcome.js';
import type { TokenUsage } from '../../core/usage.js';

/** @returns null for an answer of another endpoint: generated text has a reason to end */
export function bodyOfVector(
  { outputJson, model, finishReason }: CompletedResult,
  usage: TokenUsage | null,
): string | null {
  if (finishReason !== '' || !outputJson.startsWith('[')) return null;
  const tokens = usage?.inputTokens;
  const usageMember =
    tokens === undefined ? '' : `,"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}`;
  return (
    `{"object":"list","data":[{"object":"embedding","index":0,"embedding":${outputJson}}]` +
    `,"model":${JSON.stringify(model)}${usageMember}}`
  );
}
