/** Moderations requests of bodies that came whole and of records. */
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';
import type { LineProblem } from '../../core/line-problem.js';
import { generatesNothing, modelIn } from '../body-fields.js';
import { attachmentPart, attachmentsIn, textPart } from '../chat/request-shape.js';
import type { RequestDefaults } from '../endpoint.js';
import { asksForOne, listShape, problemOfInputs } from '../inputs.js';
import { contentLast, type RecordShape } from '../record-request.js';
import type { RenderedRequest } from '../rendered-request.js';
import { WholeRequest } from '../whole-request.js';

/** What servers take where a request names none. */
export const DEFAULT_MODEL = 'omni-moderation-latest';
/** None is published; 32 is what OpenAI was seen to take. What is too large for a server goes again in halves. */
export const MOST_TEXTS = 32;

export const MODERATIONS_SHAPE: RecordShape = {
  ...listShape('input'),
  endpoint: 'moderations',
  /** There is no output to pay for. */
  outputCapOf: () => 0,
  attachmentsIn: ({ input }) => attachmentsIn({ messages: [{ content: input ?? null }] }),
  around: ({ model, parameters }) => contentLast('input', { model, ...parameters }),
  contentOf: (parts) =>
    parts.map((part) => (typeof part === 'string' ? textPart(part) : attachmentPart(part))),
  refuseAttachments(attachments) {
    if (attachments.some(({ kind }) => kind === 'pdf')) return 'moderations take no PDFs; leave them out';
    // OpenAI's error too_many_images: "exceeds maximum of 1".
    return attachments.length > 1 ? 'moderations take one image a document' : null;
  },
};

export function completeRequest(body: JsonObject, defaults: RequestDefaults): RenderedRequest | LineProblem {
  const model = modelIn(body, defaults.model) ?? DEFAULT_MODEL;
  const { input } = body;
  const problem = isParts(input) ? null : problemOfInputs(input, 'input', MOST_TEXTS);
  if (problem !== null) return problem;
  return new WholeRequest(MODERATIONS_SHAPE, model, { ...defaults.parameters, ...body, model });
}

/** Texts and images that are judged as one. */
function isParts(input: Json | undefined): boolean {
  return asksForOne(input) && Array.isArray(input) && input.every(isJsonObject);
}

/** Why a request may not carry this value; null when it may. */
export function refusedValue(name: string): string | null {
  return generatesNothing(name, 'moderations');
}
