/** What a line of an output or error file says: of an answer the same as if it had come directly. */
import { isJsonObject, type Json, type JsonObject, parseForeignJson } from '../../core/json.js';
import { memberText } from '../../core/json-text.js';
import type { ProviderReply, ProviderRequest } from '../provider.js';
import type { FileLine, RemoteLine } from '../remote-batches.js';
import { readAnswer } from './answer.js';
import {
  classifyErrorUnderOk,
  classifyRefusal,
  cleanText,
  type FailureContext,
  rejection,
} from './classify.js';
import { errorObjectOf, readErrorObject } from './error-body.js';
import type { HeaderReader } from './headers.js';
import { codesOf } from './refusal-kind.js';
import { isAnswered } from './response.js';
import { readBilledUsage } from './usage.js';

/** `batch_expired`, `batch_cancelled` and what other servers make of them. */
const UNRUN = /expired|cancell?ed/;
const OK = 200;

/** Pure; never throws, whatever the line is. */
export function readBatchLine(
  { text, isUtf8 }: FileLine,
  requestOf: (customId: string) => ProviderRequest | null,
  context: FailureContext,
): RemoteLine {
  const malformed = (why: string): RemoteLine => ({ malformed: cleanText(why, context) });
  let line: Json;
  try {
    line = parseForeignJson(text);
  } catch (error) {
    return malformed(`The line is no JSON (${(error as Error).message})`);
  }
  if (!isJsonObject(line)) return malformed('The line is JSON, but no object');
  const { custom_id: customId, response, error } = line;
  if (typeof customId !== 'string') return malformed('The line has no custom_id');
  const request = requestOf(customId);
  if (request === null) return malformed(`Nothing was sent under the custom_id ${customId}`);

  if (isJsonObject(response)) {
    const responseJson = memberText(text, 'response') ?? '{}';
    return { customId, reply: readResponse(response, { responseJson, isUtf8 }, request, context) };
  }
  if (error === undefined || error === null) return malformed('The line holds neither response nor error');
  const errorObject = errorObjectOf(error);
  const code = codesOf(errorObject).find((word) => UNRUN.test(word));
  if (code !== undefined) return { customId, unrun: cleanText(code, context) };
  const failure = classifyErrorUnderOk({ status: OK, headers: headersOf(null), error: errorObject }, context);
  return { customId, reply: rejection(failure) };
}

function readResponse(
  response: JsonObject,
  { responseJson, isUtf8 }: { readonly responseJson: string; readonly isUtf8: boolean },
  request: ProviderRequest,
  context: FailureContext,
): ProviderReply {
  // Without a body of its own it is the body.
  const isWrapped = Object.hasOwn(response, 'body');
  const body = isWrapped ? (response['body'] ?? null) : response;
  const bodyJson = isWrapped ? (memberText(responseJson, 'body') ?? '') : responseJson;
  // What is no JSON stands in the line as a text.
  const content = typeof body === 'string' ? body : body === null ? '' : bodyJson;
  const told = isWrapped ? Number(response['status_code']) : OK;
  const status = Number.isInteger(told) && told >= 100 && told <= 599 ? told : OK;
  const { request_id: requestId } = response;
  const headers = headersOf(typeof requestId === 'string' ? requestId : null);
  if (isAnswered(status)) {
    return readAnswer(request, { status, headers, content, isUtf8 }, context);
  }
  const failure = classifyRefusal({ status, headers, error: readErrorObject(content) }, context);
  return rejection(failure, { usage: isJsonObject(body) ? readBilledUsage(body) : null });
}

function headersOf(requestId: string | null): HeaderReader {
  return { get: (name) => (name === 'x-request-id' ? requestId : null) };
}
