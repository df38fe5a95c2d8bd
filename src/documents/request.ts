/** Documents to requests. What a line says comes first, then `--param` and `--model`, then the defaults. */

import type { Attachment, ImagePlace } from '../core/attachment.js';
import { digest } from '../core/digest.js';
import { DEFAULT_ENDPOINT, type EndpointName } from '../core/endpoint-name.js';
import type { ExactObject } from '../core/exact-json.js';
import { hasText } from '../core/foreign-text.js';
import type { JsonObject } from '../core/json.js';
import { isLineProblem, type LineProblem } from '../core/line-problem.js';
import type { Endpoint, RequestMaker } from '../endpoints/endpoint.js';
import { ENDPOINTS } from '../endpoints/endpoints.js';
import type { RenderedRequest } from '../endpoints/rendered-request.js';
import { attachmentsOf, refuseTooMuch } from './attachment.js';
import type { ParsedDocument } from './document.js';
import { findPromptField, missingPromptField } from './prompt-field.js';
import { compileTemplate, compileTextTemplate, type Template, type TemplatePiece } from './template.js';

/** All that turns a stored document into its request; stored with the run, so it must be JSON. */
export interface RequestSettings {
  /** Where all requests go. Absent or null: records to the default endpoint, each request to its own. */
  readonly endpoint?: EndpointName | null;
  readonly model: string | null;
  readonly promptTemplate: string | null;
  readonly systemTemplate: string | null;
  /** Body fields for lines that do not set them, e.g. `{ temperature: 0 }`. */
  readonly parameters: JsonObject;
  /**
   * Absolute; what relative paths in `{{image field}}` start from. Absent in runs of earlier versions. Null: documents come
   * from elsewhere and name no files of this machine.
   */
  readonly imageFolder?: string | null;
  /** Images may lie outside that folder. Absent in runs of earlier versions, which took them from anywhere. */
  readonly allowAnyPath?: boolean;
  /** See `DocumentRules`. */
  readonly requestsAsTheyAre?: boolean;
  /** The field that holds the id; null: `custom_id`, else `id`, else a hash. */
  readonly idField: string | null;
}

/** The endpoint that records go to, and for which the run's model and parameters are. */
export function runEndpointOf({ endpoint }: Pick<RequestSettings, 'endpoint'>): Endpoint {
  return ENDPOINTS[endpoint ?? DEFAULT_ENDPOINT];
}

/** The model of records and of requests that name none. */
export function modelOf(settings: Pick<RequestSettings, 'model' | 'endpoint'>): string {
  return settings.model ?? runEndpointOf(settings).defaultModel;
}

/** The hash of a request, for telling an edited document from one that only moved. */
export function requestHash(request: RenderedRequest): string {
  return `sha256:${digest(request.fingerprint)}`;
}

/** @returns the request, or why the line cannot become one */
export type RequestBuilder = (document: ParsedDocument) => RenderedRequest | LineProblem;

/** @throws LlmBatchError TEMPLATE_SYNTAX (exit 2) */
export function createRequestBuilder(settings: RequestSettings): RequestBuilder {
  const prompt = settings.promptTemplate === null ? null : compileTemplate(settings.promptTemplate, 'prompt');
  const system =
    settings.systemTemplate === null ? null : compileTextTemplate(settings.systemTemplate, 'system');
  const { parameters, imageFolder = '.', allowAnyPath = true } = settings;
  const runEndpoint = settings.endpoint ?? DEFAULT_ENDPOINT;
  const place = imageFolder === null ? null : { folder: imageFolder, isOpen: allowAnyPath };
  const makers = new Map<EndpointName, RequestMaker>();
  const makerOf = (name: EndpointName): RequestMaker => {
    let maker = makers.get(name);
    if (maker === undefined) {
      maker = ENDPOINTS[name].createRequests(
        name === runEndpoint ? { model: modelOf(settings), parameters } : { model: null, parameters: {} },
      );
      makers.set(name, maker);
    }
    return maker;
  };

  return ({ form, fields, endpoint, request }) => {
    if (
      endpoint !== null &&
      endpoint !== runEndpoint &&
      (system !== null || Object.keys(parameters).length > 0)
    )
      return {
        reason: `is a request for ${endpoint}, and what the run adds to requests is for ${runEndpoint}`,
      };
    const systemText = system === null ? null : system.render(fields);
    if (typeof systemText === 'object' && systemText !== null) return systemText;
    const maker = makerOf(endpoint ?? runEndpoint);
    if (request !== null) {
      const completed = maker.ofBody(request, systemText);
      return form === 'batch_line' && isLineProblem(completed) ? insideBody(completed) : completed;
    }
    const message = userMessage(fields, prompt);
    if (typeof message === 'string') return maker.ofRecord(message, systemText);
    if ('reason' in message) return message;
    const parts = partsOf(message, place);
    return 'reason' in parts ? parts : maker.ofRecord(parts, systemText);
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
  imagePlace: ImagePlace | null,
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
