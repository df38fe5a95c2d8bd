/** Responses: what OpenAI offers in place of chat completions. */

import { CHAT } from '../chat/chat.js';
import { countSimulatedTokens } from '../chat/simulated-tokens.js';
import { countChatTokens } from '../chat/tokens.js';
import { correctIn } from '../correction.js';
import type { Endpoint } from '../endpoint.js';
import { placeFileAs } from '../place-file.js';
import { createRequestMaker } from '../record-request.js';
import type { OutputFormat } from '../structured-output.js';
import { readResponse } from './answer.js';
import { asChat } from './as-chat.js';
import { completeRequest, inBackground, RESPONSES_SHAPE, refusedValue } from './requests.js';

export const RESPONSES: Endpoint = {
  path: '/responses',
  operation: 'chat',
  defaultModel: CHAT.defaultModel,
  contentField: 'input',
  refusedValue,
  createRequests: (defaults) =>
    createRequestMaker(RESPONSES_SHAPE, defaults, (body, systemText) =>
      completeRequest(body, defaults, systemText),
    ),
  outputCapName: 'max_output_tokens',
  outputCapOf: RESPONSES_SHAPE.outputCapOf,
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
  outputParameters: (format) => ({ text: { format: formatOf(format) } }),
  inBackground,
  withMistake: correctIn('input'),
};

function formatOf(format: OutputFormat) {
  if (format === 'json_object') return { type: 'json_object' };
  const { name, schema, strict } = format;
  return { type: 'json_schema', name, schema, strict };
}
