/** Chat completions. */
import { MODEL_MISSING } from '../body-fields.js';
import type { Endpoint, RequestDefaults, RequestMaker } from '../endpoint.js';
import { readChatAnswer } from './answer.js';
import { placeFile } from './attachment-part.js';
import { withMistake } from './mistake.js';
import { bodyOfOldAnswer } from './old-answer.js';
import { outputCapOf } from './output-cap.js';
import { recogniseChat } from './recognise.js';
import { FrameMaker, PartsRequest, RecordRequest } from './record-request.js';
import { outputParameters } from './response-format.js';
import { countSimulatedTokens } from './simulated-tokens.js';
import { countChatTokens } from './tokens.js';
import { completeRequest, refusedValue } from './whole-request.js';

export const CHAT: Endpoint = {
  path: '/chat/completions',
  /** The second is what Azure's Batch API documents. */
  /**
   * Small, cheap, known to every price table, and no reasoning model, so that `temperature` and `max_tokens` are taken
   * and no hidden tokens are paid for.
   */
  defaultModel: 'gpt-4o-mini',
  contentField: 'messages',
  recognise: recogniseChat,
  refusedValue,
  createRequests,
  outputCapOf,
  /** Roles and separators: a few tokens a message, a few for the reply (OpenAI cookbook). */
  framingTokens: { expected: 8, most: 16 },
  countTokens: countChatTokens,
  countSimulatedTokens,
  grouping: null,
  readAnswer: readChatAnswer,
  sizeOf: null,
  bodyOf: bodyOfOldAnswer,
  takesSystemMessage: true,
  placeFile,
  outputParameters,
  withMistake,
};

function createRequests(defaults: RequestDefaults): RequestMaker {
  const frames = defaults.model === null ? null : new FrameMaker(defaults.model, defaults.parameters);
  return {
    ofBody: (body, systemText) => completeRequest(body, defaults, systemText),
    ofRecord(content, systemText) {
      if (frames === null) return MODEL_MISSING;
      const frame = frames.frame(systemText);
      return typeof content === 'string'
        ? new RecordRequest(frame, content)
        : new PartsRequest(frame, content);
    },
  };
}
