/** Fields of request bodies that are not one endpoint's alone. */
import type { ExactObject } from '../core/exact-json.js';
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

/**
 * Fields that tell a request with a bare `prompt` or `input` from a record that happens to have such a column. Names
 * that are as likely a column of data (`user`, `stop`, `store`, `seed`, `text`, `instructions`) are left out.
 */
export const GENERATION_FIELDS = [
  'model',
  'temperature',
  'top_p',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'response_format',
  'reasoning_effort',
  'previous_response_id',
  'frequency_penalty',
  'presence_penalty',
  'logit_bias',
  'logprobs',
  'top_logprobs',
  'tools',
  'tool_choice',
  'service_tier',
  'stream',
] as const;

export function hasAny(fields: ExactObject, names: readonly string[]): boolean {
  return names.some((name) => Object.hasOwn(fields, name));
}
