/** POST /v1/chat/completions, without streaming and with one choice. */
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import { outputCapOf, type SimulatedAnswer, simulatedAnswer, textsOf } from './answer.js';
import type { AnswerStamp, AnswerVariant, Endpoint, Inquiry } from './endpoint.js';
import type { Prices, SimulatorSettings } from './options.js';
import { invalidRequest, type Refusal } from './refusal.js';

export const chatCompletions: Endpoint = {
  path: '/v1/chat/completions',
  read(requestBody, settings) {
    return (
      faultOf(requestBody) ??
      inquireChat(requestBody, settings, (answer, said, variant, stamp) => ({
        ...render(answer, said, variant, stamp, settings.prices),
        service_tier: servedTier(requestBody['service_tier']),
      }))
    );
  },
};

function faultOf(requestBody: JsonObject): Refusal | null {
  const { model, messages, stream, n } = requestBody;
  if (typeof model !== 'string' || model === '') {
    return invalidRequest('You must provide a model parameter.', null, null);
  }
  if (messages === undefined) {
    return invalidRequest(
      "Missing required parameter: 'messages'.",
      'messages',
      'missing_required_parameter',
    );
  }
  if (!Array.isArray(messages)) {
    return invalidRequest("Invalid type for 'messages': expected an array.", 'messages', 'invalid_type');
  }
  if (messages.length === 0) {
    return invalidRequest("Invalid 'messages': empty array.", 'messages', 'empty_array');
  }
  for (const [index, message] of messages.entries()) {
    if (!isJsonObject(message) || typeof message['role'] !== 'string') {
      const param = `messages[${index}].role`;
      return invalidRequest(`Missing required parameter: '${param}'.`, param, 'missing_required_parameter');
    }
    const fault = faultOfContent(message['content'], `messages[${index}].content`);
    if (fault !== null) return fault;
  }
  if (stream === true) return unsupported('stream', 'true');
  if (n !== undefined && n !== null && n !== 1) return unsupported('n', JSON.stringify(n));
  return /^o\d|^gpt-[5-9](?!.*-chat)/.test(model) ? faultForReasoning(requestBody) : null;
}

/** As OpenAI's reasoning models refuse what others take. */
function faultForReasoning(requestBody: JsonObject): Refusal | null {
  if (Object.hasOwn(requestBody, 'max_tokens')) {
    const message =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    return invalidRequest(message, 'max_tokens', 'unsupported_parameter');
  }
  const name = ['temperature', 'top_p'].find((each) => (requestBody[each] ?? 1) !== 1);
  if (name === undefined) return null;
  const value = JSON.stringify(requestBody[name]);
  const message = `Unsupported value: '${name}' does not support ${value} with this model. Only the default (1) value is supported.`;
  return invalidRequest(message, name, 'unsupported_value');
}

const TEXT_TYPES = ['text', 'refusal'];

/** Parts are looked at as a server would that has to decode them. */
function faultOfContent(content: Json | undefined, place: string): Refusal | null {
  if (!Array.isArray(content)) return null;
  for (const [index, part] of content.entries()) {
    const param = `${place}[${index}]`;
    const type = isJsonObject(part) ? part['type'] : undefined;
    if (!isJsonObject(part) || typeof type !== 'string') {
      return invalidRequest(
        `Missing required parameter: '${param}.type'.`,
        param,
        'missing_required_parameter',
      );
    }
    const fault = TEXT_TYPES.includes(type) ? null : faultOfAttachment(type, part, param);
    if (fault !== null) return fault;
  }
  return null;
}

const IMAGE_URL = /^(?:https?:\/\/.|data:image\/(?:png|jpeg|gif|webp);base64,)/;
const FILE_DATA = /^data:[a-z]+\/[a-z0-9.+-]+;base64,/;

function faultOfAttachment(type: string, part: JsonObject, param: string): Refusal | null {
  if (type === 'image_url') {
    const url = isJsonObject(part['image_url']) ? part['image_url']['url'] : undefined;
    return typeof url === 'string' && IMAGE_URL.test(url) && isWholeBase64(url)
      ? null
      : invalidRequest(
          'Expected an http(s) URL or base64 data of a PNG, JPEG, GIF or WebP.',
          param,
          'invalid_image_url',
        );
  }
  if (type !== 'file') return unsupported(`${param}.type`, JSON.stringify(type));
  const data = isJsonObject(part['file']) ? part['file']['file_data'] : undefined;
  return typeof data === 'string' && FILE_DATA.test(data) && isWholeBase64(data)
    ? null
    : invalidRequest('Expected file_data as base64 data of a file.', param, 'invalid_file_data');
}

