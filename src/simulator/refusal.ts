/**
 * Refusals in OpenAI's vocabulary: status, type, code and param as OpenAI documents them or was seen to send
 * them. The dialect decides how they look on the wire.
 */
import type { JsonObject } from '../core/json.js';
import type { LimitHit, LimitName } from './account.js';
import { goDuration } from './go-duration.js';

/** How a 429 tells its wait: header and message, message alone, nothing, or always this many seconds. */
export type RetryAfter = 'exact' | 'message' | 'none' | number;

/** A wait that the caller is told. */
export interface ToldWait {
  readonly waitMs: number;
  /** In `retry-after` (whole seconds, rounded up), else in the message only. */
  readonly inHeader: boolean;
}

export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly type: string | null;
  readonly param: string | null;
  readonly code: string | null;
  readonly told: ToldWait | null;
}

/**
 * What the caller hears of a wait.
 * @param waitMs how long it really is; null where that is not known
 */
export function tellWait(retryAfter: RetryAfter, waitMs: number | null): ToldWait | null {
  if (typeof retryAfter === 'number') return { waitMs: retryAfter * 1_000, inHeader: true };
  if (retryAfter === 'none' || waitMs === null || !Number.isFinite(waitMs)) return null;
  return { waitMs, inHeader: retryAfter === 'exact' };
}

const LIMIT_WORDS: Readonly<Record<LimitName, string>> = {
  requests: 'requests per min (RPM)',
  tokens: 'tokens per min (TPM)',
  requests_per_day: 'requests per day (RPD)',
};

export function throttled(model: string, hit: Omit<LimitHit, 'waitMs'>, told: ToldWait | null): Refusal {
  const facts = `Limit ${hit.limit}, Used ${hit.used}, Requested ${hit.requested}.`;
  const advice = told === null ? '' : ` Please try again in ${goDuration(told.waitMs)}.`;
  const message = `Rate limit reached for ${model} in organization org-simulated on ${LIMIT_WORDS[hit.limitedBy]}: ${facts}${advice}`;
  const type = hit.limitedBy === 'tokens' ? 'tokens' : 'requests';
  return { ...refusal(429, message, type, 'rate_limit_exceeded'), told };
}

/** Also a 429 `rate_limit_exceeded`, but one that no waiting mends. */
export function requestTooLarge(model: string, limit: number, requested: number): Refusal {
  const facts = `Limit ${limit}, Requested ${requested}.`;
  const message = `Request too large for ${model} in organization org-simulated on ${LIMIT_WORDS.tokens}: ${facts} Shorten the input or the output cap.`;
  return refusal(429, message, 'tokens', 'rate_limit_exceeded');
}

export function slowDown(told: ToldWait | null): Refusal {
  const message = 'Traffic is growing too fast. Slow down, hold a steady rate, then grow gradually.';
  return { ...refusal(429, message, 'rate_limit_error', 'slow_down'), told };
}

export function insufficientQuota(): Refusal {
  const message = 'This account has no credit left. Check its plan and billing details.';
  return refusal(429, message, 'insufficient_quota', 'insufficient_quota');
}

/** Echoes the key's ends, as OpenAI does, or all of it, as some servers do. */
export function wrongKey(key: string | null, echo: 'ends' | 'whole' = 'ends'): Refusal {
  if (key === null) {
    const message = 'No API key was sent. Send it as "Authorization: Bearer KEY".';
    return refusal(401, message, 'invalid_request_error', null);
  }
  const shown = echo === 'whole' ? key : `${key.slice(0, 8)}${'*'.repeat(12)}${key.slice(-4)}`;
  return refusal(401, `Incorrect API key provided: ${shown}.`, 'invalid_request_error', 'invalid_api_key');
}

export function modelNotFound(model: string): Refusal {
  const message = `The model \`${model}\` does not exist or you do not have access to it.`;
  return refusal(404, message, 'invalid_request_error', 'model_not_found');
}

export function urlNotFound(method: string, path: string): Refusal {
  return refusal(404, `Invalid URL (${method} ${path})`, 'invalid_request_error', null);
}

/** 400 for a request that is wrong in itself. */
export function invalidRequest(message: string, param: string | null, code: string | null): Refusal {
  return refusal(400, message, 'invalid_request_error', code, param);
}

export function notAnObject(): Refusal {
  return invalidRequest('The body of the request is not a JSON object.', null, null);
}

export function missingParameter(param: string): Refusal {
  return invalidRequest(`Missing required parameter: '${param}'.`, param, 'missing_required_parameter');
}

/** For a list of inputs. */
export function tooManyInputs(most: number, found: number): Refusal {
  const message = `Invalid 'input': array too long. Expected at most ${most}, but got ${found} instead.`;
  return invalidRequest(message, 'input', 'array_above_max_length');
}

/** Better refused than answered in a way the caller did not ask for. */
export function unsupported(param: string, value: string): Refusal {
  const message = `Unsupported value: '${param}' does not support ${value} with the simulator.`;
  return invalidRequest(message, param, 'unsupported_value');
}

/** Of every call. @returns null when nothing is wrong */
export function faultOfModel({ model }: JsonObject): Refusal | null {
  if (typeof model === 'string' && model !== '') return null;
  return invalidRequest('You must provide a model parameter.', null, null);
}

/** Of calls whose answer is text: it comes whole, and there is one. @returns null when nothing is wrong */
export function faultOfChoices({ stream, n = 1 }: JsonObject): Refusal | null {
  if (stream === true) return unsupported('stream', 'true');
  return n === null || n === 1 ? null : unsupported('n', JSON.stringify(n));
}

export function isRefusal(value: object): value is Refusal {
  return 'told' in value;
}

export function refusal(
  status: number,
  message: string,
  type: string | null,
  code: string | null,
  param: string | null = null,
): Refusal {
  return { status, message, type, param, code, told: null };
}
