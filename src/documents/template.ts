/**
 * Prompt templates: text with `{{field}}`, `{{a.b}}` for a field inside an object and `{{items.0}}` for a place in
 * a list. A string goes in as it is, everything else as JSON text. `\{{` writes `{{`; single braces mean nothing.
 *
 * `{{image photo}}` puts in what the field `photo` names: an image, a PDF or several of them. In a document that has a
 * field of the very name `image photo`, that field is meant, as a field with a dot in its name goes before a path.
 */
import { usageError } from '../core/errors.js';
import { type ExactJson, type ExactObject, stringifyExact } from '../core/exact-json.js';
import { describeFields, lookUpField, showName } from '../core/field.js';
import type { LineProblem } from '../core/line-problem.js';

export interface Template {
  /** The fields it names, each once, in order. */
  readonly fields: readonly string[];
  /** The text for one document, in pieces where images are named between; or what the document lacks. */
  render(document: ExactObject): string | readonly TemplatePiece[] | LineProblem;
}

/** A text, or a field that names images and its value. */
export type TemplatePiece = string | { readonly imageField: string; readonly value: ExactJson };

export interface TextTemplate {
  /** The text for one document, or what the document lacks. */
  render(document: ExactObject): string | LineProblem;
}

/** An escaped brace pair, a complete reference, or an opening that is never closed. */
const PIECE = /\\\{\{|\{\{([^{}]*)\}\}|\{\{(?!\{)/g;
/** What other template languages put between braces; here it is always a mistake. */
const FOREIGN_SYNTAX = /^[#/>!&^]|[|"]/;

/** `{{image photo}}`, trimmed. */
const IMAGE_REFERENCE = /^image\s+(\S.*)$/s;

/** What a template's text is made of: before each reference its literal, and the tail behind the last. */
interface TemplateText {
  readonly literals: readonly string[];
  readonly references: readonly string[];
  readonly tail: string;
}

/**
 * @param name what messages call the template, `prompt` or `system`
 * @throws LlmBatchError TEMPLATE_SYNTAX (exit 2)
 */
export function compileTemplate(source: string, name: string): Template {
  const text = readTemplate(source, name);
  const imageFields = text.references.map(imageFieldOf);
  const fields = text.references.map((reference, index) => imageFields[index] ?? reference);
  const hasImages = imageFields.some((field) => field !== null);
  return {
    fields: [...new Set(fields)],
    render: hasImages
      ? (document) => renderPieces(text, imageFields, document)
      : (document) => renderText(text, document),
  };
}

/**
 * A template of text alone.
 * @throws LlmBatchError TEMPLATE_SYNTAX (exit 2), also for `{{image field}}`
 */
export function compileTextTemplate(source: string, name: string): TextTemplate {
  const text = readTemplate(source, name);
  const image = text.references.find((reference) => imageFieldOf(reference) !== null);
  if (image !== undefined) {
    throw usageError(
      'TEMPLATE_SYNTAX',
      `The ${name} template has {{${image}}}, and only the user's message takes images.`,
      { isImage: true },
    );
  }
  return { render: (document) => renderText(text, document) };
}

function readTemplate(source: string, name: string): TemplateText {
  // Editors on Windows begin files with a byte order mark, which is no part of a prompt.
  const text = source.startsWith('\ufeff') ? source.slice(1) : source;
  const literals: string[] = [];
  const references: string[] = [];
  let literal = '';
  let end = 0;
  for (const match of text.matchAll(PIECE)) {
    literal += text.slice(end, match.index);
    end = match.index + match[0].length;
    if (match[0].startsWith('\\')) {
      literal += '{{';
      continue;
    }
    references.push(checkReference(match[1], text.slice(match.index), name));
    literals.push(literal);
    literal = '';
  }
  return { literals, references, tail: literal + text.slice(end) };
}

function imageFieldOf(reference: string): string | null {
  return IMAGE_REFERENCE.exec(reference)?.[1] ?? null;
}

function renderText(
  { literals, references, tail }: TemplateText,
  document: ExactObject,
): string | LineProblem {
  let rendered = '';
  for (let index = 0; index < references.length; index += 1) {
    const field = references[index] as string;
    const value = lookUpField(document, field);
    if (value === undefined) return missingField(field, document);
    rendered += literals[index] + toText(value);
  }
  return rendered + tail;
}

function renderPieces(
  { literals, references, tail }: TemplateText,
  imageFields: readonly (string | null)[],
  document: ExactObject,
): string | readonly TemplatePiece[] | LineProblem {
  const pieces: TemplatePiece[] = [];
  let rendered = '';
  for (const [index, reference] of references.entries()) {
    rendered += literals[index];
    const value = lookUpField(document, reference);
    if (value !== undefined) {
      rendered += toText(value);
      continue;
    }
    const imageField = imageFields[index] ?? null;
    if (imageField === null) return missingField(reference, document);
    const image = lookUpField(document, imageField);
    if (image === undefined) return missingField(imageField, document);
    pieces.push(rendered, { imageField, value: image });
    rendered = '';
  }
  return pieces.length === 0 ? rendered + tail : [...pieces, rendered + tail];
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
    'Write {{field}} or {{a.b}} for a field of the document, {{image field}} for the images it names, and \\{{ where two braces are meant.',
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
