/** What the server's headers teach, and requests per day. */
import { describe, expect, test } from 'vitest';
import { createLimiter, type Grant, type Limiter } from '../../src/limiter/limiter.js';
import { fakeServer, rolling } from './fake-servers.js';
import { runLane, seededRandom } from './simulated-lane.js';

const SMALL = { requests: 1, tokens: 1 };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function limiterOf(options: Partial<Parameters<typeof createLimiter>[0]>): Limiter {
  return createLimiter({ requestsPerMinute: null, tokensPerMinute: null, random: () => 0.5, ...options });
}

function call(limiter: Limiter, nowMs: number, tokens = 1): Grant {
  const reservation = limiter.reserve({ requests: 1, tokens }, nowMs);
  if (!reservation.granted) throw new Error(`not granted at ${nowMs}: ${JSON.stringify(reservation)}`);
  limiter.sent(reservation.grant, nowMs);
  return reservation.grant;
}

function callsUntilBlocked(limiter: Limiter, nowMs: number): number {
  for (let calls = 0; ; calls += 1) {
    const reservation = limiter.reserve(SMALL, nowMs);
    if (!reservation.granted) return calls;
    limiter.sent(reservation.grant, nowMs);
  }
}

describe('limits in the headers', () => {
  test('are learnt where the user declares none, and count what was sent before', () => {
    const limiter = limiterOf({});
    const first = call(limiter, 0);
    limiter.observe({ requests: { limit: 5 }, tokens: { limit: 1_000 } }, 100, first);
    expect(limiter.snapshot(100)).toMatchObject({
      requestsPerMinute: 5,
      tokensPerMinute: 1_000,
      learnt: { requestsPerMinute: 5, tokensPerMinute: 1_000, requestsPerDay: null },
    });
    expect(callsUntilBlocked(limiter, 100)).toBe(4);
  });

  test.each([
    [10, 5, 5],
    [5, 10, 5],
  ])('beside a declared %i a told %i leaves %i', (declared, told, inForce) => {
    const limiter = limiterOf({ requestsPerMinute: declared });
    limiter.observe({ requests: { limit: told } }, 0);
    expect(callsUntilBlocked(limiter, 0)).toBe(inForce);
  });

  test('that are raised are followed', () => {
    const limiter = limiterOf({});
    limiter.observe({ requests: { limit: 2 } }, 0);
    expect(callsUntilBlocked(limiter, 0)).toBe(2);
    limiter.observe({ requests: { limit: 6 } }, 10);
    expect(callsUntilBlocked(limiter, 10)).toBe(4);
  });

  test.each([0, -5, Number.NaN, Number.POSITIVE_INFINITY])('of %s teach nothing', (limit) => {
    const limiter = limiterOf({});
    limiter.observe({ requests: { limit }, tokens: { limit } }, 0);
    expect(limiter.snapshot(0)).toMatchObject({ requestsPerMinute: null, tokensPerMinute: null });
  });

  test('by the second are taken as a minute in which calls are spread', () => {
    const limiter = limiterOf({});
    limiter.observe({ requests: { limit: 10, windowMs: 1_000 } }, 0);
    expect(limiter.snapshot(0).requestsPerMinute).toBe(600);
    call(limiter, 0);
    const next = limiter.reserve(SMALL, 0);
    expect(next).toMatchObject({ granted: false, blockedBy: 'requests' });
    expect(next.granted || next.impossible ? 0 : next.waitMs).toBeGreaterThan(80);
  });

  test('never make a call impossible: one larger than such a limit goes alone', () => {
    const limiter = limiterOf({});
    limiter.observe({ tokens: { limit: 100 } }, 0);
    const large = call(limiter, 0, 500);
    expect(limiter.reserve({ requests: 1, tokens: 1 }, 1)).toMatchObject({
      granted: false,
      impossible: false,
    });
    limiter.commit(large, 50, 10);
    expect(limiter.reserve({ requests: 1, tokens: 500 }, 10)).toMatchObject({
      granted: false,
      waitMs: 60_240,
    });
    expect(limiter.reserve({ requests: 1, tokens: 50 }, 10).granted).toBe(true);
  });
});

