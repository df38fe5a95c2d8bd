/** Moderations: whether a text or an image is harmful, and in which ways. */
import type { Endpoint } from '../endpoint.js';
import { listEndpoint, simulatedTokensOf } from '../inputs.js';
import { placeFileAs } from '../place-file.js';
import { requestsOf } from '../record-request.js';
import { bodyOfResult, readModerations } from './answer.js';
import { completeRequest, DEFAULT_MODEL, MODERATIONS_SHAPE, MOST_TEXTS, refusedValue } from './requests.js';

export const MODERATIONS: Endpoint = {
  ...listEndpoint('input', MOST_TEXTS),
  ...requestsOf(MODERATIONS_SHAPE, completeRequest),
  path: '/moderations',
  operation: 'moderations',
  defaultModel: DEFAULT_MODEL,
  refusedValue,
  countSimulatedTokens(body) {
    return { ...simulatedTokensOf(body['input']), images: MODERATIONS_SHAPE.attachmentsIn(body).length };
  },
  readAnswer: readModerations,
  bodyOf: bodyOfResult,
  tellsUsage: false,
  placeFile: placeFileAs({ image: 'url', pdf: 'file_data' }),
};
