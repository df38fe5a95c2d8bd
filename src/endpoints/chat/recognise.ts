/** Which objects are chat completion requests. */
import type { ExactObject } from '../../core/exact-json.js';
import { GENERATION_FIELDS, hasAny } from '../body-fields.js';
import type { Recognition } from '../endpoint.js';
import { isCompletionsRequest } from '../unsupported.js';

/** A bare `prompt` is the user's message, unless completions alone could answer the request. */
export function recogniseChat(fields: ExactObject): Recognition {
  if (Array.isArray(fields['messages'])) return 'surely';
  if (fields['messages'] !== undefined) return 'likely';
  if (fields['prompt'] === undefined || isCompletionsRequest(fields)) return 'no';
  return hasAny(fields, GENERATION_FIELDS) ? 'likely' : 'no';
}
