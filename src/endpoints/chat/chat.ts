/** Chat completions. */
import { correctIn } from '../correction.js';
import type { Endpoint } from '../endpoint.js';
import { placeFileAs } from '../place-file.js';
import { createRequestMaker } from '../record-request.js';
import { readChatAnswer } from './answer.js';
import { completeRequest, refusedValue } from './complete-request.js';

import { bodyOfOldAnswer } from './old-answer.js';
import { outputCapOf } from './output-cap.js';
import { CHAT_SHAPE } from './request-shape.js';
import { outputParameters } from './response-format.js';
import { countSimulatedTokens } from './simulated-tokens.js';
import { countChatTokens } from './tokens.js';

export const CHAT: Endpoint = {
  path: '/chat/completions',
  operation: 'chat',
  /** The second is what Azure's Batch API documents. */
  /**
   * Small, cheap, known to every price table, and no reasoning model, so that `temperature` and `max_tokens` are taken
   * and no hidden tokens are paid for.
   */
  defaultModel: 'gpt-4o-mini',
  contentField: 'messages',
  refusedValue,
  createRequests: (defaults) =>
    createRequestMaker(CHAT_SHAPE, defaults, (body, systemText) =>
      completeRequest(body, defaults, systemText),
    ),
  outputCapName: 'max_tokens',
  outputCapOf,
  /** Roles and separators: a few tokens a message, a few for the reply (OpenAI cookbook). */
  framingTokens: { expected: 8, most: 16 },
  countTokens: countChatTokens,
  countSimulatedTokens,
  grouping: null,
  readAnswer: readChatAnswer,
  sizeOf: null,
  bodyOf: bodyOfOldAnswer,
  tellsUsage: true,
  takesSystemMessage: true,
  placeFile: placeFileAs({ image: 'url', pdf: 'file_data' }),
  outputParameters,
  inBackground: null,
  withMistake: correctIn('messages'),
};
