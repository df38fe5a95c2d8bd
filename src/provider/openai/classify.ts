/** From what a server answered instead of an answer to one `ProviderFailure`. */
import { STATUS_CODES } from 'node:http';
import type { FailureKind, ProviderFailure } from '../../core/failure.js';
import { shortLine } from '../../core/foreign-text.js';
import { isJsonObject, type JsonObject } from '../../core/json.js';
import type { Redactor } from '../../core/redact.js';
import type { ProviderRejection } from '../provider.js';
import { type HeaderReader, NO_HINTS, readRequestId } from './headers.js';
import {
  codesOf,
  kindOfRefusal,
  kindWithoutStatus,
  messageOf,
  READ_MESSAGE_LENGTH,
  type Refusal,
} from './refusal-kind.js';
import { readRetryAfterMs } from './retry-after.js';

/** What a failure's text needs to know of the call. */
export interface FailureContext {
  /** Where the call went, for messages. */
  readonly url: string;
  /** Default POST. */
  readonly method?: string;
  /** Wall time, for waits that are given as a moment. */
  readonly nowMs: number;
  readonly redact: Redactor;
}

/** Classifies a response with a status other than 2xx. */
export function classifyRefusal(refusal: Refusal, context: FailureContext): ProviderFailure {
  const kind = kindOfRefusal(refusal);
  return buildFailure(kind, describeRefusal(refusal, kind, context), context, refusal);
}

/**
 * Classifies an error object that came under HTTP 200 (OpenRouter once generation has begun, some gateways):
 * by its code as if that were the status, else by its words for a code, else it is a bad answer.
 */
export function classifyErrorUnderOk(refusal: Refusal, context: FailureContext): ProviderFailure {
  const { error } = refusal;
  const status = Number(error['code']);
  const meant = Number.isInteger(status) && status >= 400 && status <= 599 ? status : undefined;
  const kind =
    meant === undefined ? kindWithoutStatus(refusal) : kindOfRefusal({ ...refusal, status: meant });
  return buildFailure(kind, describeRefusal(refusal, kind, context), context, refusal);
}

const KEPT_MESSAGE_LENGTH = 500;

function describeRefusal(
  { status, headers, error }: Refusal,
  kind: FailureKind,
  { url, method = 'POST' }: FailureContext,
): string {
  if (status >= 300 && status < 400)
    return describeRedirect(status, headers.get('location'), { url, method });
  const fallback =
    status < 300
      ? `The server reported an error under HTTP ${status}`
      : `The server answered ${status} ${STATUS_CODES[status] ?? ''}`.trim();
  let message = messageOf(error) || fallback;
  const { metadata } = error;
  if (isJsonObject(metadata) && typeof metadata['raw'] === 'string') {
    // OpenRouter: its own words are "Provider returned error"; what went wrong is in there.
    message = `${message}: ${metadata['raw'].slice(0, READ_MESSAGE_LENGTH)}`;
  }
  // Without a code of the API it is likelier that the address is wrong than the model's name.
  return kind === 'not_found' && codesOf(error).length === 0
    ? `${message} (${method} ${url})${versionless(url)}`
    : message;
}

/** Most APIs are below a version, and their bare host is what gets copied. */
function versionless(url: string): string {
  const { origin, pathname } = new URL(url);
  const isBelow = /\/v\d/.test(pathname) || pathname.includes('/deployments/');
  return isBelow ? '' : `; did you mean ${origin}/v1 as the base URL?`;
}

function describeRedirect(
  status: number,
  location: string | null,
  { url, method }: Pick<FailureContext, 'url' | 'method'>,
): string {
  const target = location !== null && URL.canParse(location, url) ? new URL(location, url) : null;
  if (target === null)
    return `The server answered ${status}, a redirect without an address (${method} ${url})`;
  const shown = target.origin === new URL(url).origin ? target.origin + target.pathname : target.origin;
  return `The server redirects to ${shown} (status ${status}). Redirects are not followed, so that key and prompt go nowhere else: set the base URL to where the API is`;
}

/** A server's words as they may be kept and shown: one line, short, and free of secrets. */
export function cleanText(text: string, { redact }: Pick<FailureContext, 'redact'>): string {
  return shortLine(redact(text.slice(0, READ_MESSAGE_LENGTH)), KEPT_MESSAGE_LENGTH);
}

/** Puts a failure together; its texts are one line, short, and free of secrets. */
export function buildFailure(
  kind: FailureKind,
  message: string,
  context: FailureContext,
  refusal?: { status: number; headers: HeaderReader; error?: JsonObject },
): ProviderFailure {
  const clean = (text: string): string => cleanText(text, context);
  if (refusal === undefined) return { kind, message: clean(message) };
  const code = refusal.error && codeOf(refusal.error, refusal.status);
  const requestId = readRequestId(refusal.headers);
  const retryAfterMs = readRetryAfterMs(refusal.headers, refusal.error, context.nowMs);
  return {
    kind,
    message: clean(message),
    httpStatus: refusal.status,
    ...(code !== undefined && { code: clean(code) }),
    ...(requestId !== null && { requestId: clean(requestId) }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}

/** A call that came to nothing. @param told what the server says of it all the same */
export function rejection(
  failure: ProviderFailure,
  told: Partial<Omit<ProviderRejection, 'ok' | 'failure'>> = {},
): ProviderRejection {
  return { ok: false, failure, usage: null, costMicroUsd: null, hints: NO_HINTS, ...told };
}

/** The most telling of the words: a code that only repeats the status gives way to the type. */
function codeOf(error: JsonObject, status: number): string | undefined {
  for (const name of ['code', 'type', 'status']) {
    const word = error[name];
    if (typeof word !== 'string' && typeof word !== 'number') continue;
    const text = String(word);
    if (text !== '' && text !== String(status)) return text;
  }
  return undefined;
}
