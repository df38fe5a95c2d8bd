/** Documents to requests. What a line says comes first, then `--param` and `--model`, then the defaults. */

import type { ExactObject } from '../core/exact-json.js';
import type { JsonObject } from '../core/json.js';
import { isLineProblem, type LineProblem } from '../input/bad-line.js';
import type { ImagePlace } from './attached-file.js';
import { type Attachment, attachmentsOf, refuseTooMuch } from './attachment.js';
import type { ParsedDocument } from './document.js';
import { findPromptField, hasText, missingPromptField } from './prompt-field.js';
import { FrameMaker, PartsRequest, RecordRequest } from './record-request.js';
import type { RenderedRequest } from './rendered-request.js';
import { compileTemplate, compileTextTemplate, type Template, type TemplatePiece } from './template.js';
import { completeRequest } from './whole-request.js';

/**
 * Used when neither line nor `--model` names one: small, cheap, known to every price table, and no reasoning model,
 * so that `temperature` and `max_tokens` are taken and no hidden tokens are paid for.
 */
export const DEFAULT_MODEL = 'gpt-4o-mini';

/** All that turns a stored document into its request; stored with the run, so it must be JSON. */
export interface RequestSettings {
  readonly model: string | null;
  readonly promptTemplate: string | null;
  readonly systemTemplate: string | null;
  /** Body fields for lines that do not set them, e.g. `{ temperature: 0 }`. */
  readonly parameters: JsonObject;
  /** Absolute; what relative paths in `{{image field}}` start from. Absent in runs of earlier versions. */
  readonly imageFolder?: string;
  /** Images may lie outside that folder. Absent in runs of earlier versions, which took them from anywhere. */
  readonly allowAnyPath?: boolean;
  /** See `DocumentRules`. */
  readonly requestsAsTheyAre?: boolean;
  /** The field that holds the id; null: `custom_id`, else `id`, else a hash. */
  readonly idField: string | null;
}

/** @returns the request, or why the line cannot become one */
export type RequestBuilder = (document: ParsedDocument) => RenderedRequest | LineProblem;

/** @throws LlmBatchError TEMPLATE_SYNTAX (exit 2) */
export function createRequestBuilder(settings: RequestSettings): RequestBuilder {
  const prompt = settings.promptTemplate === null ? null : compileTemplate(settings.promptTemplate, 'prompt');
  const system =
    settings.systemTemplate === null ? null : compileTextTemplate(settings.systemTemplate, 'system');
  const model = settings.model ?? DEFAULT_MODEL;
  const { parameters, imageFolder = '.', allowAnyPath = true } = settings;
  const place = { folder: imageFolder, isOpen: allowAnyPath };
  const frames = new FrameMaker(model, parameters);

  return ({ form, fields, request }) => {
    const systemText = system === null ? null : system.render(fields);
    if (typeof systemText === 'object' && systemText !== null) return systemText;
    if (request !== null) {
      const completed = completeRequest(request, { model, parameters, systemText });
      return form === 'batch_line' && isLineProblem(completed) ? insideBody(completed) : completed;
    }
    const message = userMessage(fields, prompt);
    if (typeof message === 'string') return new RecordRequest(frames.frame(systemText), message);
    if ('reason' in message) return message;
    const parts = partsOf(message, place);
    return 'reason' in parts ? parts : new PartsRequest(frames.frame(systemText), parts);
  };
}

function insideBody({ reason, field }: LineProblem): LineProblem {
  return field === undefined ? { reason } : { reason: `body: ${reason}`, field: `body.${field}` };
}

function userMessage(
  fields: ExactObject,
  prompt: Template | null,
): string | readonly TemplatePiece[] | LineProblem {
  if (prompt !== null) {
    const rendered = prompt.render(fields);
    if (typeof rendered === 'string') {
      return hasText(rendered) ? rendered : { reason: 'the rendered prompt is empty' };
    }
    if (!('reason' in rendered) || !Array.isArray(fields['messages'])) return rendered;
    const { reason } = rendered;
    return {
      ...rendered,
      reason: `${reason}; whole requests may be sent without the prompt`,
    };
  }
  const field = findPromptField(fields);
  if (field === null) {
    const missing = missingPromptField(fields);
    return { reason: `${missing.reason}; name the one to send in a prompt: '…{{${missing.field}}}…'` };
  }
  const text = fields[field] as string;
  return hasText(text) ? text : { reason: `the field ${field}, which is the message, is empty`, field };
}

/** Texts of white space alone, as they stand between two images, are left out: some servers refuse such a part. */
function partsOf(
  pieces: readonly TemplatePiece[],
  imagePlace: ImagePlace,
): readonly (string | Attachment)[] | LineProblem {
  const parts: (string | Attachment)[] = [];
  for (const piece of pieces) {
    if (typeof piece === 'string') {
      if (hasText(piece)) parts.push(piece);
      continue;
    }
    const attachments = attachmentsOf(piece.imageField, piece.value, imagePlace);
    if ('reason' in attachments) return attachments;
    parts.push(...attachments);
  }
  return refuseTooMuch(parts.filter((part) => typeof part !== 'string')) ?? parts;
}
