/** DeclaredLimits that rise and fall while calls are granted, sent and waited for. */
import { describe, expect, test } from 'vitest';
import { createLimiter, type DeclaredLimits, type Grant, type Limiter } from '../../src/limiter/limiter.js';
import { fakeServer, rolling } from './fake-servers.js';
import { refusedBetween, runLane, seededRandom } from './simulated-lane.js';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const SMALL = { requests: 1, tokens: 1 };

function limits(changed: Partial<DeclaredLimits>): DeclaredLimits {
  return { requestsPerMinute: null, tokensPerMinute: null, ...changed };
}

function limiterOf(changed: Partial<DeclaredLimits>): Limiter {
  return createLimiter({ ...limits(changed), random: () => 0.5 });
}

function granted(limiter: Limiter, nowMs: number, tokens = 1): Grant {
  const reservation = limiter.reserve({ requests: 1, tokens }, nowMs);
  if (!reservation.granted) throw new Error(`not granted at ${nowMs}: ${JSON.stringify(reservation)}`);
  return reservation.grant;
}

function call(limiter: Limiter, nowMs: number, tokens = 1): Grant {
  const grant = granted(limiter, nowMs, tokens);
  expect(limiter.sent(grant, nowMs)).toBe(true);
  return grant;
}

function callsUntilBlocked(limiter: Limiter, nowMs: number): number {
  for (let calls = 0; ; calls += 1) {
    const reservation = limiter.reserve(SMALL, nowMs);
    if (!reservation.granted) return calls;
    limiter.sent(reservation.grant, nowMs);
  }
}

describe('a limit that falls', () => {
  test('counts what was sent before it fell', () => {
    const limiter = limiterOf({ requestsPerMinute: 10 });
    for (const atMs of [0, 10_000, 20_000, 30_000]) call(limiter, atMs);
    limiter.setLimits(limits({ requestsPerMinute: 2 }), 30_000);
    expect(limiter.reserve(SMALL, 30_000)).toMatchObject({ blockedBy: 'requests', waitMs: 20_000 + 30_250 });
  });

  test('holds back calls that were granted and are not sent, and gives their place back', () => {
    const limiter = limiterOf({ requestsPerMinute: 10, tokensPerMinute: 1_000, requestsPerDay: 10 });
    const grants = [1, 2, 3, 4].map(() => granted(limiter, 0, 100));
    limiter.setLimits(limits({ requestsPerMinute: 3, tokensPerMinute: 250, requestsPerDay: 10 }), 5);
    expect(grants.map((grant) => limiter.sent(grant, 10))).toEqual([true, true, false, false]);
    expect(limiter.snapshot(10)).toMatchObject({
      requestsInWindow: 2,
      tokensInWindow: 200,
      requestsInDay: 2,
    });
    expect(limiter.reserve({ requests: 1, tokens: 50 }, 10).granted).toBe(true);
  });

  test.each([
    ['requests per minute', { requestsPerMinute: 1 }],
    ['tokens per minute', { tokensPerMinute: 15 }],
    ['requests per day', { requestsPerDay: 1 }],
  ])('holds back a granted call by %s alone', (_name, fallen) => {
    const limiter = limiterOf({});
    const [first, second] = [granted(limiter, 0, 10), granted(limiter, 0, 10)];
    limiter.setLimits(limits(fallen), 0);
    expect([limiter.sent(first, 0), limiter.sent(second, 0)]).toEqual([true, false]);
  });

  test('counts nothing of a granted call that was given back', () => {
    const limiter = limiterOf({ requestsPerDay: 3 });
    limiter.cancel(granted(limiter, 0), 0);
    call(limiter, 0);
    const grant = granted(limiter, 0);
    limiter.setLimits(limits({ requestsPerDay: 1 }), 0);
    expect(limiter.sent(grant, 0)).toBe(false);
  });

  test('changes nothing about calls that are on their way', () => {
    const limiter = limiterOf({ tokensPerMinute: 1_000 });
    const grant = call(limiter, 0, 900);
    limiter.setLimits(limits({ tokensPerMinute: 100 }), 10);
    limiter.commit(grant, 50, 20);
    expect(limiter.sent(grant, 20)).toBe(true);
    expect(limiter.snapshot(20).tokensInWindow).toBe(50);
    expect(limiter.reserve({ requests: 1, tokens: 50 }, 20).granted).toBe(true);
  });

  test('does not prove that the server charges use, though more was let in than it would allow now', () => {
    const limiter = limiterOf({ tokensPerMinute: 10_000 });
    const grants = Array.from({ length: 9 }, () => call(limiter, 0, 1_000));
    limiter.setLimits(limits({ tokensPerMinute: 2_000 }), 10);
    for (const grant of grants) {
      limiter.commit(grant, 1_000, 20);
      limiter.succeeded(20, grant);
    }
    expect(limiter.snapshot(20).chargesOutputCap).toBeNull();
  });
});