/** True for a URL that holds no data. */
function isWholeBase64(url: string): boolean {
  if (!url.startsWith('data:')) return true;
  const data = url.slice(url.indexOf(',') + 1);
  return data.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(data);
}

/** Better refused than answered in a way the caller did not ask for. */
export function unsupported(param: string, value: string): Refusal {
  const message = `Unsupported value: '${param}' does not support ${value} with the simulator.`;
  return invalidRequest(message, param, 'unsupported_value');
}

/** @param render the body that says it */
export function inquireChat(
  requestBody: JsonObject,
  settings: SimulatorSettings,
  render: (answer: SimulatedAnswer, said: Said, variant: AnswerVariant, stamp: AnswerStamp) => JsonObject,
): Inquiry {
  const answer = simulatedAnswer(requestBody, settings);
  const { prices } = settings;
  return {
    fingerprint: answer.fingerprint,
    companions: [],
    model: String(requestBody['model']),
    userTexts: userTextsOf(requestBody['messages'] ?? []),
    promptTokens: answer.promptTokens,
    completionTokens: answer.completionTokens,
    outputCapTokens: outputCapOf(requestBody),
    costUsd: prices === null ? null : costUsdOf(answer, prices),
    render: (variant, stamp) => render(answer, say(answer, variant), variant, stamp),
  };
}

/** Flex and priority have room for everybody here; a project's own setting, which `auto` would follow, is default. */
export function servedTier(asked: Json | undefined): string {
  return asked === 'flex' || asked === 'priority' ? asked : 'default';
}

function userTextsOf(messages: Json): string[] {
  if (!Array.isArray(messages)) return [];
  return messages.flatMap((message) =>
    isJsonObject(message) && message['role'] === 'user' ? textsOf(message) : [],
  );
}

export interface Said {
  readonly content: string | null;
  readonly refusal: string | null;
  readonly finishReason: string;
}

export function say(answer: SimulatedAnswer, variant: AnswerVariant): Said {
  const { text } = answer;
  switch (variant) {
    case 'half':
      return { content: text.slice(0, Math.ceil(text.length / 2)), refusal: null, finishReason: 'length' };
    case 'filtered':
      return { content: '', refusal: null, finishReason: 'content_filter' };
    case 'refused':
      return { content: null, refusal: 'I cannot help with this document.', finishReason: 'stop' };
    case 'without_content':
      return { content: '', refusal: null, finishReason: 'stop' };
    case 'with_nul':
      return { content: `${text}\u0000`, refusal: null, finishReason: 'stop' };
    case 'with_lone_surrogate':
      return { content: `${text}\ud83d`, refusal: null, finishReason: 'stop' };
    default:
      return { content: text, refusal: null, finishReason: 'stop' };
  }
}

function render(
  answer: SimulatedAnswer,
  { content, refusal, finishReason }: Said,
  variant: AnswerVariant,
  stamp: AnswerStamp,
  prices: Prices | null,
): JsonObject {
  const choice: JsonObject = {
    index: 0,
    message: { role: 'assistant', content, refusal, annotations: [] },
    logprobs: null,
    finish_reason: finishReason,
  };
  const body: JsonObject = {
    id: `chatcmpl-simulated-${stamp.callNumber}`,
    object: 'chat.completion',
    created: stamp.createdSeconds,
    model: answer.model,
    choices: variant === 'without_choices' ? [] : [choice],
  };
  if (variant !== 'without_usage') body['usage'] = usageOf(answer, prices);
  body['system_fingerprint'] = 'fp_simulated';
  return body;
}

/** Nothing is cached and nothing is reasoned; the details say so. */
function usageOf(answer: SimulatedAnswer, prices: Prices | null): JsonObject {
  const { promptTokens, completionTokens } = answer;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
    ...(prices === null ? {} : { cost: costUsdOf(answer, prices) }),
  };
}

export function costUsdOf(
  answer: Pick<SimulatedAnswer, 'promptTokens' | 'completionTokens'>,
  prices: Prices,
): number {
  const microUsd =
    answer.promptTokens * prices.inputMicroUsdPerToken +
    answer.completionTokens * prices.outputMicroUsdPerToken;
  return microUsd / 1e6;
}
