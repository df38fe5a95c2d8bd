/**
 * Tokens of a request before it is sent, by the model's own encoding: for money and context checks. Admission to
 * a rate limit uses the far cheaper `estimateTokens`.
 */
import type { JsonObject } from '../core/json.js';
import type { EndpointName } from '../endpoints/endpoint.js';
import { ENDPOINTS } from '../endpoints/endpoints.js';
import { type EncodingName, encodingOf, loadEncoding } from './encoding.js';
import { RequestTally, type RequestTokens, type SizeOfImageUrl } from './request-tally.js';
import { countTextTokens } from './text-tokens.js';

export type { RequestTokens, SizeOfImageUrl };

export interface TokenCounter {
  readonly encoding: EncodingName;
  /** False where the model's own tokenizer is not this encoding; counts are estimates then. */
  readonly exact: boolean;
  /** Never throws. A text above 400,000 characters is counted from samples of it. */
  countText(text: string): number;
  /**
   * The body of a request, its framing, tools and schema included. Never throws, whatever the body.
   * @param sizeOf tells sizes of images; absent: those in data URLs
   */
  countRequest(endpoint: EndpointName, body: JsonObject, sizeOf?: SizeOfImageUrl): RequestTokens;
}

/** Loads the model's encoding (80-350 ms, once per process and encoding). */
export async function loadTokenCounter(model: string): Promise<TokenCounter> {
  const { name, published } = encodingOf(model);
  const countTokens = await loadEncoding(name);
  return {
    encoding: name,
    exact: published,
    countText: (text) => countTextTokens(text, countTokens).tokens,
    countRequest(endpoint, body, sizeOf) {
      const tally = new RequestTally(model, countTokens, published, sizeOf);
      ENDPOINTS[endpoint].countTokens(body, tally);
      return tally.total();
    },
  };
}
