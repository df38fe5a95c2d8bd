/**
 * What response headers tell of limits and waits, read from every dialect that OpenAI-compatible servers
 * speak. Nothing here is required of a server: what is missing, malformed or implausible is left out.
 */
import type { QuotaHint, RateLimitHints } from '../../core/limits.js';
import { parseWaitMs } from './wait-time.js';

/** The part of `Headers` that is read here; names in lower case. */
export interface HeaderReader {
  get(name: string): string | null;
}

/** The answer for servers that say nothing; one object, as this is read after every call. */
export const NO_HINTS: RateLimitHints = Object.freeze({});

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/**
 * Reads the rate-limit headers of one response.
 *
 * - OpenAI, Azure, vLLM gateways, LiteLLM, Anthropic's and Groq's compatible endpoints:
 *   `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`; on Groq the requests are those of a day.
 * - Mistral: `x-ratelimit-{limit,remaining}-{req,tokens}-minute`, earlier `x-ratelimitbysize-*`.
 * - Cerebras: `…-requests-day`, `…-tokens-minute`.
 * - Together: `x-ratelimit-*` with `x-tokenlimit-*`, both of a second.
 * - OpenRouter: `x-ratelimit-*` alone, the reset as Unix milliseconds.
 * - Anthropic's own `anthropic-ratelimit-*`, and `llm_provider-*`, LiteLLM's copy of what stood upstream.
 *
 * @param nowMs wall time, for resets that are given as a moment
 */
export function readRateLimitHints(headers: HeaderReader, nowMs: number): RateLimitHints {
  return (
    readOpenAiNames(headers, nowMs) ??
    readPerMinuteNames(headers, nowMs) ??
    readPlainNames(headers, nowMs) ??
    readAnthropicNames(headers, nowMs) ??
    readUpstreamNames(headers, nowMs) ??
    NO_HINTS
  );
}

function readOpenAiNames(headers: HeaderReader, nowMs: number): RateLimitHints | undefined {
  const requests = quota(
    headers.get('x-ratelimit-limit-requests'),
    headers.get('x-ratelimit-remaining-requests'),
    headers.get('x-ratelimit-reset-requests'),
    nowMs,
  );
  let tokens = quota(
    headers.get('x-ratelimit-limit-tokens'),
    headers.get('x-ratelimit-remaining-tokens'),
    headers.get('x-ratelimit-reset-tokens'),
    nowMs,
  );
  if (requests === undefined && tokens === undefined) return undefined;
  tokens = tighter(
    tokens,
    quota(
      headers.get('x-ratelimit-limit-project-tokens'),
      headers.get('x-ratelimit-remaining-project-tokens'),
      headers.get('x-ratelimit-reset-project-tokens'),
      nowMs,
    ),
  );
  const perDay = headers.get('x-groq-region') !== null;
  return hints(requests && withWindow(requests, perDay ? DAY_MS : undefined), tokens && withWindow(tokens));
}

function readPerMinuteNames(headers: HeaderReader, nowMs: number): RateLimitHints | undefined {
  const requests =
    quota(
      headers.get('x-ratelimit-limit-req-minute'),
      headers.get('x-ratelimit-remaining-req-minute'),
      null,
      nowMs,
    ) ??
    quota(
      headers.get('x-ratelimit-limit-requests-minute'),
      headers.get('x-ratelimit-remaining-requests-minute'),
      headers.get('x-ratelimit-reset-requests-minute'),
      nowMs,
    );
  const tokens =
    quota(
      headers.get('x-ratelimit-limit-tokens-minute'),
      headers.get('x-ratelimit-remaining-tokens-minute'),
      headers.get('x-ratelimit-reset-tokens-minute'),
      nowMs,
    ) ??
    quota(
      headers.get('x-ratelimitbysize-limit-minute'),
      headers.get('x-ratelimitbysize-remaining-minute'),
      headers.get('ratelimitbysize-reset'),
      nowMs,
    );
  const perDay = quota(
    headers.get('x-ratelimit-limit-requests-day'),
    headers.get('x-ratelimit-remaining-requests-day'),
    headers.get('x-ratelimit-reset-requests-day'),
    nowMs,
  );
  if (requests === undefined && tokens === undefined && perDay === undefined) return undefined;
  return {
    ...(requests && { requests: { ...requests, windowMs: MINUTE_MS } }),
    ...(tokens && { tokens: { ...tokens, windowMs: MINUTE_MS } }),
    ...(perDay && { requestsPerDay: { ...perDay, windowMs: DAY_MS } }),
  };
}

