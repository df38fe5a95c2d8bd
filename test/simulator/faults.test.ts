import { describe, expect, it } from 'vitest';
import { FakeClock } from '../support/fake-clock.js';
import { waitFor } from '../support/wait-for.js';
import { ask, askAll, askEach, chatBody, json, open, send, simulate } from './raw-call.js';

describe('seeded faults', () => {
  it('strike at the share asked for', async () => {
    const simulator = await simulate({ errorRate: { '500': 0.3, '503': 0.1 } });
    const texts = Array.from({ length: 500 }, (_, index) => `document ${index}`);
    await askAll(simulator, texts);
    const { refusedByStatus } = simulator.books();
    // Five standard deviations of a binomial: 51 and 34.
    expect(Math.abs((refusedByStatus[500] ?? 0) - 150)).toBeLessThan(51);
    expect(Math.abs((refusedByStatus[503] ?? 0) - 50)).toBeLessThan(34);
  });

  it('are drawn anew for each call of a document, so that retries come through', async () => {
    const simulator = await simulate({ errorRate: { '500': 0.5 } });
    const statuses = await askEach(
      simulator,
      Array.from({ length: 20 }, () => 'the same'),
    );
    expect(new Set(statuses)).toEqual(new Set([200, 500]));
  });

  it("give way to a document's own directive", async () => {
    const simulator = await simulate({ errorRate: { '500': 1 } });
    expect(await askEach(simulator, ['plain', '[[simulate:ok]]'])).toEqual([500, 200]);
  });
});

describe('latency', () => {
  it('is drawn from its range, and refusals do not wait', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ latencyMs: { min: 100, max: 200 }, rpm: 1 }, clock);
    const { reply, status } = open(simulator, chatBody('slow'));
    await waitFor('the answer to be scheduled', () => clock.pendingTimers === 1);
    expect((await ask(simulator, 'refused')).status).toBe(429);
    await clock.advance(99);
    expect(status()).toBeNull();
    await clock.advance(101);
    expect((await reply).status).toBe(200);
  });

  it('climbs with the calls open beyond what the server bears', async () => {
    const clock = new FakeClock();
    const simulator = await simulate(
      { latencyMs: 100, latencyClimb: { beyondOpenCalls: 2, msPerCall: 50 } },
      clock,
    );
    const calls = [];
    for (let count = 1; count <= 4; count += 1) {
      calls.push(open(simulator, chatBody(`document ${count}`)));
      await waitFor('the answer to be scheduled', () => clock.pendingTimers === count);
    }
    const answered = (): number => simulator.books().answered;
    await clock.advance(100);
    await waitFor('the first two', () => answered() === 2);
    expect(clock.pendingTimers).toBe(2);
    await clock.advance(50);
    await waitFor('the third', () => answered() === 3);
    await clock.advance(50);
    await waitFor('the fourth', () => answered() === 4);
    await Promise.all(calls.map(({ reply }) => reply));
  });
});

describe('outages', () => {
  it('meets every call in its span, and tells what is left of it', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ outage: { fault: '429', afterMs: 1_000, forMs: 30_000 } }, clock);
    expect(await askEach(simulator, ['before'])).toEqual([200]);
    await clock.advance(1_000);
    const reply = await ask(simulator, 'within');
    expect(reply.status).toBe(429);
    expect(reply.headers['retry-after']).toBe('30');
    await clock.advance(29_999);
    expect(await askEach(simulator, ['within'])).toEqual([429]);
    await clock.advance(1);
    expect(await askEach(simulator, ['after'])).toEqual([200]);
    expect(simulator.books().behaviours).toEqual({ '429': 2 });
  });

  it('without an end lasts until healed, and leaves directives uncounted', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({ outage: { fault: '503' } }, clock);
    const text = '[[simulate:500-then-ok 1]]';
    expect(await askEach(simulator, [text, text])).toEqual([503, 503]);
    await clock.advance(86_400_000);
    expect(await askEach(simulator, [text])).toEqual([503]);
    simulator.reconfigure({ outage: null });
    expect(await askEach(simulator, [text, text])).toEqual([500, 200]);
  });

  it('set by reconfiguration begins then', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({}, clock);
    await clock.advance(100_000);
    simulator.reconfigure({ outage: { fault: 'reset', forMs: 10 } });
    expect(await askEach(simulator, ['x'])).toEqual([null]);
    await clock.advance(5);
    simulator.reconfigure({ rpm: 1_000 });
    await clock.advance(5);
    expect(await askEach(simulator, ['x'])).toEqual([200]);
  });
});

