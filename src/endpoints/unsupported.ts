/** Requests of endpoints that this program does not know yet: told as such, for no other endpoint would understand them. */
import type { ExactObject } from '../core/exact-json.js';
import { GENERATION_FIELDS, hasAny } from './body-fields.js';

/** @returns a clause that names the endpoint whose request this looks like; null for a record */
export function unsupportedRequest(fields: ExactObject): string | null {
  if (fields['messages'] !== undefined) return null;
  if (isCompletionsRequest(fields)) return isFor('/v1/completions');
  if (fields['input'] === undefined || !hasAny(fields, GENERATION_FIELDS)) return null;
  return String(fields['model'] ?? '').includes('moderation')
    ? isFor('/v1/moderations')
    : `${isFor('/v1/responses')}; with the endpoint embeddings its input would be embedded`;
}

function isFor(url: string): string {
  return `is a request for ${url}, which is not supported yet`;
}

const COMPLETIONS_FIELDS = ['suffix', 'echo', 'best_of'] as const;
const COMPLETIONS_MODEL = /^(?:davinci|babbage)|-instruct$/;

/** One that chat completions could not answer in its place. */
export function isCompletionsRequest(fields: ExactObject): boolean {
  const { prompt, model } = fields;
  if (prompt === undefined || !hasAny(fields, GENERATION_FIELDS)) return false;
  return (
    Array.isArray(prompt) || hasAny(fields, COMPLETIONS_FIELDS) || COMPLETIONS_MODEL.test(String(model ?? ''))
  );
}
