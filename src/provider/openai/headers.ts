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
  const read = (names: QuotaNames): QuotaHint | undefined => quota(headers, names, nowMs);
  return (
    readOpenAiNames(OPENAI, headers, read) ??
    hintsOf(
      {
        requests: read(MISTRAL_REQUESTS) ?? read(REQUESTS_A_MINUTE),
        tokens: read(TOKENS_A_MINUTE) ?? read(TOKENS_BY_SIZE),
        requestsPerDay: read(REQUESTS_A_DAY),
      },
      MINUTE_MS,
    ) ??
    readPlainNames(read) ??
    hintsOf({ requests: read(ANTHROPIC_REQUESTS), tokens: read(ANTHROPIC_TOKENS) }, MINUTE_MS) ??
    readOpenAiNames(UPSTREAM, headers, read) ??
    NO_HINTS
  );
}

/** Names of headers, one for each of what is told of a quota. */
type QuotaNames = Readonly<Record<'limit' | 'remaining' | 'reset', string>>;

/** @param pattern with a star for what is told */
function namesOf(pattern: string): QuotaNames {
  const name = (word: string): string => pattern.replace('*', word);
  return { limit: name('limit'), remaining: name('remaining'), reset: name('reset') };
}

const MISTRAL_REQUESTS = namesOf('x-ratelimit-*-req-minute');
const REQUESTS_A_MINUTE = namesOf('x-ratelimit-*-requests-minute');
const REQUESTS_A_DAY = namesOf('x-ratelimit-*-requests-day');
const TOKENS_A_MINUTE = namesOf('x-ratelimit-*-tokens-minute');
const TOKENS_BY_SIZE = { ...namesOf('x-ratelimitbysize-*-minute'), reset: 'ratelimitbysize-reset' };
const PLAIN_REQUESTS = namesOf('x-ratelimit-*');
const PLAIN_TOKENS = namesOf('x-tokenlimit-*');
const ANTHROPIC_REQUESTS = namesOf('anthropic-ratelimit-requests-*');
const ANTHROPIC_TOKENS = namesOf('anthropic-ratelimit-tokens-*');
const OPENAI = openAiNames('');
const UPSTREAM = openAiNames('llm_provider-');

function openAiNames(prefix: string) {
  return {
    requests: namesOf(`${prefix}x-ratelimit-*-requests`),
    tokens: namesOf(`${prefix}x-ratelimit-*-tokens`),
    projectTokens: namesOf(`${prefix}x-ratelimit-*-project-tokens`),
    groqRegion: `${prefix}x-groq-region`,
  };
}

type ReadQuota = (names: QuotaNames) => QuotaHint | undefined;

function readOpenAiNames(
  names: typeof OPENAI,
  headers: HeaderReader,
  read: ReadQuota,
): RateLimitHints | undefined {
  const [requests, tokens] = [read(names.requests), read(names.tokens)];
  if (requests === undefined && tokens === undefined) return undefined;
  const tightest = tighter(tokens, read(names.projectTokens));
  const isOfDay = headers.get(names.groqRegion) !== null;
  return hintsOf({ [isOfDay ? 'requestsPerDay' : 'requests']: requests, tokens: tightest });
}

function readPlainNames(read: ReadQuota): RateLimitHints | undefined {
  const [requests, tokens] = [read(PLAIN_REQUESTS), read(PLAIN_TOKENS)];
  return hintsOf({ requests, tokens }, tokens && SECOND_MS);
}

/**
 * @param windowMs of requests and tokens; undefined: as their figures tell it
 * @returns undefined where nothing is told
 */
function hintsOf(
  told: Partial<Record<keyof RateLimitHints, QuotaHint | undefined>>,
  windowMs?: number,
): RateLimitHints | undefined {
  const requests = told.requests && withWindow(told.requests, windowMs);
  const tokens = told.tokens && withWindow(told.tokens, windowMs);
  const perDay = told.requestsPerDay && withWindow(told.requestsPerDay, DAY_MS);
  if (requests === undefined && tokens === undefined && perDay === undefined) return undefined;
  const isOfDay = requests?.windowMs === DAY_MS;
  return {
    ...(requests && { [isOfDay ? 'requestsPerDay' : 'requests']: requests }),
    ...(tokens && { tokens }),
    ...(perDay && { requestsPerDay: perDay }),
  };
}

function quota(headers: HeaderReader, names: QuotaNames, nowMs: number): QuotaHint | undefined {
  const [limitText, remainingText] = [headers.get(names.limit), headers.get(names.remaining)];
  if (limitText === null && remainingText === null) return undefined;
  // A limit of zero is a plan without allowance; as a rate it would have everything wait for ever.
  const limit = readCount(limitText) || undefined;
  const remaining = readCount(remainingText);
  if (limit === undefined && remaining === undefined) return undefined;
  const resetMs = parseWaitMs(headers.get(names.reset), nowMs);
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
