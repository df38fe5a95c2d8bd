import { describe, expect, test } from 'vitest';
import { createLimiter, type Grant, type Limiter } from '../../src/limiter/limiter.js';
import { RollingWindow } from '../../src/limiter/rolling-window.js';

function limiterOf(options: Partial<Parameters<typeof createLimiter>[0]>): Limiter {
  return createLimiter({ requestsPerMinute: null, tokensPerMinute: null, random: () => 0.5, ...options });
}

/** Reserves and sends, or fails the test. */
function call(limiter: Limiter, tokens: number, nowMs: number): Grant {
  const reservation = limiter.reserve({ requests: 1, tokens }, nowMs);
  if (!reservation.granted) throw new Error(`not granted at ${nowMs}: ${JSON.stringify(reservation)}`);
  limiter.sent(reservation.grant, nowMs);
  return reservation.grant;
}

describe('requests per minute', () => {
  test('ten of ten start at once, the eleventh waits until the first has left the window', () => {
    const limiter = limiterOf({ requestsPerMinute: 10 });
    for (let started = 0; started < 10; started += 1) call(limiter, 1, 0);
    expect(limiter.reserve({ requests: 1, tokens: 1 }, 0)).toEqual({
      granted: false,
      impossible: false,
      waitMs: 60_250,
      blockedBy: 'requests',
    });
    expect(limiter.reserve({ requests: 1, tokens: 1 }, 60_250).granted).toBe(true);
  });

  test('a call counts from when it was sent, not from when it was let go', () => {
    const limiter = limiterOf({ requestsPerMinute: 1 });
    const reservation = limiter.reserve({ requests: 1, tokens: 1 }, 0);
    if (!reservation.granted) throw new Error('not granted');
    expect(limiter.reserve({ requests: 1, tokens: 1 }, 200_000).granted).toBe(false);
    limiter.sent(reservation.grant, 200_000);
    expect(limiter.reserve({ requests: 1, tokens: 1 }, 200_000)).toMatchObject({ waitMs: 60_250 });
  });

  test('a cancelled call gives its place back at once', () => {
    const limiter = limiterOf({ requestsPerMinute: 1 });
    const reservation = limiter.reserve({ requests: 1, tokens: 1 }, 0);
    if (!reservation.granted) throw new Error('not granted');
    limiter.cancel(reservation.grant, 5);
    expect(limiter.reserve({ requests: 1, tokens: 1 }, 5).granted).toBe(true);
  });

  test('a call that was sent and reached nobody gives back its place, its tokens and its request of the day', () => {
    const limiter = limiterOf({ requestsPerMinute: 2, tokensPerMinute: 100, requestsPerDay: 2 });
    call(limiter, 10, 0);
    limiter.cancel(call(limiter, 90, 0), 5);
    expect(limiter.snapshot(5)).toMatchObject({ requestsInWindow: 1, tokensInWindow: 10, requestsInDay: 1 });
    expect(limiter.reserve({ requests: 1, tokens: 90 }, 5).granted).toBe(true);
  });

  test('a clock that runs backwards frees nothing and breaks nothing', () => {
    const limiter = limiterOf({ requestsPerMinute: 1 });
    call(limiter, 1, 100_000);
    expect(limiter.reserve({ requests: 1, tokens: 1 }, 50_000)).toMatchObject({ waitMs: 60_250 });
    expect(limiter.reserve({ requests: 1, tokens: 1 }, 160_250).granted).toBe(true);
  });
});

describe('tokens per minute', () => {
  test('what was reserved and not used is free as soon as the usage is known', () => {
    const limiter = limiterOf({ tokensPerMinute: 1_000 });
    const grant = call(limiter, 900, 0);
    expect(limiter.reserve({ requests: 1, tokens: 200 }, 10)).toMatchObject({
      blockedBy: 'tokens',
      waitMs: 60_240,
    });
    limiter.commit(grant, 100, 20);
    expect(limiter.reserve({ requests: 1, tokens: 900 }, 20).granted).toBe(true);
  });

  test('a call that used more than reserved holds the others back', () => {
    const limiter = limiterOf({ tokensPerMinute: 1_000 });
    limiter.commit(call(limiter, 100, 0), 950, 10);
    expect(limiter.reserve({ requests: 1, tokens: 100 }, 10).granted).toBe(false);
  });

  test('unknown usage keeps the reservation, and a second answer for one call changes nothing', () => {
    const limiter = limiterOf({ tokensPerMinute: 1_000 });
    const grant = call(limiter, 900, 0);
    limiter.commit(grant, null, 10);
    limiter.commit(grant, 1, 20);
    limiter.cancel(grant, 30);
    expect(limiter.snapshot(30).tokensInWindow).toBe(900);
  });

  test('a call larger than the whole limit is impossible, with the figures; one as large as it goes alone', () => {
    const limiter = limiterOf({ tokensPerMinute: 1_000 });
    const refused = limiter.reserve({ requests: 1, tokens: 1_001 }, 0);
    expect(refused).toMatchObject({ granted: false, impossible: true });
    expect(JSON.stringify(refused)).toMatch(/1001 tokens.*1000 tokens per minute/);
    expect(limiter.reserve({ requests: 1, tokens: 1_000 }, 0).granted).toBe(true);
  });

  test('the wait names the limit that ends it', () => {
    const limiter = limiterOf({ requestsPerMinute: 2, tokensPerMinute: 1_000 });
    call(limiter, 1_000, 0);
    call(limiter, 0, 5_000);
    expect(limiter.reserve({ requests: 1, tokens: 1 }, 6_000)).toMatchObject({
      blockedBy: 'requests',
      waitMs: 54_250,
    });
    expect(limiter.reserve({ requests: 2, tokens: 1 }, 6_000)).toMatchObject({
      blockedBy: 'requests',
      waitMs: 59_250,
    });
  });
});

