/**
 * Prompt templates: text with `{{field}}`, `{{a.b}}` for a field inside an object and `{{items.0}}` for a place in
 * a list. A string goes in as it is, everything else as JSON text. `\{{` writes `{{`; single braces mean nothing.
 *
 * `{{field|default:"none"}}` puts in `none` where the field is missing, null or empty, and `{{.}}` the whole document.
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
  /** The first field named, with no default, that holds nothing in this document; null where all hold something. */
  emptyFieldOf(document: ExactObject): string | null;
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
/** `{{field|default:"…"}}`, trimmed. */
const WITH_DEFAULT = /^([^|"']*[^|"'\s])\s*\|\s*default:\s*(?:"([^"]*)"|'([^']*)')$/s;
/** The reference to the whole document. */
const WHOLE = '.';

/** `{{image photo}}`, trimmed. */
const IMAGE_REFERENCE = /^image\s+(\S.*)$/s;

/** What a template's text is made of: before each reference its literal, and the tail behind the last. */
interface TemplateText {
  readonly literals: readonly string[];
  readonly references: readonly Reference[];
  readonly tail: string;
}

interface Reference {
  readonly field: string;
  /** What stands for nothing; null: that stays as it is, and a field must be there. */
  readonly otherwise: string | null;
}

/**
 * @param name what messages call the template, `prompt` or `system`
 * @throws LlmBatchError TEMPLATE_SYNTAX (exit 2)
 */
export function compileTemplate(source: string, name: string): Template {
  const text = readTemplate(source, name);
  const imageFields = text.references.map(imageFieldOf);
  const fields = text.references.map(({ field }, index) => imageFields[index] ?? field);
  const needed = text.references.filter(
    ({ field, otherwise }, index) => otherwise === null && field !== WHOLE && imageFields[index] === null,
  );
  const hasImages = imageFields.some((field) => field !== null);
  return {
    fields: [...new Set(fields)],
    emptyFieldOf(document) {
      const empty = needed.find(({ field }) => isNothing(lookUpField(document, field)));
      return empty?.field ?? null;
    },
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
      `The ${name} template has {{${image.field}}}, and only the user's message takes images.`,
      { isImage: true },
    );
  }
  return { render: (document) => renderText(text, document) };
}

function readTemplate(source: string, name: string): TemplateText {
  // Editors on Windows begin files with a byte order mark, which is no part of a prompt.
  const text = source.startsWith('\ufeff') ? source.slice(1) : source;
  const literals: string[] = [];
  const references: Reference[] = [];
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

function imageFieldOf({ field, otherwise }: Reference): string | null {
  return otherwise === null ? (IMAGE_REFERENCE.exec(field)?.[1] ?? null) : null;
}

function renderText(
  { literals, references, tail }: TemplateText,
  document: ExactObject,
): string | LineProblem {
  let rendered = '';
  for (let index = 0; index < references.length; index += 1) {
    const reference = references[index] as Reference;
    const value = textOf(reference, document);
    if (value === null) return missingField(reference.field, document);
    rendered += literals[index] + value;
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
    const value = textOf(reference, document);
    if (value !== null) {
      rendered += value;
      continue;
    }
    const imageField = imageFields[index] ?? null;
    if (imageField === null) return missingField(reference.field, document);
    const image = lookUpField(document, imageField);
    if (image === undefined) return missingField(imageField, document);
    pieces.push(rendered, { imageField, value: image });
    rendered = '';
  }
  return pieces.length === 0 ? rendered + tail : [...pieces, rendered + tail];
}

function checkReference(reference: string | undefined, rest: string, name: string): Reference {
  const shown = JSON.stringify(rest.length > 40 ? `${rest.slice(0, 40)}…` : rest);
  if (reference === undefined) {
    throw syntaxError(`The ${name} template opens {{ and does not close it: ${shown}.`);
  }
  const field = reference.trim();
  const [, withDefault, double, single] = WITH_DEFAULT.exec(field) ?? [];
  if (withDefault !== undefined) return { field: withDefault.trim(), otherwise: double ?? single ?? '' };
  if (field === '') throw syntaxError(`The ${name} template has a {{ }} without a field name: ${shown}.`);
  if (FOREIGN_SYNTAX.test(field)) {
    throw syntaxError(`The ${name} template has {{ }} around what is no field name: ${shown}.`);
  }
  return { field, otherwise: null };
}

function syntaxError(message: string): Error {
  return usageError(
    'TEMPLATE_SYNTAX',
    message,
    'Write {{field}} or {{a.b}} for a field of the document, {{field|default:"…"}} where it may be missing, {{.}} for all of it, {{image field}} for the images it names, and \\{{ where two braces are meant.',
  );
}

function missingField(field: string, document: ExactObject): LineProblem {
  return {
    reason: `the template's field ${showName(field)} is missing; the fields are: ${describeFields(Object.keys(document))}`,
    field,
  };
}

/** Null for a field that is not there and has no default. */
function textOf({ field, otherwise }: Reference, document: ExactObject): string | null {
  if (field === WHOLE && !Object.hasOwn(document, WHOLE)) return toText(document);
  const value = lookUpField(document, field);
  if (otherwise !== null && isNothing(value)) return otherwise;
  return value === undefined ? null : toText(value);
}

function isNothing(value: ExactJson | undefined): boolean {
  return value === undefined || value === null || (typeof value === 'string' && value.trim() === '');
}

function toText(value: ExactJson): string {
  return typeof value === 'string' ? value : stringifyExact(value);
}
