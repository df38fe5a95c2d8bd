/** Identity: which document is which when an edited file is run again. */
import { digest } from '../core/digest.js';
import { canonicalText, type ExactJson } from '../core/exact-json.js';
import { describeFields, lookUpField, showName } from '../core/field.js';
import type { LineProblem } from '../core/line-problem.js';
import type { ParsedDocument } from './document.js';

const HASH_PREFIX = 'sha256:';

export interface DocumentKey {
  readonly key: string;
  /** The id field is a number, as which it is given back. */
  readonly idIsNumber: boolean;
}

/**
 * The document's key: its id field as text, else a hash of its content. The content is the whole document but its
 * priority; metadata counts, for two rows with equal text and other metadata are other rows. The ids 1 and "1" are one
 * key: a tool that turned one into the other on the way must not make a run pay for everything again.
 * @param idField the field to use (`--id-field`, dotted path); null: `custom_id`, else `id`
 */
export function documentKey(document: ParsedDocument, idField: string | null): DocumentKey | LineProblem {
  const { fields } = document;
  if (idField !== null) return namedId(lookUpField(fields, idField), idField, Object.keys(fields));
  for (const name of ['custom_id', 'id']) {
    const id = fields[name];
    if (Object.hasOwn(fields, name) && id !== undefined && id !== null) return keyOfId(id, name);
  }
  const content = canonicalText(fields, document.priority === null ? undefined : 'priority');
  return { key: HASH_PREFIX + digest(content), idIsNumber: false };
}

function namedId(
  id: ExactJson | undefined,
  field: string,
  names: readonly string[],
): DocumentKey | LineProblem {
  if (id === undefined || id === null) {
    const reason = `the id field ${showName(field)} is missing; the fields are: ${describeFields(names)}`;
    return { reason, field };
  }
  return keyOfId(id, field);
}

function keyOfId(id: ExactJson, field: string): DocumentKey | LineProblem {
  if (typeof id === 'string') {
    if (id === '') return { reason: `the id field ${showName(field)} is empty`, field };
    // No PostgreSQL text can hold it.
    if (id.includes('\0')) return { reason: `the id field ${showName(field)} holds a NUL character`, field };
    return { key: id, idIsNumber: false };
  }
  if (typeof id === 'number' || typeof id === 'bigint') return { key: String(id), idIsNumber: true };
  const found = Array.isArray(id) ? 'a list' : typeof id === 'object' ? 'an object' : String(id);
  return { reason: `the id field ${showName(field)} must be a string or a number, not ${found}`, field };
}
