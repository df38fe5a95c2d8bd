/** Documents to requests. What a line says comes first, then `--param` and `--model`, then the defaults. */
import type { JsonObject } from '../core/json.js';
import { isLineProblem, type LineProblem } from './bad-line.js';
import type { ParsedDocument } from './document.js';
import type { ExactObject } from './exact-json.js';
import { findPromptField, hasText, missingPromptField } from './prompt-field.js';
import { FrameMaker, RecordRequest } from './record-request.js';
import type { RenderedRequest } from './rendered-request.js';
import { compileTemplate, type Template } from './template.js';
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
  /** The field that holds the id; null: `custom_id`, else `id`, else a hash. */
  readonly idField: string | null;
}

/** @returns the request, or why the line can not become one */
export type RequestBuilder = (document: ParsedDocument) => RenderedRequest | LineProblem;

/** @throws LlmBatchError TEMPLATE_SYNTAX (exit 2) */
export function createRequestBuilder(settings: RequestSettings): RequestBuilder {
  const prompt =
    settings.promptTemplate === null ? null : compileTemplate(settings.promptTemplate, '--prompt');
  const system =
    settings.systemTemplate === null ? null : compileTemplate(settings.systemTemplate, '--system');
  const model = settings.model ?? DEFAULT_MODEL;
  const { parameters } = settings;
  const frames = new FrameMaker(model, parameters);

  return ({ form, fields, request }) => {
    const systemText = system === null ? null : system.render(fields);
    if (typeof systemText === 'object' && systemText !== null) return systemText;
    if (request !== null) {
      const completed = completeRequest(request, { model, parameters, systemText });
      return form === 'batch_line' && isLineProblem(completed) ? insideBody(completed) : completed;
    }
    const text = userText(fields, prompt);
    return typeof text === 'string' ? new RecordRequest(frames.frame(systemText), text) : text;
  };
}

function insideBody({ reason, field }: LineProblem): LineProblem {
  return field === undefined ? { reason } : { reason: `body: ${reason}`, field: `body.${field}` };
}

function userText(fields: ExactObject, prompt: Template | null): string | LineProblem {
  let text: string | LineProblem;
  if (prompt !== null) {
    text = prompt.render(fields);
  } else {
    const field = findPromptField(fields);
    if (field === null) {
      const { reason, flag } = missingPromptField(fields);
      return { reason: `${reason}; name the one to send with ${flag}` };
    }
    text = fields[field] as string;
    if (!hasText(text)) return { reason: `the field ${field}, which is the message, is empty`, field };
  }
  if (typeof text === 'string' && !hasText(text)) return { reason: 'the rendered prompt is empty' };
  return text;
}
