/** Embeddings: a text to a vector. */
import type { Endpoint } from '../endpoint.js';
import { countInputs, simulatedTokensOf } from '../inputs.js';
import { createRequestMaker } from '../record-request.js';
import { joinContents } from '../whole-request.js';
import { lengthOf, readEmbeddings } from './answer.js';
import { bodyOfVector } from './body-of-vector.js';
import { refusedValue } from './parameter.js';
import { completeRequest, EMBEDDINGS_SHAPE, MOST_INPUTS } from './requests.js';

export const EMBEDDINGS: Endpoint = {
  path: '/embeddings',
  operation: 'embeddings',
  /** OpenAI's smallest and cheapest of its current ones, known to every price table. */
  defaultModel: 'text-embedding-3-small',
  contentField: 'input',
  refusedValue,
  createRequests: (defaults) =>
    createRequestMaker(EMBEDDINGS_SHAPE, defaults, (body) => completeRequest(body, defaults)),
  outputCapName: 'max_tokens',
  outputCapOf: EMBEDDINGS_SHAPE.outputCapOf,
  framingTokens: { expected: 0, most: 0 },
  countTokens: ({ input }, tally) => countInputs(input, tally),
  countSimulatedTokens: ({ input }) => ({ tokens: simulatedTokensOf(input), exact: true, images: 0 }),
  /** OpenAI's API reference, embeddings: "300,000 tokens summed". */
  grouping: { mostInputs: MOST_INPUTS, mostTokens: 300_000, join: joinContents('input') },
  readAnswer: readEmbeddings,
  sizeOf: lengthOf,
  bodyOf: bodyOfVector,
  tellsUsage: true,
  takesSystemMessage: false,
  placeFile: null,
  outputParameters: null,
  inBackground: null,
  withMistake: null,
};
