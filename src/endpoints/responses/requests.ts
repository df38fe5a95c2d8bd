/** Requests to responses, of bodies that came whole and of records. Nothing is stored at the server unless a body asks. */
import type { Attachment } from '../../core/attachment.js';
import { type ExactObject, parseExact, stringifyExact } from '../../core/exact-json.js';
import { hasText } from '../../core/foreign-text.js';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';
import type { LineProblem } from '../../core/line-problem.js';
import { MODEL_MISSING, modelIn, refusedForTexts } from '../body-fields.js';
import { attachmentsIn, fileNameOf, isSystemMessage, textOfMessages } from '../chat/request-shape.js';
import type { RequestDefaults } from '../endpoint.js';
import { contentLast, type RecordShape } from '../record-request.js';
import type { RenderedRequest } from '../rendered-request.js';
import { WholeRequest } from '../whole-request.js';
import { asChat } from './as-chat.js';

/** What servers take for true where nothing is said: each answer would lie there for a month. */
const NOT_STORED = { store: false };

export const RESPONSES_SHAPE: RecordShape = {
  endpoint: 'responses',
  contentField: 'input',
  outputCapOf({ max_output_tokens: cap }) {
    return typeof cap === 'number' && cap >= 0 ? cap : null;
  },
  textOf: (body) => textOfMessages(asChat(body)),
  attachmentsIn: (body) => attachmentsIn(asChat(body)),
  inputsOf: () => 1,
  isGrouped: false,
  around({ model, systemText, parameters }) {
    const instructions = systemText === null ? {} : { instructions: systemText };
    return contentLast('input', { model, ...instructions, ...NOT_STORED, ...parameters });
  },
  contentOf: (parts) => [{ role: 'user', content: parts.map(partOf) }],
  refuseAttachments: () => null,
};

function partOf(part: string | Attachment): JsonObject {
  if (typeof part === 'string') return { type: 'input_text', text: part };
  const { kind, url, file } = part;
  return kind === 'image'
    ? { type: 'input_image', image_url: url }
    : { type: 'input_file', filename: fileNameOf(file), file_data: url };
}

/** @param systemText becomes the instructions of a request that has none of its own */
export function completeRequest(
  request: JsonObject,
  defaults: RequestDefaults,
  systemText: string | null,
): RenderedRequest | LineProblem {
  for (const name of ['stream', 'background']) {
    const reason = refusedValue(name, request[name]);
    if (reason !== null) return { reason, field: name };
  }
  const model = modelIn(request, defaults.model);
  if (model === null) return MODEL_MISSING;
  const { input } = request;
  const problem = problemOf(input);
  if (problem !== null) return { reason: problem, field: 'input' };
  const items = Array.isArray(input) ? input : [];
  const hasSystemText = request['instructions'] !== undefined || items.some(isSystemMessage);
  return new WholeRequest(RESPONSES_SHAPE, model, {
    ...NOT_STORED,
    ...defaults.parameters,
    ...(systemText !== null && !hasSystemText && { instructions: systemText }),
    ...request,
    model,
  });
}

/** What is not stored cannot be fetched, so that servers refuse `store: false` here. */
export function inBackground(bodyJson: string): string {
  const body = parseExact(bodyJson) as ExactObject;
  return stringifyExact({ ...body, store: true, background: true });
}

function problemOf(input: Json | undefined): string | null {
  if (typeof input === 'string') return hasText(input) ? null : 'input is empty';
  if (!Array.isArray(input) || input.length === 0 || !input.every(isJsonObject)) {
    return 'input must be a text or a list of at least one item';
  }
  return null;
}

const NAMES_ELSEWHERE: Readonly<Record<string, string>> = {
  max_tokens: 'max_output_tokens',
  max_completion_tokens: 'max_output_tokens',
  response_format: 'text.format',
  reasoning_effort: 'reasoning.effort',
};

/** Why a request may not carry this value; null when it may. */
export function refusedValue(name: string, value: Json | undefined): string | null {
  const newName = NAMES_ELSEWHERE[name];
  if (newName !== undefined) return `responses call it ${newName}`;
  if (name === 'n') return 'responses give one answer each';
  if (name === 'background' && value === true) {
    return 'background must be left out: it is a setting of the run';
  }
  return refusedForTexts(name, value);
}
