/** What a response with status 2xx really says: the envelope here, each document's part of it at its endpoint. */
import type { ProviderFailure } from '../../core/failure.js';
import { isJsonObject, type Json, type JsonObject, parseForeignJson, UnusualShape } from '../../core/json.js';
import { NO_TOKENS, type TokenUsage } from '../../core/usage.js';
import type { FailedReading, PartReading } from '../../endpoints/endpoint.js';
import { ENDPOINTS } from '../../endpoints/endpoints.js';
import { envelopeOf, itemsOf, readItems } from '../../endpoints/multi-request.js';
import type { AnswerPart, ProviderAnswer, ProviderRejection, ProviderRequest } from '../provider.js';
import { buildFailure, classifyErrorUnderOk, cleanText, type FailureContext, rejection } from './classify.js';
import { errorObjectOf, looksLikeHtml, readText } from './error-body.js';
import { readRateLimitHints, readRequestId } from './headers.js';
import type { ReceivedResponse } from './response.js';
import { readBilledUsage, readCostMicroUsd, readUsage } from './usage.js';

/** Reads the answer to a request. Never throws, whatever came. */
export function readAnswer(
  request: ProviderRequest,
  received: ReceivedResponse,
  context: FailureContext,
): ProviderAnswer | ProviderRejection {
  const { status, headers, content, isUtf8 } = received;
  let body: Json;
  try {
    body = parseForeignJson(content);
  } catch (error) {
    return rejectUnreadable(received, error, context);
  }

  const endpoint = ENDPOINTS[request.endpoint];
  const items = request.groupPath !== undefined && isJsonObject(body) ? itemsOf(body, request.parts) : null;
  if (items !== null) body = envelopeOf(body as JsonObject, items);
  const told = isJsonObject(body) ? readBilledUsage(body) : null;
  const usage = told ?? (endpoint.tellsUsage ? null : NO_TOKENS);
  const costMicroUsd = readCostMicroUsd(isJsonObject(body) ? body['usage'] : null, headers);
  const hints = readRateLimitHints(headers, context.nowMs);
  const reject = (failure: ProviderFailure): ProviderRejection =>
    rejection(failure, { usage, costMicroUsd, hints });

  const error = errorIn(body);
  if (error !== undefined) return reject(classifyErrorUnderOk({ status, headers, error }, context));
  if (!isJsonObject(body)) {
    return reject(buildFailure('bad_output', 'The answer is JSON, but no object', context, received));
  }
  if (request.groupPath !== undefined && items === null) {
    return reject(buildFailure('bad_output', 'The answer has no results', context, received));
  }
  const answer = { body, content, isUtf8, usage };
  const read =
    items === null ? endpoint.readAnswer(answer, request) : readItems(endpoint, items, answer, request);
  const usages = items === null ? [] : items.flatMap((item) => usageOfItem(item));
  if ('ok' in read) return reject(failureOf(read, received, context));
  const [only] = read;
  if (read.length === 1 && only?.ok === false) return reject(failureOf(only, received, context));
  const requestId = readRequestId(headers);
  return {
    ok: true,
    parts: read.map((part) => answerPart(part, received, context)),
    model: typeof body['model'] === 'string' ? cleanText(body['model'], context) : '',
    usage,
    ...(usages.length === read.length && { usages }),
    costMicroUsd,
    httpStatus: status,
    requestId: requestId === null ? null : cleanText(requestId, context),
    hints,
  };
}

function usageOfItem(item: JsonObject | string): TokenUsage[] {
  const usage = typeof item === 'string' ? null : readUsage(item['usage']);
  return usage === null ? [] : [usage];
}

function answerPart(part: PartReading, received: ReceivedResponse, context: FailureContext): AnswerPart {
  return part.ok
    ? { ...part, finishReason: cleanText(part.finishReason, context) }
    : { ok: false, failure: failureOf(part, received, context) };
}

function failureOf(
  read: FailedReading,
  received: ReceivedResponse,
  context: FailureContext,
): ProviderFailure {
  const { status, headers, isUtf8 } = received;
  if ('errorIn' in read) {
    return classifyErrorUnderOk({ status, headers, error: errorObjectOf(read.errorIn) }, context);
  }
  const told = isUtf8 ? read.message : `${read.message}; some of its bytes are not UTF-8`;
  return {
    ...buildFailure(read.kind, told, context, received),
    ...(read.partialOutputJson !== undefined && { partialOutputJson: read.partialOutputJson }),
  };
}

/** `error: null` beside a good answer is common. */
export function errorIn(body: Json): JsonObject | undefined {
  const holder = Array.isArray(body) ? body[0] : body;
  if (!isJsonObject(holder)) return undefined;
  const { error } = holder;
  const present = isJsonObject(error) || (typeof error === 'string' && error !== '');
  // The flat shape of older vLLM.
  return present || holder['object'] === 'error' ? errorObjectOf(holder) : undefined;
}

/** As Python writes them; in a text they would stand within quotes, and before no comma or bracket. */
const NO_NUMBER = /[:,[]\s?-?(?:NaN|Infinity)\s?[,\]}]/;

/** Not JSON: a gateway's page or a body cut short can be tried again; a stream cannot, it was asked for. */
export function rejectUnreadable(
  received: ReceivedResponse,
  error: unknown,
  context: FailureContext,
): ProviderRejection {
  const { headers, content } = received;
  const type = headers.get('content-type') ?? '';
  const [kind, message] = type.startsWith('text/event-stream')
    ? (['invalid_request', 'The server streamed its answer: leave "stream" out of the request'] as const)
    : error instanceof UnusualShape
      ? (['bad_output', `The answer cannot be used: ${error.message}`] as const)
      : NO_NUMBER.test(content)
        ? (['bad_output', 'The answer holds NaN or Infinity, which are no JSON'] as const)
        : (['network', describeUnreadable(content)] as const);
  const failure = buildFailure(kind, message, context, received);
  return rejection(failure, { hints: readRateLimitHints(headers, context.nowMs) });
}

function describeUnreadable(content: string): string {
  if (content.trim() === '') return 'The answer has no body';
  if (looksLikeHtml(content)) return `The answer is ${readText(content)}`;
  if (/^\s*[[{]/.test(content)) return 'The answer is JSON that breaks off';
  return `The answer is not JSON: ${content.slice(0, 200)}`;
}