function readPlainNames(headers: HeaderReader, nowMs: number): RateLimitHints | undefined {
  const reset = headers.get('x-ratelimit-reset');
  const requests = quota(
    headers.get('x-ratelimit-limit'),
    headers.get('x-ratelimit-remaining'),
    reset,
    nowMs,
  );
  const tokens = quota(
    headers.get('x-tokenlimit-limit'),
    headers.get('x-tokenlimit-remaining'),
    headers.get('x-tokenlimit-reset'),
    nowMs,
  );
  if (requests === undefined && tokens === undefined) return undefined;
  if (tokens !== undefined) {
    return {
      ...(requests && { requests: { ...requests, windowMs: SECOND_MS } }),
      tokens: { ...tokens, windowMs: SECOND_MS },
    };
  }
  return hints(requests && withWindow(requests), undefined);
}

function readAnthropicNames(headers: HeaderReader, nowMs: number): RateLimitHints | undefined {
  const requests = quota(
    headers.get('anthropic-ratelimit-requests-limit'),
    headers.get('anthropic-ratelimit-requests-remaining'),
    headers.get('anthropic-ratelimit-requests-reset'),
    nowMs,
  );
  const tokens = quota(
    headers.get('anthropic-ratelimit-tokens-limit'),
    headers.get('anthropic-ratelimit-tokens-remaining'),
    headers.get('anthropic-ratelimit-tokens-reset'),
    nowMs,
  );
  if (requests === undefined && tokens === undefined) return undefined;
  return {
    ...(requests && { requests: { ...requests, windowMs: MINUTE_MS } }),
    ...(tokens && { tokens: { ...tokens, windowMs: MINUTE_MS } }),
  };
}

function readUpstreamNames(headers: HeaderReader, nowMs: number): RateLimitHints | undefined {
  return readOpenAiNames({ get: (name) => headers.get(`llm_provider-${name}`) }, nowMs);
}

function hints(requests: QuotaHint | undefined, tokens: QuotaHint | undefined): RateLimitHints {
  if (requests?.windowMs === DAY_MS) return { requestsPerDay: requests, ...(tokens && { tokens }) };
  return { ...(requests && { requests }), ...(tokens && { tokens }) };
}

function quota(
  limitText: string | null,
  remainingText: string | null,
  resetText: string | null,
  nowMs: number,
): QuotaHint | undefined {
  if (limitText === null && remainingText === null) return undefined;
  // A limit of zero is a plan without allowance; as a rate it would have everything wait for ever.
  const limit = readCount(limitText) || undefined;
  const remaining = readCount(remainingText);
  if (limit === undefined && remaining === undefined) return undefined;
  const resetMs = parseWaitMs(resetText, nowMs);
  return {
    ...(limit !== undefined && { limit }),
    ...(remaining !== undefined && { remaining }),
    ...(resetMs !== undefined && { resetMs }),
  };
}

const COUNT = /^\d{1,15}(?:\.\d+)?$/;

/** Some servers send -1 for "not counted": no knowledge, so left out like garbage. */
function readCount(text: string | null): number | undefined {
  if (text === null) return undefined;
  const trimmed = text.trim();
  return COUNT.test(trimmed) ? Number(trimmed) : undefined;
}

/**
 * Names the window where the dialect or the figures tell it. A bucket that refills evenly says how long its
 * window is: what is used, times window over limit, is the time until it is full. Only resets of more than a
 * minute are judged so; a shorter one may belong to a minute that restarts at fixed moments.
 */
function withWindow(hint: QuotaHint, knownMs?: number): QuotaHint {
  const windowMs = knownMs ?? inferWindowMs(hint);
  return windowMs === undefined ? hint : { ...hint, windowMs };
}

function inferWindowMs({ limit, remaining, resetMs }: QuotaHint): number | undefined {
  if (resetMs === undefined || resetMs <= MINUTE_MS + SECOND_MS) return undefined;
  if (resetMs > HOUR_MS + SECOND_MS) return DAY_MS;
  if (limit === undefined || remaining === undefined || remaining >= limit) return undefined;
  const impliedMs = (resetMs * limit) / (limit - remaining);
  if (impliedMs >= DAY_MS / 2) return DAY_MS;
  return impliedMs >= 10 * MINUTE_MS ? HOUR_MS : undefined;
}

function tighter(one: QuotaHint | undefined, other: QuotaHint | undefined): QuotaHint | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return (other.limit ?? Infinity) < (one.limit ?? Infinity) ? other : one;
}

/** Where servers put the id by which their support finds a call. */
const REQUEST_ID_HEADERS = ['x-request-id', 'request-id', 'apim-request-id', 'x-litellm-call-id', 'cf-ray'];

/** The server's id for this call, or null. */
export function readRequestId(headers: HeaderReader): string | null {
  for (const name of REQUEST_ID_HEADERS) {
    const id = headers.get(name);
    if (id !== null && id !== '') return id;
  }
  return null;
}
