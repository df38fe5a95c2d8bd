import { describe, expect, it } from 'vitest';
import { readRetryAfterMs } from '../../../src/provider/openai/retry-after.js';

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');

describe('how long a server asks to wait', () => {
  it.each<[string, Record<string, string>, unknown, number | undefined]>([
    ['seconds', { 'retry-after': '5' }, undefined, 5_000],
    ['fractions of a second', { 'retry-after': '0.25' }, undefined, 250],
    ['a duration', { 'retry-after': '1m30s' }, undefined, 90_000],
    ['milliseconds', { 'retry-after-ms': '1250' }, undefined, 1_250],
    ['both, the longer', { 'retry-after': '1', 'retry-after-ms': '300' }, undefined, 1_000],
    ['a date', { 'retry-after': 'Sun, 01 Mar 2026 12:00:30 GMT' }, undefined, 30_000],
    [
      'a date on a clock that is not ours',
      { date: 'Sun, 01 Mar 2026 09:00:00 GMT', 'retry-after': 'Sun, 01 Mar 2026 09:00:07 GMT' },
      undefined,
      7_000,
    ],
    ['a header sent twice', { 'retry-after': '2, 9' }, undefined, 9_000],
    [
      'a spent quota and its reset',
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW_MS + 4_000) },
      undefined,
      4_000,
    ],
    [
      'the message, seconds',
      {},
      { message: 'Rate limit reached. Please try again in 1.146s. Visit …' },
      1_146,
    ],
    ['the message, milliseconds', {}, { message: 'Please try again in 84ms.' }, 84],
    ['the message, minutes', {}, { message: 'Please try again in 6m0s.' }, 360_000],
    ['the message, hours', {}, { message: 'try again in 1h2m3s' }, 3_723_000],
    ['the message, in words', {}, { message: 'Please retry after 20 seconds.' }, 20_000],
    ['the message, in more words', {}, { message: 'Try again in 1 minute and 30 seconds.' }, 90_000],
    ['the message as a text', {}, 'Please try again in 2s', 2_000],
    ['the message, hours and colons', {}, { message: 'Quota will be replenished in 00:10:30.' }, 630_000],
    ['the message, longer than the header', { 'retry-after': '1' }, { message: 'try again in 3s' }, 3_000],
    [
      "Google's RetryInfo",
      {},
      { details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '37s' }] },
      37_000,
    ],
    [
      "OpenRouter's metadata",
      {},
      {
        metadata: { headers: { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(NOW_MS + 9_000) } },
      },
      9_000,
    ],
    ['nothing', {}, undefined, undefined],
    ['zero', { 'retry-after': '0' }, undefined, undefined],
    ['a negative number', { 'retry-after': '-10', 'retry-after-ms': '-1' }, undefined, undefined],
    ['not a number', { 'retry-after': 'NaN', 'retry-after-ms': 'soon' }, undefined, undefined],
    ['a date that has passed', { 'retry-after': 'Sun, 01 Mar 2026 11:00:00 GMT' }, undefined, undefined],
    ['thirty years', { 'retry-after': '999999999' }, undefined, undefined],
    ['a date in the far future', { 'retry-after': 'Sun, 01 Mar 2126 11:00:00 GMT' }, undefined, undefined],
    ['a message about months', {}, { message: 'try again in 2 months' }, undefined],
    ['a message that is no text', {}, { message: { detail: 'try again in 2s' } }, undefined],
    ['malformed details', {}, { details: [null, 7, { retryDelay: 5 }], metadata: 'x' }, undefined],
  ])('reads %s', (_form, headers, error, waitMs) => {
    expect(readRetryAfterMs(new Headers(headers), error, NOW_MS)).toBe(waitMs);
  });
});
