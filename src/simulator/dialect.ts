/**
 * How different providers tell their rate limits and their errors. The names and units follow what the
 * providers document or were seen to send; the numbers are the simulator's own.
 */
import type { AccountStanding, Standing } from './account.js';
import { goDuration } from './go-duration.js';
import type { Refusal } from './refusal.js';

export const HEADER_DIALECTS = [
  /** `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, resets as Go durations. */
  'openai',
  /** Says nothing, as vLLM, Ollama and llama.cpp do. */
  'none',
  /** OpenAI's names, but `-requests` tells the day (so it needs `rpd`) and `-tokens` the minute. */
  'groq',
  /** What remains, without limits or resets; `retry-after-ms` beside `retry-after`. */
  'azure',
  /** `-req-minute` and `-tokens-minute`, no resets; errors without an `error` wrapper. */
  'mistral',
  /** Limits of one second, reset in seconds. */
  'together',
  /** `X-RateLimit-*` on 429 only, reset as epoch milliseconds; `error.code` is the status as a number. */
  'openrouter',
  /** OpenAI's names and Anthropic's own, resets as RFC 3339 dates; `request-id`. */
  'anthropic',
  /** A LiteLLM proxy: OpenAI's names without resets, and the upstream's behind `llm_provider-`. */
  'litellm',
  /** No headers; errors are a list of one, with a RetryInfo detail. */
  'gemini',
] as const;

export type HeaderDialect = (typeof HEADER_DIALECTS)[number];

export type Headers = Record<string, string>;

export interface HeaderFacts {
  readonly standing: AccountStanding;
  /** Wall time, for dialects whose resets are dates. */
  readonly wallMs: number;
  readonly status: number | null;
  readonly requestId: string;
  readonly tokensCharged: number;
  readonly costUsd: number | null;
}

/** The headers with which a reply tells what the caller has left. */
export function rateLimitHeaders(dialect: HeaderDialect, facts: HeaderFacts): Headers {
  const { requests, tokens, requestsPerDay } = facts.standing;
  switch (dialect) {
    case 'openai':
      return {
        ...openaiNames('requests', requests, goDuration),
        ...openaiNames('tokens', tokens, goDuration),
      };
    case 'groq':
      return {
        ...openaiNames('requests', requestsPerDay, goDuration),
        ...openaiNames('tokens', tokens, goDuration),
      };
    case 'azure':
      return {
        ...(requests && { 'x-ratelimit-remaining-requests': String(requests.remaining) }),
        ...(tokens && { 'x-ratelimit-remaining-tokens': String(tokens.remaining) }),
      };
    case 'mistral':
      return {
        ...(requests && {
          'x-ratelimit-limit-req-minute': String(requests.limit),
          'x-ratelimit-remaining-req-minute': String(requests.remaining),
        }),
        ...(tokens && {
          'x-ratelimit-limit-tokens-minute': String(tokens.limit),
          'x-ratelimit-remaining-tokens-minute': String(tokens.remaining),
          'x-ratelimit-tokens-query-cost': String(facts.tokensCharged),
        }),
      };
    case 'together':
      return togetherHeaders(facts.standing);
    case 'openrouter':
      return facts.status === 429 && requests
        ? {
            'x-ratelimit-limit': String(requests.limit),
            'x-ratelimit-remaining': String(requests.remaining),
            'x-ratelimit-reset': String(Math.ceil(facts.wallMs + requests.resetMs)),
          }
        : {};
    case 'anthropic':
      return anthropicHeaders(facts);
    case 'litellm':
      return litellmHeaders(facts);
    case 'none':
    case 'gemini':
      return {};
  }
}

/** The name under which a reply carries its request id. */
export function requestIdHeader(dialect: HeaderDialect): string {
  return dialect === 'anthropic' ? 'request-id' : 'x-request-id';
}

