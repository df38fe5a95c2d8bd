/**
 * How different providers tell their rate limits and their errors. The names and units follow what the
 * providers document or were seen to send; the numbers are the simulator's own.
 */
import type { RuleName, Standing } from './account.js';
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
  readonly standing: (name: RuleName) => Standing | null;
  /** Wall time, for dialects whose resets are dates. */
  readonly wallMs: number;
  readonly status: number | null;
  readonly requestId: string;
  readonly tokensCharged: number;
  readonly costUsd: number | null;
}

/** The headers with which a reply tells what the caller has left. */
export function rateLimitHeaders(dialect: HeaderDialect, facts: HeaderFacts): Headers {
  const { standing } = facts;
  switch (dialect) {
    case 'openai':
      return {
        ...told(standing('requests'), OF_REQUESTS, goDuration),
        ...told(standing('tokens'), OF_TOKENS, goDuration),
      };
    case 'groq':
      return {
        ...told(standing('requestsPerDay'), OF_REQUESTS, goDuration),
        ...told(standing('tokens'), OF_TOKENS, goDuration),
      };
    case 'azure':
      return {
        ...told(standing('requests'), { remaining: 'x-ratelimit-remaining-requests' }),
        ...told(standing('tokens'), { remaining: 'x-ratelimit-remaining-tokens' }),
      };
    case 'mistral':
      return {
        ...told(standing('requests'), namesOf('x-ratelimit-*-req-minute')),
        ...told(standing('tokens'), namesOf('x-ratelimit-*-tokens-minute')),
        ...(standing('tokens') && { 'x-ratelimit-tokens-query-cost': String(facts.tokensCharged) }),
      };
    case 'together':
      return togetherHeaders(facts);
    case 'openrouter': {
      const reset = (resetMs: number): string => String(Math.ceil(facts.wallMs + resetMs));
      return facts.status === 429 ? told(standing('requests'), namesOf('x-ratelimit-*'), reset) : {};
    }
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

type HeaderNames = Partial<Record<'limit' | 'remaining' | 'reset', string>>;

/** @param pattern with a star for what each of them says */
function namesOf(pattern: string): Required<HeaderNames> {
  const name = (word: string): string => pattern.replace('*', word);
  return { limit: name('limit'), remaining: name('remaining'), reset: name('reset') };
}

const OF_REQUESTS = namesOf('x-ratelimit-*-requests');
const OF_TOKENS = namesOf('x-ratelimit-*-tokens');

/** @param resetWords absent: the reset is not told */
function told(
  standing: Standing | null,
  { limit, remaining, reset }: HeaderNames,
  resetWords?: (resetMs: number) => string,
): Headers {
  if (standing === null) return {};
  return {
    ...(limit !== undefined && { [limit]: String(standing.limit) }),
    ...(remaining !== undefined && { [remaining]: String(standing.remaining) }),
    ...(resetWords && reset !== undefined && { [reset]: resetWords(standing.resetMs) }),
  };
}

function togetherHeaders({ standing }: HeaderFacts): Headers {
  const [requests, tokens] = [standing('enforcedRequests'), standing('enforcedTokens')];
  const resetMs = Math.max(requests?.resetMs ?? 0, tokens?.resetMs ?? 0);
  return {
    ...told(requests, namesOf('x-ratelimit-*')),
    ...told(tokens, namesOf('x-tokenlimit-*')),
    ...((requests || tokens) && { 'x-ratelimit-reset': String(Math.ceil(resetMs / 1_000)) }),
  };
}

function anthropicHeaders({ standing, wallMs }: HeaderFacts): Headers {
  const [requests, tokens] = [standing('requests'), standing('tokens')];
  const date = (resetMs: number): string => new Date(Math.ceil(wallMs + resetMs)).toISOString();
  return {
    ...told(requests, OF_REQUESTS, date),
    ...told(requests, namesOf('anthropic-ratelimit-requests-*'), date),
    ...told(tokens, OF_TOKENS, date),
    ...told(tokens, namesOf('anthropic-ratelimit-tokens-*'), date),
  };
}

function litellmHeaders({ standing, requestId, costUsd }: HeaderFacts): Headers {
  const [requests, tokens] = [standing('requests'), standing('tokens')];
  return {
    'x-litellm-call-id': requestId,
    'x-litellm-attempted-retries': '0',
    ...(costUsd !== null && { 'x-litellm-response-cost': String(costUsd) }),
    ...told(requests, OF_REQUESTS),
    ...told(requests, namesOf('llm_provider-x-ratelimit-*-requests')),
    ...told(tokens, OF_TOKENS),
    ...told(tokens, namesOf('llm_provider-x-ratelimit-*-tokens')),
  };
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
