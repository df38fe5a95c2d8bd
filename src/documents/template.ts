/**
 * Prompt templates: text with `{{field}}`, `{{a.b}}` for a field inside an object and `{{items.0}}` for a place in
 * a list. A string goes in as it is, everything else as JSON text. `\{{` writes `{{`; single braces mean nothing.
 */
import { usageError } from '../core/errors.js';
import type { LineProblem } from './bad-line.js';
import { type ExactJson, type ExactObject, stringifyExact } from './exact-json.js';
import { describeFields, lookUpField, showName } from './field.js';

export interface Template {
  /** The fields it names, each once, in order. */
  readonly fields: readonly string[];
  /** The text for one document, or what the document lacks. */
  render(document: ExactObject): string | LineProblem;
}

/** An escaped brace pair, a complete reference, or an opening that is never closed. */
const PIECE = /\\\{\{|\{\{([^{}]*)\}\}|\{\{(?!\{)/g;
/** What other template languages put between braces; here it is always a mistake. */
const FOREIGN_SYNTAX = /^[#/>!&^]|[|"]/;

/**
 * @param name what messages call the template, e.g. `--prompt`
 * @throws LlmBatchError TEMPLATE_SYNTAX (exit 2)
 */
export function compileTemplate(source: string, name: string): Template {
  // Editors on Windows begin files with a byte order mark, which is no part of a prompt.
  const text = source.startsWith('\ufeff') ? source.slice(1) : source;
  const literals: string[] = [];
  const fields: string[] = [];
  let literal = '';
  let end = 0;
  for (const match of text.matchAll(PIECE)) {
    literal += text.slice(end, match.index);
    end = match.index + match[0].length;
    if (match[0].startsWith('\\')) {
      literal += '{{';
      continue;
    }
    fields.push(checkReference(match[1], text.slice(match.index), name));
    literals.push(literal);
    literal = '';
  }
  const tail = literal + text.slice(end);
  return {
    fields: [...new Set(fields)],
    render(document) {
      let rendered = '';
      for (let index = 0; index < fields.length; index += 1) {
        const field = fields[index] as string;
        const value = lookUpField(document, field);
        if (value === undefined) return missingField(field, document);
        rendered += literals[index] + toText(value);
      }
      return rendered + tail;
    },
  };
}

function checkReference(reference: string | undefined, rest: string, name: string): string {
  const shown = JSON.stringify(rest.length > 40 ? `${rest.slice(0, 40)}…` : rest);
  if (reference === undefined) {
    throw syntaxError(`The ${name} template opens {{ and does not close it: ${shown}.`);
  }
  const field = reference.trim();
  if (field === '') throw syntaxError(`The ${name} template has a {{ }} without a field name: ${shown}.`);
  if (FOREIGN_SYNTAX.test(field)) {
    throw syntaxError(`The ${name} template has {{ }} around what is no field name: ${shown}.`);
  }
  return field;
}

function syntaxError(message: string): Error {
  return usageError(
    'TEMPLATE_SYNTAX',
    message,
    'Write {{field}} or {{a.b}} for a field of the document, and \\{{ where two braces are meant.',
  );
}

function missingField(field: string, document: ExactObject): LineProblem {
  return {
    reason: `the template's field ${showName(field)} is missing; the fields are: ${describeFields(Object.keys(document))}`,
    field,
  };
}

function toText(value: ExactJson): string {
  return typeof value === 'string' ? value : stringifyExact(value);
}
