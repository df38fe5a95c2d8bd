/** Responses: what OpenAI offers in place of chat completions. */
import { CHAT } from '../chat/chat.js';
import { countSimulatedTokens } from '../chat/simulated-tokens.js';
import { countChatTokens } from '../chat/tokens.js';
import { correctIn } from '../correction.js';
import type { Endpoint } from '../endpoint.js';
import { placeFileAs } from '../place-file.js';
import { requestsOf } from '../record-request.js';
import { formatOf } from '../structured-output.js';
import { readResponse } from './answer.js';
import { asChat } from './as-chat.js';
import { completeRequest, inBackground, RESPONSES_SHAPE, refusedValue } from './requests.js';

export const RESPONSES: Endpoint = {
  path: '/responses',
  operation: 'chat',
  defaultModel: CHAT.defaultModel,
  ...requestsOf(RESPONSES_SHAPE, completeRequest),
  refusedValue,
  outputCapName: 'max_output_tokens',
  framingTokens: CHAT.framingTokens,
  countTokens: (body, tally) => countChatTokens(asChat(body), tally),
  countSimulatedTokens: (body) => countSimulatedTokens(asChat(body)),
  grouping: null,
  readAnswer: readResponse,
  sizeOf: null,
  /** Every answer is stored as it came. */
  bodyOf: () => null,
  tellsUsage: true,
  takesSystemMessage: true,
  placeFile: placeFileAs({ image: 'image_url', pdf: 'file_data' }),
  outputParameters: (format) => ({ text: { format: formatOf(format, (schema) => schema) } }),
  inBackground,
  withMistake: correctIn('input'),
};
