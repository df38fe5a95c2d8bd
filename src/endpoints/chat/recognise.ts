/** Which objects are chat completion requests. */
import type { ExactObject } from '../../core/exact-json.js';
import type { Recognition } from '../endpoint.js';
import { GENERATION_FIELDS, isCompletionsRequest } from '../unsupported.js';

/** A bare `prompt` is the user's message, unless completions alone could answer the request. */
export function recogniseChat(fields: ExactObject): Recognition {
  if (Array.isArray(fields['messages'])) return 'surely';
  if (fields['messages'] !== undefined) return 'likely';
  if (fields['prompt'] === undefined || isCompletionsRequest(fields)) return 'no';
  return GENERATION_FIELDS.some((name) => Object.hasOwn(fields, name)) ? 'likely' : 'no';
}
