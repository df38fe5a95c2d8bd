/** Fields of request bodies that are not one endpoint's alone. */
import type { Json, JsonObject } from '../core/json.js';
import type { LineProblem } from '../core/line-problem.js';

export const MODEL_MISSING: LineProblem = { reason: 'model must be the name of a model', field: 'model' };

/** @returns the model that a body asks for, null where neither it nor the run names one */
export function modelIn(body: JsonObject, runModel: string | null): string | null {
  const model = body['model'] ?? runModel;
  return typeof model === 'string' && model !== '' ? model : null;
}

/** @param stream the field of that name */
export function asksToStream(stream: Json | undefined): boolean {
  return stream !== undefined && stream !== null && stream !== false;
}

/** Why no request for a text may carry this value; null when it may. */
export function refusedForTexts(name: string, value: Json | undefined): string | null {
  if (name === 'stream' && asksToStream(value)) {
    return 'stream must be left out: an answer is kept whole or not at all';
  }
  if (name === 'n' && value !== undefined && value !== null && value !== 1) {
    return 'n must be 1: one answer a document is kept';
  }
  return null;
}

/** Parameters of a text that a model writes. */
export const OF_GENERATED_TEXT: readonly string[] = [
  ...['temperature', 'top_p', 'n', 'stop', 'seed', 'stream', 'response_format', 'reasoning_effort'],
  ...['max_tokens', 'max_completion_tokens', 'max_output_tokens', 'frequency_penalty', 'presence_penalty'],
  ...['logit_bias', 'logprobs', 'top_logprobs', 'tools', 'tool_choice'],
];

/** Why a parameter means nothing to an endpoint that writes no text; null where it may. */
export function generatesNothing(name: string, endpoint: string): string | null {
  return OF_GENERATED_TEXT.includes(name) ? `${endpoint} have no text to write that it could be for` : null;
}