describe('a limiter in whole', () => {
  test('calls made before a restart still count, each as old as it is', () => {
    const limiter = limiterOf({ requestsPerMinute: 3, tokensPerMinute: 1_000 });
    limiter.seed(
      [
        { ageMs: 10_000, tokens: 300 },
        { ageMs: 50_000, tokens: 600 },
        { ageMs: 90_000, tokens: 999 },
      ],
      1_000_000,
    );
    expect(limiter.snapshot(1_000_000)).toMatchObject({
      ...{ requestsInWindow: 2, tokensInWindow: 900 },
      earlierInWindow: { requests: 2, tokens: 900 },
    });
    expect(limiter.reserve({ requests: 1, tokens: 200 }, 1_000_000)).toMatchObject({ waitMs: 10_250 });
    expect(limiter.reserve({ requests: 1, tokens: 200 }, 1_010_250).granted).toBe(true);
    expect(limiter.snapshot(1_100_000).earlierInWindow).toEqual({ requests: 0, tokens: 0 });
  });

  test('without limits everything is granted', () => {
    const limiter = limiterOf({});
    for (let started = 0; started < 1_000; started += 1) call(limiter, 1_000_000, 0);
    expect(limiter.snapshot(0)).toMatchObject({ requestsPerMinute: null, tokensPerMinute: null });
  });

  test('a window of 100,000 calls is used to the last one, minute after minute', () => {
    const limiter = limiterOf({ requestsPerMinute: 100_000, tokensPerMinute: 10_000_000 });
    const startedIn: number[] = [];
    for (let minute = 0; minute < 4; minute += 1) {
      let started = 0;
      for (let tick = 0; tick < 60_250; tick += 1) {
        const nowMs = minute * 60_250 + tick;
        for (let burst = 0; burst < 3; burst += 1) {
          const reservation = limiter.reserve({ requests: 1, tokens: 200 }, nowMs);
          if (!reservation.granted) break;
          limiter.sent(reservation.grant, nowMs);
          limiter.commit(reservation.grant, 100, nowMs);
          started += 1;
        }
      }
      startedIn.push(started);
    }
    expect(startedIn).toEqual([99_999, 99_999, 99_999, 99_999]);
  });

  test.each([null, 200_000])(
    'keeps the same memory at 2,800 calls a second (limit %s)',
    (requestsPerMinute) => {
      const window = new RollingWindow(60_250);
      const limiter = limiterOf({ requestsPerMinute });
      for (let calls = 0; calls < 5 * 60 * 2_800; calls += 1) {
        const nowMs = calls / 2.8;
        window.advance(nowMs);
        window.send(window.reserve({ requests: 1, tokens: 1, tokensHeld: 1, tokensAtCap: 1 }), nowMs);
        if (calls % 100 === 0) limiter.commit(call(limiter, 1, nowMs), 1, nowMs + 0.1);
        if (calls % 10_000 === 0) expect(window.grains).toBeLessThanOrEqual(2 * 4_096 + 1);
      }
      expect(window.sums.requests).toBeGreaterThanOrEqual(60_000 * 2.8);
      expect(window.sums.requests).toBeLessThan(60_300 * 2.8);
    },
  );

  test('calls that share a grain leave with the latest of them, so that no minute holds more than the limit', () => {
    const limiter = limiterOf({ requestsPerMinute: 10_000, marginMs: 0 });
    const sentAtMs: number[] = [];
    for (let nowMs = 0; nowMs < 150_000; nowMs += 1) {
      for (let burst = 0; burst < 2; burst += 1) {
        const reservation = limiter.reserve({ requests: 1, tokens: 1 }, nowMs);
        if (!reservation.granted) break;
        limiter.sent(reservation.grant, nowMs);
        sentAtMs.push(nowMs);
      }
    }
    for (const [index, atMs] of sentAtMs.entries()) {
      const before = sentAtMs[index - 10_000];
      if (before !== undefined) expect(atMs - before).toBeGreaterThanOrEqual(60_000);
    }
    expect(sentAtMs.length).toBeGreaterThan(0.99 * 30_000);
  });

  test('limits that are not positive numbers are refused by name', () => {
    expect(() => limiterOf({ requestsPerMinute: 0 })).toThrow(/requestsPerMinute.*got 0/);
    expect(() => limiterOf({ tokensPerMinute: Number.NaN })).toThrow(/tokensPerMinute.*got NaN/);
  });

  test('token counts that are not numbers do not poison the sums', () => {
    const limiter = limiterOf({ tokensPerMinute: 1_000 });
    limiter.commit(call(limiter, 10.2, 0), Number.NaN, 1);
    limiter.commit(call(limiter, Number.NaN, 0), -5, 1);
    expect(limiter.snapshot(1).tokensInWindow).toBe(11);
  });
});
