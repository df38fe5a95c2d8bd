/** Which objects are embeddings requests. */
import type { ExactObject } from '../../core/exact-json.js';
import { hasAny } from '../body-fields.js';
import type { Recognition } from '../endpoint.js';

/** Fields that no other endpoint with an `input` has. */
const OWN_FIELDS = ['dimensions', 'encoding_format'] as const;
/** The names that makers give to models for embeddings. */
const EMBEDDING_MODEL = /embed|\b(?:bge|e5|gte|minilm|voyage)\b/i;

/** `input` is a field of responses and moderations too, and a likely column of data. */
export function recogniseEmbeddings(fields: ExactObject): Recognition {
  const { input, messages, model } = fields;
  if (input === undefined || messages !== undefined) return 'no';
  if (hasAny(fields, OWN_FIELDS)) return 'likely';
  return typeof model === 'string' && EMBEDDING_MODEL.test(model) ? 'likely' : 'no';
}
