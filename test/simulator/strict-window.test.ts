import { describe, expect, it } from 'vitest';
import { simulatedAnswer } from '../../src/simulator/answer.js';
import type { Simulator } from '../../src/simulator/simulator.js';
import { FakeClock } from '../support/fake-clock.js';
import { ask, askEach, chatBody, json, type RawReply, send, simulate } from './raw-call.js';

function texts(count: number, start = 0): string[] {
  return Array.from({ length: count }, (_, index) => `document ${String(start + index).padStart(4, '0')}`);
}

/** How many of `count` documents sent at this moment are let in. */
async function acceptedOf(simulator: Simulator, count: number): Promise<number> {
  const statuses = await askEach(simulator, texts(count));
  return statuses.filter((status) => status === 200).length;
}

describe('requests per minute', () => {
  it('lets in exactly the limit, refuses the next, and lets it in the moment the oldest leaves', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ rpm: 5 }, clock);
    await ask(simulator, 'the oldest');
    await clock.advance(1_000);
    expect(await askEach(simulator, texts(4))).toEqual([200, 200, 200, 200]);
    expect(await askEach(simulator, texts(2))).toEqual([429, 429]);
    await clock.advance(58_999);
    expect(await askEach(simulator, texts(1))).toEqual([429]);
    await clock.advance(1);
    expect(await askEach(simulator, texts(2))).toEqual([200, 429]);
    expect(simulator.books()).toMatchObject({
      accepted: 6,
      refusedByStatus: { 429: 4 },
      peak: { requests: 5, requestsShare: 1 },
      violations: { overLimit: 4 },
    });
  });

  it('admits concurrent calls no more than the limit', async () => {
    const simulator = await simulate({ rpm: 20 });
    const replies = await Promise.all(texts(50).map((text) => ask(simulator, text)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(20);
    expect(simulator.books().peak.requests).toBe(20);
  });

  it('refuses with the numbers and the exact wait', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ rpm: 2 }, clock);
    await ask(simulator, 'a');
    await clock.advance(20_500);
    await ask(simulator, 'b');
    const reply = await ask(simulator, 'c');
    expect(reply.status).toBe(429);
    expect(reply.headers['retry-after']).toBe('40');
    expect(json(reply).error).toEqual({
      message:
        'Rate limit reached for gpt-4o-mini in organization org-simulated on requests per min (RPM): Limit 2, Used 2, Requested 1. Please try again in 39.5s.',
      type: 'requests',
      param: null,
      code: 'rate_limit_exceeded',
    });
  });

  it('a refused call leaves no trace, unless refusals are to count', async () => {
    const clock = new FakeClock();
    const lenient = await simulate({ rpm: 1 }, clock);
    const harsh = await simulate({ rpm: 1, countRefused: true }, clock);
    for (const simulator of [lenient, harsh]) expect(await askEach(simulator, texts(1))).toEqual([200]);
    await clock.advance(30_000);
    for (const simulator of [lenient, harsh]) expect(await askEach(simulator, texts(1))).toEqual([429]);
    await clock.advance(30_000);
    expect(await askEach(lenient, texts(1))).toEqual([200]);
    expect(await askEach(harsh, texts(1))).toEqual([429]);
  });

  it('a call that the server turned away by itself is not charged', async () => {
    const simulator = await simulate({ rpm: 1 });
    expect((await ask(simulator, '[[simulate:bad-request]]')).status).toBe(400);
    expect((await ask(simulator, '[[simulate:429]]')).status).toBe(429);
    expect((await ask(simulator, '[[simulate:500]]')).status).toBe(500);
    expect((await ask(simulator, 'after the 500, which was let in')).status).toBe(429);
  });
});

