/**
 * Tokens of a request before it is sent, by the model's own encoding: for money and context checks. Admission to
 * a rate limit uses the far cheaper `estimateTokens`.
 */
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import { countChatTokens } from './chat-tokens.js';
import { type EncodingName, encodingOf, loadEncoding } from './encoding.js';
import { RequestTally, type RequestTokens, type SizeOfImageUrl } from './request-tally.js';
import { countResponsesTokens } from './responses-tokens.js';
import { countTextTokens } from './text-tokens.js';

export type { RequestTokens, SizeOfImageUrl };

/** How a request is read; named as the endpoints are. */
export type CountedEndpoint = 'chat' | 'responses' | 'embeddings' | 'completions' | 'moderations';

export interface TokenCounter {
  readonly encoding: EncodingName;
  /** False where the model's own tokenizer is not this encoding; counts are estimates then. */
  readonly exact: boolean;
  /** Never throws. A text above 400,000 characters is counted from samples of it. */
  countText(text: string): number;
  /** The body of a chat completion, its framing, tools and schema included. Never throws, whatever the body. */
  countChatRequest(body: JsonObject): RequestTokens;
  /**
   * The body of any endpoint; of a group's `input` array, all members together.
   * @param sizeOf tells sizes of images; absent: those in data URLs
   */
  countRequest(endpoint: CountedEndpoint, body: JsonObject, sizeOf?: SizeOfImageUrl): RequestTokens;
}

/** Loads the model's encoding (80-350 ms, once per process and encoding). */
export async function loadTokenCounter(model: string): Promise<TokenCounter> {
  const { name, published } = encodingOf(model);
  const countTokens = await loadEncoding(name);

  const count = (fill: (tally: RequestTally) => void, sizeOf?: SizeOfImageUrl): RequestTokens => {
    const tally = new RequestTally(model, countTokens, published, sizeOf);
    fill(tally);
    return tally.total();
  };
  const countChatRequest = (body: JsonObject, sizeOf?: SizeOfImageUrl): RequestTokens =>
    count((tally) => countChatTokens(body, tally), sizeOf);

  return {
    encoding: name,
    exact: published,
    countText: (text) => countTextTokens(text, countTokens).tokens,
    countChatRequest: (body) => countChatRequest(body),
    countRequest(endpoint, body, sizeOf) {
      switch (endpoint) {
        case 'chat':
          return countChatRequest(body, sizeOf);
        case 'responses':
          return count((tally) => countResponsesTokens(body, tally), sizeOf);
        case 'completions':
          return count((tally) => countInputs(body['prompt'] ?? null, tally));
        case 'embeddings':
        case 'moderations':
          return count((tally) => countInputs(body['input'] ?? null, tally));
      }
    },
  };
}

/** A text, tokens as numbers, or several of either; moderations take content parts too. */
function countInputs(input: Json, tally: RequestTally): void {
  if (typeof input === 'string') tally.addText(input);
  else if (typeof input === 'number') tally.addTokens(1);
  else if (Array.isArray(input)) for (const member of input) countInputs(member, tally);
  else if (isJsonObject(input)) tally.addPart(input);
}