/** An error body. `rateLimit` are the headers of the same reply, which OpenRouter repeats inside. */
export function errorBody(dialect: HeaderDialect, refusal: Refusal, rateLimit: Headers): string {
  const { status, message, type, param, code } = refusal;
  switch (dialect) {
    case 'gemini':
      return JSON.stringify([
        { error: { code: status, message, status: googleStatus(status), ...retryInfo(refusal) } },
      ]);
    case 'mistral':
      return status === 429
        ? JSON.stringify({ message: 'Rate limit exceeded', code: '1300' })
        : JSON.stringify({ object: 'error', message, type, param, code });
    case 'openrouter':
      return JSON.stringify({ error: { code: status, message, metadata: { headers: rateLimit } } });
    default:
      return JSON.stringify({ error: { message, type, param, code } });
  }
}

function openaiNames(unit: string, standing: Standing | null, reset: (resetMs: number) => string): Headers {
  if (standing === null) return {};
  return {
    [`x-ratelimit-limit-${unit}`]: String(standing.limit),
    [`x-ratelimit-remaining-${unit}`]: String(standing.remaining),
    [`x-ratelimit-reset-${unit}`]: reset(standing.resetMs),
  };
}

function togetherHeaders({ enforcedRequests, enforcedTokens }: AccountStanding): Headers {
  const resetMs = Math.max(enforcedRequests?.resetMs ?? 0, enforcedTokens?.resetMs ?? 0);
  return {
    ...(enforcedRequests && {
      'x-ratelimit-limit': String(enforcedRequests.limit),
      'x-ratelimit-remaining': String(enforcedRequests.remaining),
    }),
    ...(enforcedTokens && {
      'x-tokenlimit-limit': String(enforcedTokens.limit),
      'x-tokenlimit-remaining': String(enforcedTokens.remaining),
    }),
    ...((enforcedRequests || enforcedTokens) && { 'x-ratelimit-reset': String(Math.ceil(resetMs / 1_000)) }),
  };
}

function anthropicHeaders({ standing, wallMs }: HeaderFacts): Headers {
  const date = (resetMs: number): string => new Date(Math.ceil(wallMs + resetMs)).toISOString();
  const headers: Headers = {};
  for (const unit of ['requests', 'tokens'] as const) {
    const one = standing[unit];
    if (one === null) continue;
    Object.assign(headers, openaiNames(unit, one, date));
    headers[`anthropic-ratelimit-${unit}-limit`] = String(one.limit);
    headers[`anthropic-ratelimit-${unit}-remaining`] = String(one.remaining);
    headers[`anthropic-ratelimit-${unit}-reset`] = date(one.resetMs);
  }
  return headers;
}

function litellmHeaders({ standing, requestId, costUsd }: HeaderFacts): Headers {
  const headers: Headers = { 'x-litellm-call-id': requestId, 'x-litellm-attempted-retries': '0' };
  if (costUsd !== null) headers['x-litellm-response-cost'] = String(costUsd);
  for (const unit of ['requests', 'tokens'] as const) {
    const one = standing[unit];
    if (one === null) continue;
    for (const prefix of ['', 'llm_provider-']) {
      headers[`${prefix}x-ratelimit-limit-${unit}`] = String(one.limit);
      headers[`${prefix}x-ratelimit-remaining-${unit}`] = String(one.remaining);
    }
  }
  return headers;
}

/** Names of google.rpc.Code for HTTP statuses. */
function googleStatus(status: number): string {
  if (status === 429) return 'RESOURCE_EXHAUSTED';
  if (status === 401) return 'UNAUTHENTICATED';
  if (status === 403) return 'PERMISSION_DENIED';
  if (status === 404) return 'NOT_FOUND';
  if (status === 503) return 'UNAVAILABLE';
  return status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT';
}

function retryInfo(refusal: Refusal): { details?: unknown } {
  if (refusal.told === null) return {};
  const retryDelay = `${Math.ceil(refusal.told.waitMs / 1_000)}s`;
  return { details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay }] };
}
