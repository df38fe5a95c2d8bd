/** Completions: a text that goes on. The oldest endpoint, and the one of base models. */
import type { Endpoint } from '../endpoint.js';
import { listEndpoint } from '../inputs.js';
import { requestsOf } from '../record-request.js';
import { readCompletions } from './answer.js';
import { COMPLETIONS_SHAPE, completeRequest, MOST_PROMPTS, refusedValue } from './requests.js';

const OF_PROMPTS = listEndpoint('prompt', MOST_PROMPTS);

export const COMPLETIONS: Endpoint = {
  ...OF_PROMPTS,
  ...requestsOf(COMPLETIONS_SHAPE, completeRequest),
  path: '/completions',
  operation: 'text_completion',
  /** The last general one that OpenAI serves. */
  defaultModel: 'gpt-3.5-turbo-instruct',
  refusedValue,
  countTokens(body, tally) {
    OF_PROMPTS.countTokens(body, tally);
    tally.addText(body['suffix']);
  },
  readAnswer: readCompletions,
  /** Every answer is stored with a body of its own. */
  bodyOf: () => null,
};
