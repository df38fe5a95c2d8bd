/** What the first documents of an input show of all of them, good and bad. */
import { usageError } from '../core/errors.js';
import { describeFields, showName } from '../core/field.js';
import { theInput } from '../core/input-name.js';
import type { RenderedRequest } from '../endpoints/rendered-request.js';
import type { Input } from '../input/input.js';
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
  { name: inputName, description }: Pick<Input, 'name' | 'description'>,
): void {
  const names = Object.keys(fields);
  const isTable = description.format === 'csv' || description.format === 'tsv';
  const header = isTable ? { input: inputName, delimiter: description.delimiter, columns: names.length } : {};
  if (settings.promptTemplate === null) {
    if (findPromptField(fields) !== null) return;
    const { reason, field } = missingPromptField(fields);
    throw usageError(
      'PROMPT_FIELD_MISSING',
      `${theInput(inputName)} does not show what to send: ${reason}.`,
      { field, ...header },
    );
  }
  const template = compileTemplate(settings.promptTemplate, 'prompt');
  if (
    isTable &&
    template.fields.length > 0 &&
    !template.fields.some((field) => field === '.' || names.includes(field))
  ) {
    throw usageError(
      'INPUT_WITHOUT_HEADER',
      `The prompt's ${template.fields.map(showName).join(', ')} is no column of ${inputName}, whose first row names these: ${describeFields(names)}.`,
      { field: template.fields.join(description.delimiter), given: template.fields.length, ...header },
    );
  }
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
