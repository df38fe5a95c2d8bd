/** Chat completions. */
import { refusedForTexts } from '../body-fields.js';
import { correctIn } from '../correction.js';
import type { Endpoint } from '../endpoint.js';
import { placeFileAs } from '../place-file.js';
import { requestsOf } from '../record-request.js';
import { formatOf } from '../structured-output.js';
import { readChatAnswer } from './answer.js';
import { completeRequest } from './complete-request.js';
import { bodyOfOldAnswer } from './old-answer.js';
import { CHAT_SHAPE } from './request-shape.js';
import { countSimulatedTokens } from './simulated-tokens.js';
import { countChatTokens } from './tokens.js';

export const CHAT: Endpoint = {
  path: '/chat/completions',
  operation: 'chat',
  /**
   * Small, cheap, known to every price table, and no reasoning model, so that `temperature` and `max_tokens` are taken
   * and no hidden tokens are paid for.
   */
  defaultModel: 'gpt-4o-mini',
  ...requestsOf(CHAT_SHAPE, completeRequest),
  refusedValue: refusedForTexts,
  outputCapName: 'max_tokens',
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
  outputParameters: (format) => ({
    response_format: formatOf(format, (schema) => ({ json_schema: schema })),
  }),
  inBackground: null,
  withMistake: correctIn('messages'),
};
