/** What the first documents of an input show of all of them, good and bad. */
import { usageError } from '../core/errors.js';
import { describeFields } from '../core/field.js';
import type { RenderedRequest } from '../endpoints/rendered-request.js';
import type { DocumentForm, ParsedDocument } from './document.js';
import { findPromptField, missingPromptField } from './prompt-field.js';
import type { RequestSettings } from './request.js';
import { compileTemplate } from './template.js';

/** What the first good document shows of the input, for the plan that is printed before the first call. */
export interface FirstDocument {
  readonly line: number;
  readonly form: DocumentForm;
  readonly fields: readonly string[];
  readonly model: string;
  /** The field taken as the user's message for lack of a template, null when there was no need. */
  readonly promptField: string | null;
}

export function describeFirst(
  line: number,
  document: ParsedDocument,
  request: RenderedRequest,
  settings: RequestSettings,
): FirstDocument {
  const usesDefaultField = document.form === 'record' && settings.promptTemplate === null;
  return {
    line,
    form: document.form,
    fields: Object.keys(document.fields),
    model: request.model,
    promptField: usesDefaultField ? findPromptField(document.fields) : null,
  };
}

/** A mistake that would make every record bad, or every answer the same, is told once instead of a million times. */
export function checkFirstRecord(
  { fields }: ParsedDocument,
  settings: RequestSettings,
  inputName: string,
): void {
  const names = Object.keys(fields);
  if (settings.promptTemplate === null) {
    if (findPromptField(fields) !== null) return;
    const { reason, field } = missingPromptField(fields);
    throw usageError(
      'PROMPT_FIELD_MISSING',
      `The input ${inputName} does not show what to send: ${reason}.`,
      { field },
    );
  }
  const template = compileTemplate(settings.promptTemplate, 'prompt');
  if (template.fields.length > 0) return;
  const single = /\{([^{}\s]+)\}/.exec(settings.promptTemplate)?.[1];
  throw usageError(
    'PROMPT_WITHOUT_FIELD',
    `The prompt template names no field, so every document would get the same request; the fields are: ${describeFields(names)}.`,
    single !== undefined && Object.hasOwn(fields, single)
      ? `Write two braces: {{${single}}}.`
      : { field: missingPromptField(fields).field },
  );
}

/** A pretty-printed file or one JSON array, taken for JSONL, would give a bad line for each of its lines. */
export function refuseJsonFile(firstLine: string, inputName: string): void {
  if (!['[', '[{', '{'].includes(firstLine.replace(/\s+/g, ''))) return;
  throw usageError(
    'INPUT_NOT_JSONL',
    `The input ${inputName} is JSON over several lines, not JSONL: its first line is ${firstLine.trim()}.`,
    `Write one object a line: jq -c '.[]' for a list, jq -c . for objects.`,
  );
}
