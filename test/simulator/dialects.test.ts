import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, it } from 'vitest';
import { simulatedAnswer } from '../../src/simulator/answer.js';
import type { HeaderDialect } from '../../src/simulator/dialect.js';
import { goDuration } from '../../src/simulator/go-duration.js';
import type { SimulatorOptions } from '../../src/simulator/options.js';
import { FakeClock } from '../support/fake-clock.js';
import { ask, chatBody, json, type RawReply, simulate } from './raw-call.js';

const START_MS = Date.UTC(2026, 0, 2, 3, 4, 5);
const { promptTokens, completionTokens } = simulatedAnswer(chatBody('first'));
const USED = promptTokens + completionTokens;

interface Told {
  readonly accepted: RawReply;
  readonly refused: RawReply;
}

/** The first call, and one refused ten seconds later, under 2 requests and 1,000 tokens a minute. */
async function tell(headers: HeaderDialect, options: SimulatorOptions = {}): Promise<Told> {
  const clock = new FakeClock(START_MS);
  const simulator = await simulate({ headers, rpm: 2, tpm: 1_000, ...options }, clock);
  const accepted = await ask(simulator, 'first');
  await clock.advance(10_000);
  await ask(simulator, 'first');
  return { accepted, refused: await ask(simulator, 'first') };
}

/** Headers that tell of limits, without those of HTTP. */
function limitHeaders(headers: IncomingHttpHeaders): Record<string, unknown> {
  const ofHttp = ['content-type', 'content-length', 'date', 'connection', 'keep-alive', 'x-request-id'];
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !ofHttp.includes(name)));
}

describe('rate-limit headers', () => {
  it('openai: limit, remaining and Go durations, on success and on 429', async () => {
    const { accepted, refused } = await tell('openai');
    expect(limitHeaders(accepted.headers)).toEqual({
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-reset-requests': '1m0s',
      'x-ratelimit-limit-tokens': '1000',
      'x-ratelimit-remaining-tokens': String(1_000 - USED),
      'x-ratelimit-reset-tokens': '1m0s',
    });
    expect(limitHeaders(refused.headers)).toEqual({
      'retry-after': '50',
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': '1m0s',
      'x-ratelimit-limit-tokens': '1000',
      'x-ratelimit-remaining-tokens': String(1_000 - 2 * USED),
      'x-ratelimit-reset-tokens': '1m0s',
    });
  });

  it('openai without limits: nothing', async () => {
    const simulator = await simulate();
    expect(limitHeaders((await ask(simulator, 'first')).headers)).toEqual({});
  });

  it('none: nothing, but for retry-after', async () => {
    const { accepted, refused } = await tell('none');
    expect(limitHeaders(accepted.headers)).toEqual({});
    expect(limitHeaders(refused.headers)).toEqual({ 'retry-after': '50' });
  });

  it('groq: requests of the day, tokens of the minute', async () => {
    const { accepted } = await tell('groq', { rpd: 14_400 });
    expect(limitHeaders(accepted.headers)).toEqual({
      'x-ratelimit-limit-requests': '14400',
      'x-ratelimit-remaining-requests': '14399',
      'x-ratelimit-reset-requests': '24h0m0s',
      'x-ratelimit-limit-tokens': '1000',
      'x-ratelimit-remaining-tokens': String(1_000 - USED),
      'x-ratelimit-reset-tokens': '1m0s',
    });
  });

  it('azure: what remains, and milliseconds on 429', async () => {
    const { accepted, refused } = await tell('azure');
    expect(limitHeaders(accepted.headers)).toEqual({
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-remaining-tokens': String(1_000 - USED),
    });
    expect(refused.headers).toMatchObject({ 'retry-after': '50', 'retry-after-ms': '50000' });
  });

  it('mistral: minutes, the cost of the query, no resets, no error wrapper', async () => {
    const { accepted, refused } = await tell('mistral');
    expect(limitHeaders(accepted.headers)).toEqual({
      'x-ratelimit-limit-req-minute': '2',
      'x-ratelimit-remaining-req-minute': '1',
      'x-ratelimit-limit-tokens-minute': '1000',
      'x-ratelimit-remaining-tokens-minute': String(1_000 - USED),
      'x-ratelimit-tokens-query-cost': String(USED),
    });
    expect(json(refused)).toEqual({ message: 'Rate limit exceeded', code: '1300' });
  });

  it('together: limits of one second, enforced as such', async () => {
    const { accepted } = await tell('together', { rpm: 120, tpm: 60_000 });
    expect(limitHeaders(accepted.headers)).toEqual({
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '1',
      'x-ratelimit-reset': '1',
      'x-tokenlimit-limit': '1000',
      'x-tokenlimit-remaining': String(1_000 - USED),
    });
  });

  it('openrouter: on 429 alone, as epoch milliseconds, in the body too, with a numeric code', async () => {
    const { accepted, refused } = await tell('openrouter');
    expect(limitHeaders(accepted.headers)).toEqual({});
    const reset = String(START_MS + 10_000 + 60_000);
    expect(refused.headers).toMatchObject({ 'x-ratelimit-limit': '2', 'x-ratelimit-reset': reset });
    expect(json(refused).error).toMatchObject({
      code: 429,
      metadata: { headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset } },
    });
  });

  it('anthropic: dates, its own names beside, and request-id', async () => {
    const { accepted } = await tell('anthropic');
    expect(accepted.headers).toMatchObject({
      'request-id': 'req_simulated_1',
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-reset-requests': '2026-01-02T03:05:05.000Z',
      'anthropic-ratelimit-requests-limit': '2',
      'anthropic-ratelimit-tokens-reset': '2026-01-02T03:05:05.000Z',
    });
    expect(accepted.headers['x-request-id']).toBeUndefined();
  });

  it('litellm: no resets, the upstream beside, the cost where there are prices', async () => {
    const { accepted } = await tell('litellm', {
      prices: { inputMicroUsdPerToken: 1, outputMicroUsdPerToken: 2 },
    });
    expect(limitHeaders(accepted.headers)).toEqual({
      'x-litellm-call-id': 'req_simulated_1',
      'x-litellm-attempted-retries': '0',
      'x-litellm-response-cost': String((promptTokens + 2 * completionTokens) / 1e6),
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-limit-tokens': '1000',
      'x-ratelimit-remaining-tokens': String(1_000 - USED),
      'llm_provider-x-ratelimit-limit-requests': '2',
      'llm_provider-x-ratelimit-remaining-requests': '1',
      'llm_provider-x-ratelimit-limit-tokens': '1000',
      'llm_provider-x-ratelimit-remaining-tokens': String(1_000 - USED),
    });
  });

  it('gemini: a list of one error, with RetryInfo', async () => {
    const { refused } = await tell('gemini');
    expect(json(refused)).toMatchObject([
      { error: { code: 429, status: 'RESOURCE_EXHAUSTED', details: [{ retryDelay: '50s' }] } },
    ]);
  });
});

describe('goDuration', () => {
  it.each([
    [0, '0s'],
    [0.2, '1ms'],
    [20, '20ms'],
    [1_000, '1s'],
    [1_146, '1.146s'],
    [360_000, '6m0s'],
    [179_560, '2m59.56s'],
    [3_723_000, '1h2m3s'],
    [86_400_000, '24h0m0s'],
  ])('%d ms is %s', (durationMs, text) => {
    expect(goDuration(durationMs)).toBe(text);
  });
});
