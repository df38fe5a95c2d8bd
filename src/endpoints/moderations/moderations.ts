/** Moderations: whether a text or an image is harmful, and in which ways. */
import { attachmentsIn } from '../chat/request-shape.js';
import type { Endpoint } from '../endpoint.js';
import { countInputs, simulatedTokensOf } from '../inputs.js';
import { placeFileAs } from '../place-file.js';
import { createRequestMaker } from '../record-request.js';
import { joinContents } from '../whole-request.js';
import { bodyOfResult, readModerations } from './answer.js';
import { completeRequest, DEFAULT_MODEL, MODERATIONS_SHAPE, MOST_TEXTS, refusedValue } from './requests.js';

export const MODERATIONS: Endpoint = {
  path: '/moderations',
  operation: 'moderations',
  defaultModel: DEFAULT_MODEL,
  contentField: 'input',
  refusedValue,
  createRequests: (defaults) =>
    createRequestMaker(MODERATIONS_SHAPE, defaults, (body) => completeRequest(body, defaults)),
  outputCapName: 'max_tokens',
  outputCapOf: MODERATIONS_SHAPE.outputCapOf,
  framingTokens: { expected: 0, most: 0 },
  countTokens: ({ input }, tally) => countInputs(input, tally),
  countSimulatedTokens({ input }) {
    const images = attachmentsIn({ messages: [{ content: input ?? null }] }).length;
    return { tokens: simulatedTokensOf(input), exact: true, images };
  },
  grouping: { mostInputs: MOST_TEXTS, mostTokens: Number.POSITIVE_INFINITY, join: joinContents('input') },
  readAnswer: readModerations,
  sizeOf: null,
  bodyOf: bodyOfResult,
  tellsUsage: false,
  takesSystemMessage: false,
  placeFile: placeFileAs({ image: 'url', pdf: 'file_data' }),
  outputParameters: null,
  inBackground: null,
  withMistake: null,
};
