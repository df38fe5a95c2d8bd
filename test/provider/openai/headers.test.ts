import { describe, expect, it } from 'vitest';
import { NO_HINTS, readRateLimitHints } from '../../../src/provider/openai/headers.js';

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
const DAY_MS = 86_400_000;

function headersOf(record: Record<string, string>): Headers {
  return new Headers(record);
}

const hintsOf = (record: Record<string, string>) => readRateLimitHints(headersOf(record), NOW_MS);

describe('rate-limit headers', () => {
  it.each<[string, Record<string, string>, object]>([
    [
      'OpenAI',
      {
        'x-ratelimit-limit-requests': '10000',
        'x-ratelimit-remaining-requests': '9999',
        'x-ratelimit-reset-requests': '6ms',
        'x-ratelimit-limit-tokens': '2000000',
        'x-ratelimit-remaining-tokens': '1999488',
        'x-ratelimit-reset-tokens': '15ms',
      },
      {
        requests: { limit: 10_000, remaining: 9_999, resetMs: 6 },
        tokens: { limit: 2_000_000, remaining: 1_999_488, resetMs: 15 },
      },
    ],
    [
      'OpenAI with requests of a day',
      {
        'x-ratelimit-limit-requests': '200',
        'x-ratelimit-remaining-requests': '199',
        'x-ratelimit-reset-requests': '7m12s',
      },
      { requestsPerDay: { limit: 200, remaining: 199, resetMs: 432_000, windowMs: DAY_MS } },
    ],
    [
      'a tighter limit of the project',
      {
        'x-ratelimit-limit-tokens': '2000000',
        'x-ratelimit-remaining-tokens': '1900000',
        'x-ratelimit-limit-project-tokens': '100000',
        'x-ratelimit-remaining-project-tokens': '90000',
      },
      { tokens: { limit: 100_000, remaining: 90_000 } },
    ],
    [
      'Azure, which names only what is left',
      { 'x-ratelimit-remaining-requests': '99', 'x-ratelimit-remaining-tokens': '99000' },
      { requests: { remaining: 99 }, tokens: { remaining: 99_000 } },
    ],
    [
      'Groq, whose requests are those of a day',
      {
        'x-groq-region': 'fra',
        'x-ratelimit-limit-requests': '14400',
        'x-ratelimit-remaining-requests': '14398',
        'x-ratelimit-reset-requests': '12s',
        'x-ratelimit-limit-tokens': '6000',
        'x-ratelimit-remaining-tokens': '5900',
        'x-ratelimit-reset-tokens': '1s',
      },
      {
        requestsPerDay: { limit: 14_400, remaining: 14_398, resetMs: 12_000, windowMs: DAY_MS },
        tokens: { limit: 6_000, remaining: 5_900, resetMs: 1_000 },
      },
    ],
    [
      'Groq behind a gateway that drops its name',
      {
        'x-ratelimit-limit-requests': '14400',
        'x-ratelimit-remaining-requests': '14370',
        'x-ratelimit-reset-requests': '2m59.56s',
      },
      { requestsPerDay: { limit: 14_400, remaining: 14_370, resetMs: 179_560, windowMs: DAY_MS } },
    ],
    [
      'a minute that restarts at fixed moments',
      {
        'x-ratelimit-limit-requests': '1440',
        'x-ratelimit-remaining-requests': '1439',
        'x-ratelimit-reset-requests': '60',
      },
      { requests: { limit: 1_440, remaining: 1_439, resetMs: 60_000 } },
    ],
    [
      'a minute overdrawn by one large request',
      {
        'x-ratelimit-limit-tokens': '10000',
        'x-ratelimit-remaining-tokens': '0',
        'x-ratelimit-reset-tokens': '1m5s',
      },
      { tokens: { limit: 10_000, remaining: 0, resetMs: 65_000 } },
    ],
    [
      'an hour',
      {
        'x-ratelimit-limit-requests': '100',
        'x-ratelimit-remaining-requests': '50',
        'x-ratelimit-reset-requests': '30m',
      },
      { requests: { limit: 100, remaining: 50, resetMs: 1_800_000, windowMs: 3_600_000 } },
    ],
    [
      'Mistral',
      {
        'x-ratelimit-limit-req-minute': '60',
        'x-ratelimit-remaining-req-minute': '59',
        'x-ratelimit-limit-tokens-minute': '500000',
        'x-ratelimit-remaining-tokens-minute': '498700',
        'x-ratelimit-limit-tokens-month': '1000000000',
        'x-ratelimit-tokens-query-cost': '1300',
      },
      {
        requests: { limit: 60, remaining: 59, windowMs: 60_000 },
        tokens: { limit: 500_000, remaining: 498_700, windowMs: 60_000 },
      },
    ],
    [
      'Mistral, earlier',
      {
        'x-ratelimitbysize-limit-minute': '500000',
        'x-ratelimitbysize-remaining-minute': '499000',
        'ratelimitbysize-reset': '41',
      },
      { tokens: { limit: 500_000, remaining: 499_000, resetMs: 41_000, windowMs: 60_000 } },
    ],
    [
      'Cerebras',
      {
        'x-ratelimit-limit-requests-day': '14400',
        'x-ratelimit-remaining-requests-day': '14399',
        'x-ratelimit-reset-requests-day': '33011.38',
        'x-ratelimit-limit-tokens-minute': '60000',
        'x-ratelimit-remaining-tokens-minute': '59900',
        'x-ratelimit-reset-tokens-minute': '11.4',
      },
      {
        tokens: { limit: 60_000, remaining: 59_900, resetMs: 11_400, windowMs: 60_000 },
        requestsPerDay: { limit: 14_400, remaining: 14_399, resetMs: 33_011_380, windowMs: DAY_MS },
      },
    ],
    [
      'Together, per second',
      {
        'x-ratelimit-limit': '10',
        'x-ratelimit-remaining': '9',
        'x-ratelimit-reset': '1',
        'x-tokenlimit-limit': '3000',
        'x-tokenlimit-remaining': '2900',
      },
      {
        requests: { limit: 10, remaining: 9, resetMs: 1_000, windowMs: 1_000 },
        tokens: { limit: 3_000, remaining: 2_900, windowMs: 1_000 },
      },
    ],
    [
      'OpenRouter, reset as Unix milliseconds',
      {
        'X-RateLimit-Limit': '20',
        'X-RateLimit-Remaining': '0',
        'X-RateLimit-Reset': String(NOW_MS + 31_000),
      },
      { requests: { limit: 20, remaining: 0, resetMs: 31_000 } },
    ],
    [
      'OpenRouter, per day',
      {
        'X-RateLimit-Limit': '50',
        'X-RateLimit-Remaining': '0',
        'X-RateLimit-Reset': String(NOW_MS + 5 * 3_600_000),
      },
      { requestsPerDay: { limit: 50, remaining: 0, resetMs: 18_000_000, windowMs: DAY_MS } },
    ],
    [
      'reset as Unix seconds',
      {
        'x-ratelimit-limit-requests': '60',
        'x-ratelimit-remaining-requests': '1',
        'x-ratelimit-reset-requests': String(NOW_MS / 1_000 + 20),
      },
      { requests: { limit: 60, remaining: 1, resetMs: 20_000 } },
    ],
    [
      'Anthropic, RFC 3339',
      {
        'anthropic-ratelimit-requests-limit': '50',
        'anthropic-ratelimit-requests-remaining': '49',
        'anthropic-ratelimit-requests-reset': '2026-03-01T12:00:01Z',
        'anthropic-ratelimit-tokens-limit': '40000',
        'anthropic-ratelimit-tokens-remaining': '39000',
        'anthropic-ratelimit-tokens-reset': '2026-03-01T12:00:02Z',
      },
      {
        requests: { limit: 50, remaining: 49, resetMs: 1_000, windowMs: 60_000 },
        tokens: { limit: 40_000, remaining: 39_000, resetMs: 2_000, windowMs: 60_000 },
      },
    ],
    [
      "LiteLLM's copy of the server behind it",
      {
        'llm_provider-x-ratelimit-limit-tokens': '30000',
        'llm_provider-x-ratelimit-remaining-tokens': '29000',
      },
      { tokens: { limit: 30_000, remaining: 29_000 } },
    ],
    [
      'a reset that has passed',
      {
        'x-ratelimit-limit-requests': '60',
        'x-ratelimit-remaining-requests': '60',
        'x-ratelimit-reset-requests': '2026-03-01T11:59:59Z',
      },
      { requests: { limit: 60, remaining: 60, resetMs: 0 } },
    ],
  ])('reads those of %s', (_server, headers, hints) => {
    expect(hintsOf(headers)).toEqual(hints);
  });

  it.each<[string, Record<string, string>]>([
    ['negative counts', { 'x-ratelimit-limit-requests': '-1', 'x-ratelimit-remaining-requests': '-1' }],
    ['words', { 'x-ratelimit-limit-tokens': 'unlimited', 'x-ratelimit-remaining-tokens': 'NaN' }],
    ['numbers that are none', { 'x-ratelimit-limit-tokens': '1e999', 'x-ratelimit-remaining': 'Infinity' }],
    ['only a reset', { 'x-ratelimit-reset-requests': '1s', 'x-ratelimit-reset': '5' }],
    ['a limit of zero', { 'x-ratelimit-limit-req-minute': '0' }],
    ['no header at all', {}],
  ])('takes nothing from %s', (_what, headers) => {
    expect(hintsOf(headers)).toBe(NO_HINTS);
  });

  it.each(['soon', '-5', '5 parsecs', '1e3', '', '9999999999999999', '2526-01-01T00:00:00Z', '400d'])(
    'leaves out a reset of %j',
    (reset) => {
      expect(hintsOf({ 'x-ratelimit-limit-requests': '60', 'x-ratelimit-reset-requests': reset })).toEqual({
        requests: { limit: 60 },
      });
    },
  );
});
