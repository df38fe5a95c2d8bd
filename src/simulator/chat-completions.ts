/** POST /v1/chat/completions, without streaming and with one choice. */
import { isJsonObject, type Json, type JsonObject } from '../core/json.js';
import { outputCapOf, type SimulatedAnswer, simulatedAnswer, textsOf } from './answer.js';
import type { AnswerStamp, AnswerVariant, Endpoint, Inquiry } from './endpoint.js';
import type { Prices, SimulatorSettings } from './options.js';
import {
  faultOfChoices,
  faultOfModel,
  invalidRequest,
  missingParameter,
  type Refusal,
  unsupported,
} from './refusal.js';

export const chatCompletions: Endpoint = {
  path: '/v1/chat/completions',
  read(requestBody, settings) {
    return (
      faultOf(requestBody) ??
      inquireChat(requestBody, settings, (answered) => ({
        ...render(answered),
        service_tier: servedTier(requestBody['service_tier']),
      }))
    );
  },
};

function faultOf(requestBody: JsonObject): Refusal | null {
  const { model, messages } = requestBody;
  const ofModel = faultOfModel(requestBody);
  if (ofModel !== null) return ofModel;
  if (messages === undefined) return missingParameter('messages');
  if (!Array.isArray(messages)) {
    return invalidRequest("Invalid type for 'messages': expected an array.", 'messages', 'invalid_type');
  }
  if (messages.length === 0) {
    return invalidRequest("Invalid 'messages': empty array.", 'messages', 'empty_array');
  }
  for (const [index, message] of messages.entries()) {
    if (!isJsonObject(message) || typeof message['role'] !== 'string') {
      return missingParameter(`messages[${index}].role`);
    }
    const fault = faultOfContent(message['content'], `messages[${index}].content`);
    if (fault !== null) return fault;
  }
  const ofChoices = faultOfChoices(requestBody);
  if (ofChoices !== null) return ofChoices;
  return /^o\d|^gpt-[5-9](?!.*-chat)/.test(String(model)) ? faultForReasoning(requestBody) : null;
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
      return { ...missingParameter(`${param}.type`), param };
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
    const message = 'Expected an http(s) URL or base64 data of a PNG, JPEG, GIF or WebP.';
    return isWhole(url, IMAGE_URL) ? null : invalidRequest(message, param, 'invalid_image_url');
  }
  if (type !== 'file') return unsupported(`${param}.type`, JSON.stringify(type));
  const data = isJsonObject(part['file']) ? part['file']['file_data'] : undefined;
  const message = 'Expected file_data as base64 data of a file.';
  return isWhole(data, FILE_DATA) ? null : invalidRequest(message, param, 'invalid_file_data');
}

/** Whether it is a URL of that form, and the data in it, if it holds any, are base64 to their end. */
function isWhole(url: Json | undefined, form: RegExp): boolean {
  if (typeof url !== 'string' || !form.test(url)) return false;
  if (!url.startsWith('data:')) return true;
  const data = url.slice(url.indexOf(',') + 1);
  return data.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(data);
}

/** An answer and what goes with it. */
export interface Answered {
  readonly answer: SimulatedAnswer;
  readonly said: Said;
  readonly variant: AnswerVariant;
  readonly stamp: AnswerStamp;
  readonly costUsd: number | null;
}

/** @param render the body that says it */
export function inquireChat(
  requestBody: JsonObject,
  settings: SimulatorSettings,
  render: (answered: Answered) => JsonObject,
): Inquiry {
  const answer = simulatedAnswer(requestBody, settings);
  const { fingerprint, promptTokens, completionTokens } = answer;
  const costUsd = costUsdOf(answer, settings.prices);
  return {
    fingerprint,
    companions: [],
    model: String(requestBody['model']),
    userTexts: userTextsOf(requestBody['messages'] ?? []),
    promptTokens,
    completionTokens,
    outputCapTokens: outputCapOf(requestBody),
    costUsd,
    render: (variant, stamp) => render({ answer, said: say(answer, variant), variant, stamp, costUsd }),
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

interface Said {
  readonly content: string | null;
  readonly refusal: string | null;
  readonly finishReason: string;
}

export function say({ text }: SimulatedAnswer, variant: AnswerVariant): Said {
  const said = (content: string | null, finishReason = 'stop', refusal: string | null = null): Said => {
    return { content, refusal, finishReason };
  };
  switch (variant) {
    case 'half':
      return said(text.slice(0, Math.ceil(text.length / 2)), 'length');
    case 'filtered':
      return said('', 'content_filter');
    case 'refused':
      return said(null, 'stop', 'I cannot help with this document.');
    case 'without_content':
      return said('');
    case 'with_nul':
      return said(`${text}\u0000`);
    case 'with_lone_surrogate':
      return said(`${text}\ud83d`);
    default:
      return said(text);
  }
}

function render({ answer, said, variant, stamp, costUsd }: Answered): JsonObject {
  const { content, refusal, finishReason } = said;
  const choice: JsonObject = {
    index: 0,
    message: { role: 'assistant', content, refusal, annotations: [] },
    logprobs: null,
    finish_reason: finishReason,
  };
  return {
    id: `chatcmpl-simulated-${stamp.callNumber}`,
    object: 'chat.completion',
    created: stamp.createdSeconds,
    model: answer.model,
    choices: variant === 'without_choices' ? [] : [choice],
    ...(variant !== 'without_usage' && { usage: { ...usageOf(answer, costUsd), ...NO_DETAILS } }),
    system_fingerprint: 'fp_simulated',
  };
}

/** Nothing is cached and nothing is reasoned; the details say so. */
const NO_DETAILS: JsonObject = {
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: {
    ...{ reasoning_tokens: 0, audio_tokens: 0 },
    ...{ accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
  },
};

type TokensUsed = Pick<SimulatedAnswer, 'promptTokens' | 'completionTokens'>;

export function usageOf({ promptTokens, completionTokens }: TokensUsed, costUsd: number | null): JsonObject {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...costMember(costUsd),
  };
}

/** Where the simulator has prices. */
export function costMember(costUsd: number | null): JsonObject {
  return costUsd === null ? {} : { cost: costUsd };
}

/** @returns dollars; null without prices */
export function costUsdOf({ promptTokens, completionTokens }: TokensUsed, prices: Prices | null) {
  if (prices === null) return null;
  const { inputMicroUsdPerToken, outputMicroUsdPerToken } = prices;
  return (promptTokens * inputMicroUsdPerToken + completionTokens * outputMicroUsdPerToken) / 1e6;
}
