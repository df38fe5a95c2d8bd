/** Which endpoint's requests objects are. Stands in one place, for two endpoints take a `prompt` and three an `input`. */
import type { EndpointName } from '../core/endpoint-name.js';
import type { ExactObject } from '../core/exact-json.js';
import { isJsonObject } from '../core/json.js';
import { OF_GENERATED_TEXT } from './body-fields.js';

export interface Recognised {
  readonly endpoint: EndpointName;
  /**
   * `surely`: no record of data would look so. `likely`: a field or a model of its own says so; beside a prompt template it
   * is a record. `perhaps`: nothing tells it from a request of other endpoints that have its content's field.
   */
  readonly certainty: 'surely' | 'likely' | 'perhaps';
}

/** @returns null for a record, which at most happens to have such a column */
export function recogniseRequest(fields: ExactObject): Recognised | null {
  const { messages, prompt, input } = fields;
  if (messages !== undefined) {
    return { endpoint: 'chat', certainty: Array.isArray(messages) ? 'surely' : 'likely' };
  }
  if (prompt !== undefined) return hasAny(fields, GENERATION_FIELDS) ? recognisePrompt(fields) : null;
  return input === undefined ? null : recogniseInput(fields);
}

const COMPLETIONS_FIELDS = ['suffix', 'echo', 'best_of'];
const COMPLETIONS_MODEL = /^(?:davinci|babbage)|-instruct$/;

/** A bare `prompt` is the user's message, unless completions alone could answer the request. */
function recognisePrompt(fields: ExactObject): Recognised {
  const isCompletions =
    Array.isArray(fields['prompt']) ||
    hasAny(fields, COMPLETIONS_FIELDS) ||
    COMPLETIONS_MODEL.test(String(fields['model'] ?? ''));
  return isCompletions
    ? { endpoint: 'completions', certainty: 'likely' }
    : { endpoint: 'chat', certainty: 'perhaps' };
}

const EMBEDDINGS_FIELDS = ['dimensions', 'encoding_format'];
/** The names that makers give to models for embeddings. */
const EMBEDDING_MODEL = /embed|\b(?:bge|e5|gte|minilm|voyage)\b/i;
const MODERATION_MODEL = /moderation/i;
/** A name that is as likely a column of data (`text`, `store`, `instructions`) tells nothing without one of these. */
const RESPONSES_FIELDS = ['max_output_tokens', 'previous_response_id'];

function recogniseInput(fields: ExactObject): Recognised | null {
  const model = typeof fields['model'] === 'string' ? fields['model'] : '';
  if (hasAny(fields, EMBEDDINGS_FIELDS) || EMBEDDING_MODEL.test(model)) {
    return { endpoint: 'embeddings', certainty: 'likely' };
  }
  if (MODERATION_MODEL.test(model)) return { endpoint: 'moderations', certainty: 'likely' };
  if (!hasAny(fields, GENERATION_FIELDS)) return null;
  if (isConversation(fields['input'])) return { endpoint: 'responses', certainty: 'surely' };
  return { endpoint: 'responses', certainty: hasAny(fields, RESPONSES_FIELDS) ? 'likely' : 'perhaps' };
}

/** Messages, calls of functions and what came of them. */
function isConversation(input: ExactObject[string] | undefined): boolean {
  return (
    Array.isArray(input) &&
    input.length > 0 &&
    input.every((item) => isJsonObject(item) && ('role' in item || 'call_id' in item || 'id' in item))
  );
}

const LIKELY_COLUMNS = ['n', 'stop', 'seed'];

/**
 * Fields that tell a request with a bare `prompt` or `input` from a record that happens to have such a column. Names
 * that are as likely a column of data (`user`, `stop`, `store`, `seed`, `text`, `instructions`) are left out.
 */
const GENERATION_FIELDS = [
  ...OF_GENERATED_TEXT.filter((name) => !LIKELY_COLUMNS.includes(name)),
  ...['model', 'previous_response_id', 'service_tier'],
];

function hasAny(fields: ExactObject, names: readonly string[]): boolean {
  return names.some((name) => Object.hasOwn(fields, name));
}