describe('keys and money', () => {
  const KEYS = [
    { key: 'sk-alpha', rpm: 2 },
    { key: 'sk-beta', rpm: 3 },
  ];

  it('any key, or none, will do unless keys are listed', async () => {
    const open = await simulate();
    expect((await ask(open, 'x', { key: null })).status).toBe(200);
    expect((await ask(open, 'x', { key: 'anything' })).status).toBe(200);
    const closed = await simulate({ keys: KEYS });
    expect((await ask(closed, 'x', { key: null })).status).toBe(401);
    expect((await ask(closed, 'x', { key: 'anything' })).status).toBe(401);
    expect((await ask(closed, 'x', { key: 'sk-alpha' })).status).toBe(200);
    expect((await ask(closed, 'x', { key: null, headers: { 'api-key': 'sk-alpha' } })).status).toBe(200);
  });

  it('each key has a window of its own', async () => {
    const simulator = await simulate({ keys: KEYS });
    const accepted: Record<string, number> = {};
    for (const { key } of KEYS) {
      const replies = await Promise.all([1, 2, 3, 4, 5].map((each) => ask(simulator, `${each}`, { key })));
      accepted[key] = replies.filter(({ status }) => status === 200).length;
    }
    expect(accepted).toEqual({ 'sk-alpha': 2, 'sk-beta': 3 });
    expect(simulator.books().peak).toMatchObject({ requests: 5, requestsShare: 1 });
    expect(simulator.books().keys.map(({ peak }) => peak.requestsShare)).toEqual([1, 1]);
  });

  it('a revoked key is refused while the rest go on', async () => {
    const simulator = await simulate({ keys: KEYS });
    simulator.reconfigure({ revokedKeys: ['sk-alpha'] });
    const refused = await ask(simulator, 'x', { key: 'sk-alpha' });
    expect(refused.status).toBe(401);
    expect(json(refused).error.code).toBe('invalid_api_key');
    expect((await ask(simulator, 'x', { key: 'sk-beta' })).status).toBe(200);
  });

  it('money lasts for so many calls of a key', async () => {
    const simulator = await simulate({
      insufficientQuotaAfter: 1,
      keys: [{ key: 'sk-alpha' }, { key: 'sk-beta', insufficientQuotaAfter: 2 }],
    });
    const statuses = async (key: string): Promise<(number | null)[]> => [
      (await ask(simulator, 'a', { key })).status,
      (await ask(simulator, 'b', { key })).status,
      (await ask(simulator, 'c', { key })).status,
    ];
    expect(await statuses('sk-alpha')).toEqual([200, 429, 429]);
    expect(await statuses('sk-beta')).toEqual([200, 200, 429]);
    expect(json(await ask(simulator, 'd', { key: 'sk-beta' })).error.code).toBe('insufficient_quota');
  });
});

describe('healing', () => {
  it('ends every fault and keeps the limits', async () => {
    const simulator = await simulate({
      outage: { fault: '503' },
      errorRate: { '500': 1 },
      insufficientQuotaAfter: 0,
      revokedKeys: ['sk-test-0123456789'],
      rpm: 3,
    });
    expect(await askEach(simulator, ['x'])).toEqual([401]);
    simulator.heal();
    expect(await askEach(simulator, ['x', '[[simulate:insufficient-quota]]', 'y', 'z'])).toEqual([
      200, 200, 200, 429,
    ]);
  });

  it('can be asked for over HTTP', async () => {
    const simulator = await simulate({ insufficientQuotaAfter: 0 });
    expect(await askEach(simulator, ['x'])).toEqual([429]);
    expect((await send(simulator, '', { path: '/simulator/heal' })).status).toBe(200);
    expect(await askEach(simulator, ['x'])).toEqual([200]);
  });

  it('gives keys with an empty account their money back', async () => {
    const simulator = await simulate({ keys: [{ key: 'sk-a', rpm: 1, insufficientQuotaAfter: 0 }] });
    expect((await ask(simulator, 'x', { key: 'sk-a' })).status).toBe(429);
    simulator.heal();
    expect((await ask(simulator, 'x', { key: 'sk-a' })).status).toBe(200);
    expect((await ask(simulator, 'x', { key: 'sk-a' })).status).toBe(429);
  });
});
