/** The field of a record that is the user's message when no template says otherwise. */
import type { ExactObject } from '../core/exact-json.js';
import { describeFields } from '../core/field.js';

/** Where the user's message is looked for when there is no template, in this order. */
export const DEFAULT_PROMPT_FIELDS = ['prompt', 'text', 'content', 'document', 'input'] as const;

/** The default field that a record without template has, null when it has none. */
export function findPromptField(fields: ExactObject): string | null {
  return DEFAULT_PROMPT_FIELDS.find((name) => typeof fields[name] === 'string') ?? null;
}

/** What to say when a record has no default field, and the one that a prompt could name. */
export function missingPromptField(fields: ExactObject): { readonly reason: string; readonly field: string } {
  const names = Object.keys(fields);
  const candidate = names.find(
    (name) => name !== 'id' && name !== 'custom_id' && typeof fields[name] === 'string',
  );
  return {
    reason: `none of the fields ${DEFAULT_PROMPT_FIELDS.join(', ')} is a string; the fields are: ${describeFields(names)}`,
    field: candidate ?? 'field',
  };
}
