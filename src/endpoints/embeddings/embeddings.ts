/** Embeddings: a text to a vector. */
import type { Endpoint } from '../endpoint.js';
import { listEndpoint } from '../inputs.js';
import { requestsOf } from '../record-request.js';
import { bodyOfVector, lengthOf, readEmbeddings } from './answer.js';
import { completeRequest, EMBEDDINGS_SHAPE, MOST_INPUTS, refusedValue } from './requests.js';

export const EMBEDDINGS: Endpoint = {
  /** OpenAI's API reference, embeddings: "300,000 tokens summed". */
  ...listEndpoint('input', MOST_INPUTS, 300_000),
  ...requestsOf(EMBEDDINGS_SHAPE, completeRequest),
  path: '/embeddings',
  operation: 'embeddings',
  /** OpenAI's smallest and cheapest of its current ones, known to every price table. */
  defaultModel: 'text-embedding-3-small',
  refusedValue,
  readAnswer: readEmbeddings,
  sizeOf: lengthOf,
  bodyOf: bodyOfVector,
};
