/** Which objects are chat completion requests. */
import type { ExactObject } from '../../core/exact-json.js';
import type { Recognition } from '../endpoint.js';

/**
 * Fields that tell a request with a bare `prompt` or `input` from a record that happens to have such a column. Names
 * that are as likely a column of data (`user`, `stop`, `store`, `seed`) are left out.
 */
const REQUEST_FIELDS = [
  'model',
  'temperature',
  'top_p',
  'max_tokens',
  'max_completion_tokens',
  'response_format',
  'reasoning_effort',
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

export function recogniseChat(fields: ExactObject): Recognition {
  if (Array.isArray(fields['messages'])) return 'surely';
  if (fields['messages'] !== undefined) return 'likely';
  const hasInput = fields['prompt'] !== undefined || fields['input'] !== undefined;
  return hasInput && REQUEST_FIELDS.some((name) => Object.hasOwn(fields, name)) ? 'likely' : 'no';
}