describe('others on the same key', () => {
  test('are noticed when less is left than our own calls explain, and fade until the quota is full again', () => {
    const limiter = limiterOf({ requestsPerMinute: 100 });
    const grant = call(limiter, 0);
    limiter.observe({ requests: { limit: 100, remaining: 39, resetMs: 60_000 } }, 200, grant);
    expect(limiter.snapshot(200).othersRequests).toBe(60);
    expect(callsUntilBlocked(limiter, 200)).toBe(39);
    const blocked = limiter.reserve(SMALL, 200);
    expect(blocked).toMatchObject({ granted: false, waitMs: 1_000, blockedBy: 'requests' });
    expect(limiter.reserve(SMALL, 1_199).granted).toBe(false);
    expect(limiter.reserve(SMALL, 1_200).granted).toBe(true);
    expect(limiter.snapshot(90_000).othersRequests).toBe(0);
    expect(callsUntilBlocked(limiter, 90_000)).toBe(99);
  });

  test('are forgotten as soon as the server counts our calls alone', () => {
    const limiter = limiterOf({ requestsPerMinute: 100 });
    const [first, second] = [call(limiter, 0), call(limiter, 500)];
    limiter.observe({ requests: { limit: 100, remaining: 39 } }, 600, first);
    limiter.observe({ requests: { limit: 100, remaining: 98 } }, 900, second);
    expect(limiter.snapshot(900).othersRequests).toBe(0);
  });

  test('are not imagined because our own calls overtook each other or are still on their way', () => {
    const limiter = limiterOf({ requestsPerMinute: 100 });
    const grants = Array.from({ length: 50 }, (_, index) => call(limiter, Math.floor(index / 10)));
    limiter.observe({ requests: { limit: 100, remaining: 50 } }, 20_000, grants[0]);
    expect(limiter.snapshot(20_000).othersRequests).toBe(0);
  });

  test('are not inferred from an answer that took longer than the window', () => {
    const limiter = limiterOf({ requestsPerMinute: 100 });
    const grants = Array.from({ length: 50 }, () => call(limiter, 0));
    limiter.observe({ requests: { limit: 100, remaining: 50 } }, 61_000, grants[0]);
    expect(limiter.snapshot(61_000).othersRequests).toBe(0);
  });

  test('are not imagined because calls left the window while the answer was on its way', () => {
    const limiter = limiterOf({ requestsPerMinute: 100 });
    for (let calls = 0; calls < 60; calls += 1) call(limiter, 0);
    const slow = call(limiter, 50_000);
    limiter.observe({ requests: { limit: 100, remaining: 39 } }, 80_000, slow);
    expect(limiter.snapshot(80_000).othersRequests).toBe(0);
  });

  test('who take half cause us hardly any refusals: our calls keep to the other half', () => {
    const random = seededRandom(1);
    const tokens = rolling(60_000, 60_000);
    const server = fakeServer({ tokens, tellsTokens: 60_000 });
    let secondsOfOthers = 0;
    const records = runLane({
      limiter: limiterOf({ tokensPerMinute: 60_000 }),
      server: {
        arrive: (arriving, nowMs) => {
          for (; secondsOfOthers < nowMs / 1_000; secondsOfOthers += 1) {
            if (tokens.admits(500, nowMs)) tokens.charge(500, nowMs);
          }
          return server.arrive(arriving, nowMs);
        },
      },
      random,
      workers: 16,
      untilMs: 300_000,
      call: () => ({ promptTokens: 60, outputCap: 40, outputTokens: 40 }),
      answerMs: () => 300 + 400 * random(),
    });
    const late = records.filter((record) => record.sentAtMs > 120_000);
    expect(late.filter((record) => !record.accepted).length / late.length).toBeLessThan(0.035);
    expect(late.filter((record) => record.accepted).length).toBeGreaterThan(0.7 * 300 * 3);
  });
});

describe('requests per day', () => {
  test('block until the first of them is a day old', () => {
    const limiter = limiterOf({ requestsPerDay: 3 });
    for (const atMs of [0, HOUR_MS, 2 * HOUR_MS]) call(limiter, atMs);
    const blocked = limiter.reserve(SMALL, 3 * HOUR_MS);
    expect(blocked).toEqual({
      granted: false,
      impossible: false,
      waitMs: 21 * HOUR_MS,
      blockedBy: 'requests_per_day',
    });
    expect(limiter.reserve(SMALL, DAY_MS - 1).granted).toBe(false);
    expect(limiter.reserve(SMALL, DAY_MS).granted).toBe(true);
  });

  test('count a minute of calls as one, never let more than the limit into any day', () => {
    const limiter = limiterOf({ requestsPerDay: 1_000 });
    const random = seededRandom(2);
    const sentAtMs: number[] = [];
    let nowMs = 0;
    while (nowMs < 5 * DAY_MS) {
      const reservation = limiter.reserve(SMALL, nowMs);
      if (reservation.granted) {
        limiter.sent(reservation.grant, nowMs);
        sentAtMs.push(nowMs);
        nowMs += Math.floor(random() * 60_000);
      } else if (!reservation.impossible) nowMs += reservation.waitMs;
    }
    for (const [index, atMs] of sentAtMs.entries()) {
      const thousandBefore = sentAtMs[index - 1_000];
      if (thousandBefore !== undefined) expect(atMs - thousandBefore).toBeGreaterThanOrEqual(DAY_MS);
    }
    expect(sentAtMs.length).toBeGreaterThanOrEqual(4_990);
  });

  test('give back what was never sent', () => {
    const limiter = limiterOf({ requestsPerDay: 1 });
    const reservation = limiter.reserve(SMALL, 0);
    if (!reservation.granted) throw new Error('not granted');
    expect(limiter.reserve(SMALL, 0).granted).toBe(false);
    limiter.cancel(reservation.grant, 0);
    expect(limiter.reserve(SMALL, 0).granted).toBe(true);
  });

  test('are learnt from the headers, with what others used of the day', () => {
    const limiter = limiterOf({});
    const grant = call(limiter, 0);
    limiter.observe({ requestsPerDay: { limit: 1_000, remaining: 499, resetMs: 12 * HOUR_MS } }, 100, grant);
    expect(limiter.snapshot(100)).toMatchObject({ requestsPerDay: 1_000, learnt: { requestsPerDay: 1_000 } });
    expect(callsUntilBlocked(limiter, 100)).toBe(499);
    expect(limiter.reserve(SMALL, 100)).toMatchObject({ blockedBy: 'requests_per_day' });
  });

  test('of an earlier process count, also when they come as sums', () => {
    const limiter = limiterOf({ requestsPerDay: 100, requestsPerMinute: 50 });
    limiter.seed(
      [
        { ageMs: 30_000, tokens: 10, requests: 20 },
        { ageMs: 23 * HOUR_MS, tokens: 10, requests: 60 },
        { ageMs: 25 * HOUR_MS, tokens: 10, requests: 40 },
      ],
      1_000_000_000,
    );
    expect(limiter.snapshot(1_000_000_000)).toMatchObject({ requestsInDay: 80, requestsInWindow: 20 });
    expect(callsUntilBlocked(limiter, 1_000_000_000)).toBe(20);
  });
});