describe('tokens per minute', () => {
  const body = chatBody('twenty-four bytes of text', { max_tokens: 100 });
  const { promptTokens, completionTokens } = simulatedAnswer(body);
  const used = promptTokens + completionTokens;

  it('charges what the call uses', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ tpm: used * 3 + 1 }, clock);
    const statuses = async (count: number): Promise<(number | null)[]> => {
      const replies: RawReply[] = [];
      for (let call = 0; call < count; call += 1) replies.push(await send(simulator, body));
      return replies.map(({ status }) => status);
    };
    expect(await statuses(4)).toEqual([200, 200, 200, 429]);
    await clock.advance(59_999);
    expect(await statuses(1)).toEqual([429]);
    await clock.advance(1);
    expect(await statuses(4)).toEqual([200, 200, 200, 429]);
    expect(simulator.books()).toMatchObject({ tokensCharged: used * 6, peak: { tokens: used * 3 } });
  });

  it('charges prompt and output cap in full when told to', async () => {
    const simulator = await simulate({ tpm: (promptTokens + 100) * 2, charge: 'cap' });
    const statuses: (number | null)[] = [];
    for (let call = 0; call < 3; call += 1) statuses.push((await send(simulator, body)).status);
    expect(statuses).toEqual([200, 200, 429]);
    expect(simulator.books().tokensCharged).toBe((promptTokens + 100) * 2);
  });

  it('one request larger than the whole limit is refused for good', async () => {
    const simulator = await simulate({ tpm: used - 1 });
    const reply = await send(simulator, body);
    expect(reply.status).toBe(429);
    expect(reply.headers['retry-after']).toBeUndefined();
    expect(json(reply).error.message).toMatch(/^Request too large for gpt-4o-mini/);
    expect(json(reply).error.message).toContain(`Limit ${used - 1}, Requested ${used}.`);
  });

  it('one request as large as the whole limit passes', async () => {
    const simulator = await simulate({ tpm: used });
    expect((await send(simulator, body)).status).toBe(200);
  });

  it('of two limits in the way the one that holds longer is told', async () => {
    const clock = new FakeClock();
    const short = simulatedAnswer(chatBody('a'));
    const shortUsed = short.promptTokens + short.completionTokens;
    const simulator = await simulate({ rpm: 2, tpm: used + shortUsed }, clock);
    await ask(simulator, 'a');
    await clock.advance(5_000);
    await send(simulator, body);
    await clock.advance(5_000);
    // The short one leaves in 50 s and makes room for a request, but not for the tokens.
    const reply = await send(simulator, body);
    expect(json(reply).error.type).toBe('tokens');
    expect(json(reply).error.message).toMatch(/try again in 55s\.$/);
  });

  it('a request that would just fit passes, and waits for tokens name the moment it does', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ tpm: used * 2 }, clock);
    await send(simulator, body);
    await clock.advance(10_000);
    await send(simulator, body);
    const reply = await send(simulator, body);
    expect(json(reply).error).toMatchObject({ type: 'tokens' });
    expect(json(reply).error.message).toMatch(/Please try again in 50s\.$/);
    await clock.advance(50_000);
    expect((await send(simulator, body)).status).toBe(200);
  });
});

describe('shorter and longer windows', () => {
  it('600 a minute over one second is 10 in any second and 600 in any minute', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ rpm: 600, enforceOverMs: 1_000 }, clock);
    expect(await acceptedOf(simulator, 12)).toBe(10);
    await clock.advance(999);
    expect(await acceptedOf(simulator, 1)).toBe(0);
    await clock.advance(1);
    expect(await acceptedOf(simulator, 12)).toBe(10);
    const reply = await ask(simulator, 'late');
    expect(json(reply).error.message).toContain('Limit 10, Used 10, Requested 1. Please try again in 1s.');
    expect(reply.headers['x-ratelimit-limit-requests']).toBe('600');
    expect(reply.headers['x-ratelimit-remaining-requests']).toBe('580');
  });

  it('a limit too small for its short window still lets one in, and the minute holds', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ rpm: 2, enforceOverMs: 1_000 }, clock);
    expect(await acceptedOf(simulator, 2)).toBe(1);
    await clock.advance(1_000);
    expect(await acceptedOf(simulator, 2)).toBe(1);
    await clock.advance(1_000);
    expect(await acceptedOf(simulator, 1)).toBe(0);
  });

  it("a request larger than a short window's tokens passes when the window is empty", async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ tpm: 600, enforceOverMs: 1_000 }, clock);
    expect(await acceptedOf(simulator, 2)).toBe(1);
    await clock.advance(1_000);
    expect(await acceptedOf(simulator, 1)).toBe(1);
  });

  it('requests per day leave after a day', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ rpd: 2 }, clock);
    expect(await acceptedOf(simulator, 3)).toBe(2);
    const reply = await ask(simulator, 'too much for today');
    expect(json(reply).error.message).toContain('on requests per day (RPD): Limit 2');
    await clock.advance(86_400_000);
    expect(await acceptedOf(simulator, 3)).toBe(2);
  });

  it('what was used still counts when limits change', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ rpm: 100 }, clock);
    expect(await acceptedOf(simulator, 10)).toBe(10);
    simulator.reconfigure({ rpm: 600, enforceOverMs: 1_000 });
    expect(await acceptedOf(simulator, 1)).toBe(0);
    simulator.reconfigure({ rpm: 12, enforceOverMs: null });
    expect(await acceptedOf(simulator, 5)).toBe(2);
  });
});

describe('what a refusal tells', () => {
  async function refusal(retryAfter: 'message' | 'none' | number): Promise<RawReply> {
    const simulator = await simulate({ rpm: 1, retryAfter });
    await ask(simulator, 'first');
    return ask(simulator, 'second');
  }

  it('message: the wait in words alone', async () => {
    const reply = await refusal('message');
    expect(reply.headers['retry-after']).toBeUndefined();
    expect(json(reply).error.message).toMatch(/Please try again in 1m0s\.$/);
  });

  it('none: nothing', async () => {
    const reply = await refusal('none');
    expect(reply.headers['retry-after']).toBeUndefined();
    expect(json(reply).error.message).not.toContain('try again');
  });

  it('a number: always these seconds, for scripted throttles too', async () => {
    expect((await refusal(7)).headers['retry-after']).toBe('7');
    const simulator = await simulate({ retryAfter: 7 });
    expect((await ask(simulator, '[[simulate:429]]')).headers['retry-after']).toBe('7');
  });
});
