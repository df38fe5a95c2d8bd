/** Embeddings: a text to a vector. */
import type { Endpoint } from '../endpoint.js';
import { lengthOf, readEmbeddings } from './answer.js';
import { bodyOfVector } from './body-of-vector.js';
import { GROUPING } from './grouping.js';
import { refusedValue } from './parameter.js';
import { recogniseEmbeddings } from './recognise.js';
import { createRequests } from './requests.js';
import { countInputTokens, countSimulatedTokens } from './tokens.js';

export const EMBEDDINGS: Endpoint = {
  path: '/embeddings',
  /** OpenAI's smallest and cheapest of its current ones, known to every price table. */
  defaultModel: 'text-embedding-3-small',
  contentField: 'input',
  recognise: recogniseEmbeddings,
  refusedValue,
  createRequests,
  /** There is no output to pay for. */
  outputCapOf: () => 0,
  framingTokens: { expected: 0, most: 0 },
  countTokens: countInputTokens,
  countSimulatedTokens,
  grouping: GROUPING,
  readAnswer: readEmbeddings,
  sizeOf: lengthOf,
  bodyOf: bodyOfVector,
  takesSystemMessage: false,
  placeFile: null,
  outputParameters: null,
  withMistake: null,
};
