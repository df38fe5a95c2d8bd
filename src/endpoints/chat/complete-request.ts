/** A request that came whole, from a Batch API line or a line that is a request body, filled up from the settings. */
import { hasText } from '../../core/foreign-text.js';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.js';
import { isLineProblem, type LineProblem } from '../../core/line-problem.js';
import { MODEL_MISSING, modelIn, refusedForTexts } from '../body-fields.js';
import type { RequestDefaults } from '../endpoint.js';
import type { RenderedRequest } from '../rendered-request.js';
import { WholeRequest } from '../whole-request.js';
import { CHAT_SHAPE, isSystemMessage, OUTPUT_CAPS, systemMessage } from './request-shape.js';

/**
 * @param systemText goes first where the messages have no system message of their own
 * @returns the request, or what it cannot be sent with
 */
export function completeRequest(
  request: JsonObject,
  defaults: RequestDefaults,
  systemText: string | null,
): RenderedRequest | LineProblem {
  for (const name of ['stream', 'n']) {
    const reason = refusedForTexts(name, request[name]);
    if (reason !== null) return { reason, field: name };
  }
  const model = modelIn(request, defaults.model);
  if (model === null) return MODEL_MISSING;
  const messages = messagesOf(request);
  if (isLineProblem(messages)) return messages;
  if (systemText !== null && !messages.some(isSystemMessage)) messages.unshift(systemMessage(systemText));

  // Spread, for it copies a field called __proto__ as the field it is.
  const body: JsonObject = { ...request, model, messages };
  if (request['messages'] === undefined) delete body['prompt'];
  for (const [name, value] of Object.entries(defaults.parameters)) {
    if (!saysAlready(request, name)) body[name] = value;
  }
  return new WholeRequest(CHAT_SHAPE, model, body);
}

/** A new list of the request's messages, made of `prompt` where there is none. */
function messagesOf(request: JsonObject): Json[] | LineProblem {
  const { messages } = request;
  if (messages === undefined) {
    const { prompt } = request;
    const field = 'prompt';
    if (typeof prompt !== 'string') {
      return { reason: 'prompt must be a string for chat completions; write messages for more', field };
    }
    if (!hasText(prompt)) return { reason: 'prompt is empty', field };
    return [{ role: 'user', content: prompt }];
  }
  if (!Array.isArray(messages) || messages.length === 0) {
    return { reason: 'messages must be a list of at least one message', field: 'messages' };
  }
  const wrong = messages.findIndex(
    (message) => !isJsonObject(message) || typeof message['role'] !== 'string',
  );
  if (wrong !== -1) return { reason: 'a message must be an object with a role', field: `messages.${wrong}` };
  return [...messages];
}

function saysAlready(request: JsonObject, name: string): boolean {
  if (OUTPUT_CAPS.includes(name)) return OUTPUT_CAPS.some((cap) => Object.hasOwn(request, cap));
  return Object.hasOwn(request, name);
}
