/** Completions: a text that goes on. The oldest endpoint, and the one of base models. */
import type { Endpoint } from '../endpoint.js';
import { countInputs, simulatedTokensOf } from '../inputs.js';
import { createRequestMaker } from '../record-request.js';
import { joinContents } from '../whole-request.js';
import { readCompletions } from './answer.js';
import { COMPLETIONS_SHAPE, completeRequest, MOST_PROMPTS, refusedValue } from './requests.js';

export const COMPLETIONS: Endpoint = {
  path: '/completions',
  operation: 'text_completion',
  /** The last general one that OpenAI serves. */
  defaultModel: 'gpt-3.5-turbo-instruct',
  contentField: 'prompt',
  refusedValue,
  createRequests: (defaults) =>
    createRequestMaker(COMPLETIONS_SHAPE, defaults, (body) => completeRequest(body, defaults)),
  outputCapName: 'max_tokens',
  outputCapOf: COMPLETIONS_SHAPE.outputCapOf,
  framingTokens: { expected: 0, most: 0 },
  countTokens({ prompt, suffix }, tally) {
    countInputs(prompt, tally);
    tally.addText(suffix);
  },
  countSimulatedTokens: ({ prompt }) => ({ tokens: simulatedTokensOf(prompt), exact: true, images: 0 }),
  grouping: { mostInputs: MOST_PROMPTS, mostTokens: Number.POSITIVE_INFINITY, join: joinContents('prompt') },
  readAnswer: readCompletions,
  sizeOf: null,
  /** Every answer is stored with a body of its own. */
  bodyOf: () => null,
  tellsUsage: true,
  takesSystemMessage: false,
  placeFile: null,
  outputParameters: null,
  inBackground: null,
  withMistake: null,
};
