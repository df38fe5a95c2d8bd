/** POST /v1/responses, without streaming: says to a text what /v1/chat/completions says to it, for as many tokens. */
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import type { SimulatedAnswer } from './answer.js';
import { type Answered, chatCompletions, costMember, inquireChat, servedTier } from './chat-completions.js';
import type { Endpoint } from './endpoint.js';
import type { SimulatorSettings } from './options.js';
import { invalidRequest, isRefusal, missingParameter, type Refusal } from './refusal.js';

export const responses: Endpoint = {
  path: '/v1/responses',
  read(requestBody, settings) {
    const refusal = faultOf(requestBody, settings);
    if (refusal !== null) return refusal;
    const chat = asChat(requestBody);
    const fault = chatCompletions.read(chat, settings);
    if (isRefusal(fault)) return { ...fault, param: fault.param?.replace('messages', 'input') ?? null };
    const inquiry = inquireChat(chat, settings, (answered) => render(requestBody, answered));
    return requestBody['background'] === true ? { ...inquiry, isBackground: true } : inquiry;
  },
};

/** What chat completions call otherwise. */
const UNKNOWN = 'max_tokens max_completion_tokens messages response_format n reasoning_effort'.split(' ');

function faultOf(requestBody: JsonObject, { background: { isOffered } }: SimulatorSettings): Refusal | null {
  const { input, max_output_tokens: cap, background, store } = requestBody;
  if (background !== undefined && !isOffered) {
    return invalidRequest("Unknown parameter: 'background'.", 'background', 'unknown_parameter');
  }
  if (background === true && store === false) {
    return invalidRequest("Background responses require 'store' to be true.", 'store', 'invalid_value');
  }
  const unknown = UNKNOWN.find((name) => Object.hasOwn(requestBody, name));
  if (unknown !== undefined) {
    return invalidRequest(`Unsupported parameter: '${unknown}'.`, unknown, 'unsupported_parameter');
  }
  if (input === undefined) return missingParameter('input');
  if (typeof input !== 'string' && !Array.isArray(input)) {
    const message = "Invalid type for 'input': expected a string or an array.";
    return invalidRequest(message, 'input', 'invalid_type');
  }
  if (cap !== undefined && cap !== null && !(Number.isInteger(cap) && Number(cap) >= 16)) {
    const message = "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.";
    return invalidRequest(message, 'max_output_tokens', 'integer_below_min_value');
  }
  return null;
}

/** The chat completion that asks the same. */
function asChat(requestBody: JsonObject): JsonObject {
  const { instructions, input, text, tools, max_output_tokens: cap, ...rest } = requestBody;
  const format = isJsonObject(text) ? text['format'] : undefined;
  const messages = Array.isArray(input) ? input.map(asMessage) : [{ role: 'user', content: input ?? null }];
  return {
    ...rest,
    messages: [
      ...(typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : []),
      ...messages,
    ],
    ...(isJsonObject(format) && { response_format: asFormat(format) }),
    ...(Array.isArray(tools) && { tools: tools.map(asTool) }),
    ...(cap !== undefined && { max_completion_tokens: cap }),
  };
}

function asMessage(item: Json): Json {
  if (!isJsonObject(item)) return item;
  const { role = 'tool', content = item['output'] ?? '' } = item;
  return { role, content: Array.isArray(content) ? content.map(asPart) : content };
}

function asPart(part: Json): Json {
  if (!isJsonObject(part)) return part;
  switch (part['type']) {
    case 'input_text':
    case 'output_text':
      return { type: 'text', text: part['text'] ?? null };
    case 'input_image':
      return { type: 'image_url', image_url: { url: part['image_url'] ?? null } };
    case 'input_file':
      return { type: 'file', file: { file_data: part['file_data'] ?? null } };
    default:
      return part;
  }
}

function asFormat({ type, ...described }: JsonObject): JsonObject {
  return type === 'json_schema' ? { type, json_schema: described } : { type: type ?? null, ...described };
}

function asTool(tool: Json): Json {
  if (!isJsonObject(tool) || tool['type'] !== 'function') return tool;
  const { type, ...described } = tool;
  return { type, function: described };
}

const STATUS_REASONS: Readonly<Record<string, string>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
};

function render(requestBody: JsonObject, { answer, said, variant, stamp, costUsd }: Answered): JsonObject {
  const { content, refusal, finishReason } = said;
  const { callNumber, createdSeconds } = stamp;
  const reason = STATUS_REASONS[finishReason];
  const part =
    refusal === null
      ? { type: 'output_text', text: content, annotations: [], logprobs: [] }
      : { type: 'refusal', refusal };
  const message = {
    id: `msg_simulated_${callNumber}`,
    type: 'message',
    status: reason === undefined ? 'completed' : 'incomplete',
    role: 'assistant',
    content: [part],
  };
  return {
    id: `resp_simulated_${callNumber}`,
    object: 'response',
    created_at: createdSeconds,
    status: message.status,
    error: null,
    incomplete_details: reason === undefined ? null : { reason },
    model: answer.model,
    output: variant === 'without_choices' ? [] : [message],
    store: requestBody['store'] ?? true,
    service_tier: servedTier(requestBody['service_tier']),
    ...(variant !== 'without_usage' && { usage: usageOf(answer, costUsd) }),
  };
}

function usageOf({ promptTokens, completionTokens }: SimulatedAnswer, costUsd: number | null): JsonObject {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: promptTokens + completionTokens,
    ...costMember(costUsd),
  };
}
