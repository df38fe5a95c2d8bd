/** Completions requests of bodies that came whole and of records. */
import type { Json, JsonObject } from '../../core/json.js';
import type { LineProblem } from '../../core/line-problem.js';
import { MODEL_MISSING, modelIn, refusedForTexts } from '../body-fields.js';
import type { RequestDefaults } from '../endpoint.js';
import { listShape, problemOfInputs } from '../inputs.js';
import { contentLast, type RecordShape } from '../record-request.js';
import type { RenderedRequest } from '../rendered-request.js';
import { WholeRequest } from '../whole-request.js';

/** None is published; larger than any that is sent, and what is too large for a server goes again in halves. */
export const MOST_PROMPTS = 2_048;

export const COMPLETIONS_SHAPE: RecordShape = {
  ...listShape('prompt'),
  endpoint: 'completions',
  outputCapOf,
  around: ({ model, parameters }) => contentLast('prompt', { model, ...parameters }),
  refuseAttachments: () => 'completions take no images; leave them out',
};

/**
 * Of all that is generated for one prompt. Null without `max_tokens`: OpenAI and vLLM then give 16, but llama.cpp and Ollama
 * as many as there is room for, which a budget has to reckon with.
 */
function outputCapOf({ max_tokens: cap, best_of: tries }: JsonObject): number | null {
  if (typeof cap !== 'number' || cap < 0) return null;
  return cap * (typeof tries === 'number' && tries > 1 ? tries : 1);
}

export function completeRequest(body: JsonObject, defaults: RequestDefaults): RenderedRequest | LineProblem {
  const model = modelIn(body, defaults.model);
  if (model === null) return MODEL_MISSING;
  for (const name of ['n', 'stream']) {
    const reason = refusedValue(name, body[name]);
    if (reason !== null) return { reason, field: name };
  }
  const problem = problemOfInputs(body['prompt'], 'prompt', MOST_PROMPTS);
  if (problem !== null) return problem;
  return new WholeRequest(COMPLETIONS_SHAPE, model, { ...defaults.parameters, ...body, model });
}

/** Why a request may not carry this value; null when it may. */
export function refusedValue(name: string, value: Json | undefined): string | null {
  if (name === 'max_completion_tokens' || name === 'max_output_tokens')
    return 'completions call it max_tokens';
  return refusedForTexts(name, value);
}
