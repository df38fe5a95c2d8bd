/** Chat completions: what a response with status 2xx really says. */
import type { FailureKind } from '../../core/failure.js';
import { isJsonObject, type Json, type JsonObject, parseForeignJson, UnusualShape } from '../../core/json.js';
import type { BilledUsage } from '../../core/usage.js';
import type { ProviderAnswer, ProviderRejection } from '../provider.js';
import { type ChatMessage, readMessage } from './chat-message.js';
import { buildFailure, type CallContext, classifyErrorUnderOk, cleanText } from './classify.js';
import { errorObjectOf, looksLikeHtml, readText } from './error-body.js';
import { type HeaderReader, readRateLimitHints, readRequestId } from './headers.js';
import { readBilledUsage, readCostMicroUsd } from './usage.js';

export const CHAT_PATH = '/chat/completions';

/** A response as it was received, whole. */
export interface ReceivedAnswer {
  readonly status: number;
  readonly headers: HeaderReader;
  readonly content: string;
  /** False where bytes of it were no text and stand in `content` as U+FFFD. */
  readonly isUtf8: boolean;
}

/** `finish_reason` of an answer cut off at the output limit; `model_length` is Mistral's for the context's end. */
const TRUNCATED = new Set(['length', 'max_tokens', 'max_output_tokens', 'model_length']);
const FILTERED = new Set(['content_filter', 'content-filter', 'safety', 'sensitive', 'recitation']);
/** The server gave up: OpenRouter, DeepSeek, Zhipu, vLLM and SGLang. */
const GAVE_UP = new Set(['error', 'insufficient_system_resource', 'network_error', 'abort']);

/** Reads a chat completion. Never throws, whatever came. */
export function readChatAnswer(
  received: ReceivedAnswer,
  context: CallContext,
): ProviderAnswer | ProviderRejection {
  const { status, headers, content, isUtf8 } = received;
  let body: Json;
  try {
    body = parseForeignJson(content);
  } catch (error) {
    return rejectUnreadable(received, error, context);
  }

  const usage = isJsonObject(body) ? readBilledUsage(body) : null;
  const costMicroUsd = readCostMicroUsd(isJsonObject(body) ? body['usage'] : null, headers);
  const hints = readRateLimitHints(headers, context.nowMs);
  const reject = (failure: ProviderRejection['failure']): ProviderRejection => ({
    ok: false,
    failure,
    usage,
    costMicroUsd,
    hints,
  });
  const badOutput = (message: string): ProviderRejection =>
    reject(buildFailure('bad_output', message, context, received));

  const error = errorIn(body);
  if (error !== undefined) return reject(classifyErrorUnderOk({ status, headers, error }, context));
  if (!isJsonObject(body)) return badOutput('The answer is JSON, but no object');
  const choices = Array.isArray(body['choices']) ? body['choices'] : [];
  const [choice] = choices;
  if (!isJsonObject(choice)) return badOutput('The answer has no choices');

  const finishReason = typeof choice['finish_reason'] === 'string' ? choice['finish_reason'] : 'unknown';
  const reason = finishReason.toLowerCase();
  const message = readMessage(content, choices, choice);
  const rejectPart = (kind: FailureKind, words: string): ProviderRejection => {
    const told = isUtf8 ? words : `${words}; some of its bytes are not UTF-8`;
    return reject({
      ...buildFailure(kind, told, context, received),
      ...(message.partialJson !== null && { partialOutputJson: message.partialJson }),
    });
  };

  if (isJsonObject(choice['error'])) {
    return reject(classifyErrorUnderOk({ status, headers, error: errorObjectOf(choice) }, context));
  }
  if (TRUNCATED.has(reason)) return rejectPart('truncated', describeCut(message, usage));
  if (FILTERED.has(reason) || reason.startsWith('content_filter')) {
    return rejectPart('content_filtered', "The server's content filter stopped the answer");
  }
  if (message.refusal !== '') return rejectPart('refused', `The model refused: ${message.refusal}`);
  if (GAVE_UP.has(reason)) {
    return rejectPart('overloaded', `The server gave up while answering (${finishReason})`);
  }
  // An answer in which characters were replaced would pass for the model's own words.
  if (!isUtf8) return rejectPart('bad_output', 'The answer cannot be read whole');

  const output = message.text || (message.callsJson ?? '');
  if (output === '' && !message.hasMedia) {
    const found = message.reasoning === '' ? '' : ': only reasoning came, no text';
    return rejectPart('bad_output', `The answer is empty${found}`);
  }
  const requestId = readRequestId(headers);
  return {
    ok: true,
    output,
    ...(message.detailsJson !== null && { detailsJson: message.detailsJson }),
    responseJson: content.trim(),
    model: typeof body['model'] === 'string' ? cleanText(body['model'], context) : '',
    finishReason: cleanText(finishReason, context),
    usage,
    costMicroUsd,
    httpStatus: status,
    requestId: requestId === null ? null : cleanText(requestId, context),
    hints,
  };
}

/** What the length limit has cut off. Reasoning counts against it, and not every server shows what it was. */
function describeCut({ text, callsJson, reasoning }: ChatMessage, usage: BilledUsage | null): string {
  if (callsJson !== null) return 'The tool call was cut off at the length limit';
  if (text !== '') return 'The answer was cut off at its length limit';
  return reasoning !== '' || (usage?.reasoningTokens ?? 0) > 0
    ? 'There was only reasoning, no text, before the length limit'
    : 'No text came before the length limit';
}

/** `error: null` beside a good answer is common. */
function errorIn(body: Json): JsonObject | undefined {
  const holder = Array.isArray(body) ? body[0] : body;
  if (!isJsonObject(holder)) return undefined;
  const { error } = holder;
  const present = isJsonObject(error) || (typeof error === 'string' && error !== '');
  // The flat shape of older vLLM.
  return present || holder['object'] === 'error' ? errorObjectOf(holder) : undefined;
}

/** Not JSON: a gateway's page or a body cut short can be tried again; a stream cannot, it was asked for. */
function rejectUnreadable(received: ReceivedAnswer, error: unknown, context: CallContext): ProviderRejection {
  const { headers, content } = received;
  const type = headers.get('content-type') ?? '';
  const [kind, message] = type.startsWith('text/event-stream')
    ? (['invalid_request', 'The server streamed its answer: leave "stream" out of the request'] as const)
    : error instanceof UnusualShape
      ? (['bad_output', `The answer cannot be used: ${error.message}`] as const)
      : (['network', describeUnreadable(content)] as const);
  return {
    ok: false,
    failure: buildFailure(kind, message, context, received),
    usage: null,
    costMicroUsd: null,
    hints: readRateLimitHints(headers, context.nowMs),
  };
}

function describeUnreadable(content: string): string {
  if (content.trim() === '') return 'The answer has no body';
  if (looksLikeHtml(content)) return `The answer is ${readText(content)}`;
  if (/^\s*[[{]/.test(content)) return 'The answer is JSON that breaks off';
  return `The answer is not JSON: ${content.slice(0, 200)}`;
}