describe('a limit that rises', () => {
  test('lets calls go at once that were told to wait', () => {
    const limiter = limiterOf({ requestsPerMinute: 2 });
    expect(callsUntilBlocked(limiter, 0)).toBe(2);
    limiter.setLimits(limits({ requestsPerMinute: 5 }), 10);
    expect(callsUntilBlocked(limiter, 10)).toBe(3);
  });

  test('shortens a wait that it does not end', () => {
    const limiter = limiterOf({ tokensPerMinute: 100 });
    for (const atMs of [0, 20_000]) call(limiter, atMs, 50);
    const ask = { requests: 1, tokens: 100 };
    expect(limiter.reserve(ask, 30_000)).toMatchObject({ waitMs: 50_250 });
    limiter.setLimits(limits({ tokensPerMinute: 150 }), 30_000);
    expect(limiter.reserve(ask, 30_000)).toMatchObject({ waitMs: 30_250 });
  });

  test('makes a call possible that was larger than all of it, and a fall makes it impossible', () => {
    const limiter = limiterOf({ tokensPerMinute: 100 });
    const ask = { requests: 1, tokens: 150 };
    expect(limiter.reserve(ask, 0)).toMatchObject({ impossible: true });
    limiter.setLimits(limits({ tokensPerMinute: 150 }), 0);
    limiter.cancel(granted(limiter, 0, 150), 0);
    limiter.setLimits(limits({ tokensPerMinute: 149 }), 0);
    expect(limiter.reserve(ask, 0)).toMatchObject({ impossible: true });
  });

  test('is used even if the last call of a lane that spreads its calls would fill the slow minute', () => {
    const limiter = limiterOf({ requestsPerMinute: 1 });
    limiter.observe({ requests: { limit: 1 / 60, windowMs: 1_000 } }, 0);
    call(limiter, 0);
    limiter.observe({ requests: { limit: 10, windowMs: 1_000 } }, 10);
    expect(limiter.reserve(SMALL, 10)).toMatchObject({ granted: false });
    limiter.setLimits(limits({ requestsPerMinute: 600 }), 10);
    expect(limiter.reserve(SMALL, 3_010).granted).toBe(true);
  });
});

test('if no limit changed, a granted call leaves, whatever those before it turned out to use', () => {
  const limiter = limiterOf({ tokensPerMinute: 100 });
  const [first, second] = [call(limiter, 0, 50), granted(limiter, 0, 50)];
  limiter.commit(first, 90, 10);
  expect(limiter.sent(second, 10)).toBe(true);
});

test('limits are taken away and put in place like any other change, and a day is one of them', () => {
  const limiter = limiterOf({ requestsPerMinute: 1, requestsPerDay: 2 });
  call(limiter, 0);
  limiter.setLimits(limits({ requestsPerDay: 3 }), 0);
  expect(callsUntilBlocked(limiter, 0)).toBe(2);
  expect(limiter.reserve(SMALL, 0)).toMatchObject({ blockedBy: 'requests_per_day', waitMs: DAY_MS });
  limiter.setLimits(limits({}), 0);
  for (let calls = 0; calls < 100; calls += 1) call(limiter, 0);
  limiter.setLimits(limits({ requestsPerMinute: 100 }), 0);
  expect(limiter.reserve(SMALL, 0)).toMatchObject({ blockedBy: 'requests', waitMs: 60_250 });
});

