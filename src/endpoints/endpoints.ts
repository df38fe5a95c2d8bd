/** The endpoints there are: one line each. */
import type { CompletedResult } from '../core/outcome.js';
import type { TokenUsage } from '../core/usage.js';
import { CHAT } from './chat/chat.js';
import { COMPLETIONS } from './completions/completions.js';
import { EMBEDDINGS } from './embeddings/embeddings.js';
import type { Endpoint, EndpointName } from './endpoint.js';
import { MODERATIONS } from './moderations/moderations.js';
import { RESPONSES } from './responses/responses.js';

export const ENDPOINTS: Readonly<Record<EndpointName, Endpoint>> = {
  chat: CHAT,
  responses: RESPONSES,
  embeddings: EMBEDDINGS,
  completions: COMPLETIONS,
  moderations: MODERATIONS,
};

/** The body of an answer of which the store holds the output alone. */
export function bodyOf(result: CompletedResult, usage: TokenUsage | null): string {
  for (const endpoint of Object.values(ENDPOINTS)) {
    const body = endpoint.bodyOf(result, usage);
    if (body !== null) return body;
  }
  return result.outputJson;
}