test('a limit that is not a positive number is refused, and the others stay as they were', () => {
  const limiter = limiterOf({ requestsPerMinute: 5, tokensPerMinute: 100 });
  expect(() => limiter.setLimits({ requestsPerMinute: 9, tokensPerMinute: 0 }, 0)).toThrow(
    /tokensPerMinute.*got 0/,
  );
  expect(limiter.snapshot(0)).toMatchObject({ requestsPerMinute: 5, tokensPerMinute: 100 });
});

test('others use up what the server gives beyond our share first, and only then our share', () => {
  const limiter = limiterOf({ requestsPerMinute: 30 });
  const first = call(limiter, 0);
  limiter.observe({ requests: { limit: 100, remaining: 39, resetMs: MINUTE_MS } }, 200, first);
  expect(limiter.snapshot(200).othersRequests).toBe(60);
  expect(callsUntilBlocked(limiter, 200)).toBe(29);
  limiter.setLimits(limits({ requestsPerMinute: 70 }), 200);
  expect(callsUntilBlocked(limiter, 200)).toBe(10);
  limiter.setLimits(limits({ requestsPerMinute: 200 }), 200);
  expect(limiter.reserve(SMALL, 200)).toMatchObject({ waitMs: 1_000 });
});

describe.each([1, 2, 3])('under a server whose strict minute rises and falls (seed %i)', (seed) => {
  /**
   * In the middle of the bursts that a minute begins with, when many calls are granted and not yet sent. Calls are on
   * their way for up to 15 ms, and the server falls that much later than we.
   */
  const steps = [
    { atMs: Number.NEGATIVE_INFINITY, requestsPerMinute: 600, tokensPerMinute: 60_000 },
    { atMs: 122_000, requestsPerMinute: 120, tokensPerMinute: 9_000 },
    { atMs: 302_000, requestsPerMinute: 900, tokensPerMinute: 60_000 },
    { atMs: 484_000, requestsPerMinute: 60, tokensPerMinute: 60_000 },
    { atMs: 489_000, requestsPerMinute: 300, tokensPerMinute: 30_000 },
  ] as const;
  const endMs = 700_000;

  test.each(['requestsPerMinute', 'tokensPerMinute'] as const)(
    'no call is refused, and all of it is used: %s',
    (name) => {
      const random = seededRandom(seed);
      const declaredAt = (nowMs: number): number =>
        steps.reduce((limit, step) => (step.atMs <= nowMs ? step[name] : limit), Number.NaN);
      const served = rolling((nowMs) => Math.max(declaredAt(nowMs), declaredAt(nowMs - 20)), MINUTE_MS);
      const limiter = limiterOf({ [name]: declaredAt(0) });
      const records = runLane({
        limiter,
        server: fakeServer(name === 'requestsPerMinute' ? { requests: served } : { tokens: served }),
        random,
        workers: 64,
        untilMs: endMs,
        sendsAfterMs: () => 200 * random(),
        call: () => ({ promptTokens: 60, outputCap: 40, outputTokens: 40 }),
        happenings: steps.slice(1).map((step) => ({
          atMs: step.atMs,
          happen: () => limiter.setLimits(limits({ [name]: step[name] }), step.atMs),
        })),
      });
      expect(refusedBetween(records, 0, endMs)).toBe(0);
      const perCall = name === 'requestsPerMinute' ? 1 : 100;
      for (const [index, step] of steps.entries()) {
        const toMs = steps[index + 1]?.atMs ?? endMs;
        // From when the window holds nothing any more of the limit before.
        const fromMs = Math.max(0, step.atMs + MINUTE_MS + 500);
        if (fromMs + MINUTE_MS > toMs) continue;
        const sentAtMs = records
          .map((record) => record.sentAtMs)
          .filter((atMs) => atMs >= fromMs && atMs < toMs);
        expect(busiestMinute(sentAtMs) * perCall).toBe(step[name]);
      }
    },
  );
});

function busiestMinute(times: readonly number[]): number {
  return Math.max(
    ...times.map((toMs) => times.filter((atMs) => atMs > toMs - MINUTE_MS && atMs <= toMs).length),
  );
}
