import { describe, expect, test } from 'vitest';
import { createLimiter, type Grant, type Limiter } from '../../src/limiter/limiter.js';
import {
  acceptedBetween,
  type CallRecord,
  type FakeServer,
  refusedBetween,
  runLane,
  seededRandom,
} from './simulated-lane.js';

const SMALL = { requests: 1, tokens: 1 };

function lane(requestsPerMinute: number | null = null, random = (): number => 0.5): Limiter {
  return createLimiter({ requestsPerMinute, tokensPerMinute: null, random });
}

function call(limiter: Limiter, nowMs: number): Grant {
  const reservation = limiter.reserve(SMALL, nowMs);
  if (!reservation.granted) throw new Error(`not granted at ${nowMs}: ${JSON.stringify(reservation)}`);
  limiter.sent(reservation.grant, nowMs);
  return reservation.grant;
}

/** How long the lane stays shut after one refusal with this Retry-After. */
function pauseAfter(retryAfterMs: number | null, random = (): number => 0.5): number {
  const limiter = lane(null, random);
  limiter.throttled(retryAfterMs, 1_000);
  return limiter.snapshot(1_000).pausedForMs;
}

describe('the pause after a refusal', () => {
  test('lasts as long as the server asks, to the millisecond', () => {
    const limiter = lane();
    limiter.throttled(5_000, 1_000);
    expect(limiter.reserve(SMALL, 1_000)).toMatchObject({
      granted: false,
      waitMs: 5_000,
      blockedBy: 'pause',
    });
    expect(limiter.reserve(SMALL, 5_999).granted).toBe(false);
    expect(limiter.reserve(SMALL, 6_000).granted).toBe(true);
  });

  test.each([null, Number.NaN, -3, 0, Number.POSITIVE_INFINITY])(
    'is about a second of our own when the server says %s',
    (asked) => {
      for (const chance of [0, 0.5, 0.999]) {
        expect(pauseAfter(asked, () => chance)).toBeGreaterThanOrEqual(1_000);
        expect(pauseAfter(asked, () => chance)).toBeLessThanOrEqual(1_250);
      }
    },
  );

  test('is at most a quarter of an hour when the server asks for years', () => {
    expect(pauseAfter(3.15e11)).toBe(900_000);
  });

  test('grows while refusals go on, to a minute and no more', () => {
    const limiter = lane();
    const pauses: number[] = [];
    let nowMs = 0;
    for (let refusal = 0; refusal < 60; refusal += 1) {
      const probe = call(limiter, nowMs);
      nowMs += 50;
      limiter.throttled(null, nowMs, probe);
      const pauseMs = limiter.snapshot(nowMs).pausedForMs;
      pauses.push(Math.round(pauseMs));
      nowMs += pauseMs;
    }
    expect(pauses.slice(0, 3)).toEqual([1_125, 2_250, 3_375]);
    expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
    expect(pauses.at(-1)).toBe(67_500);
  });

  test('counts one burst of refusals once, and keeps the latest end any of them names', () => {
    const limiter = lane();
    const burst = Array.from({ length: 20 }, () => call(limiter, 0));
    for (const grant of burst) limiter.throttled(null, 100, grant);
    expect(limiter.snapshot(100).pausedForMs).toBe(1_125);
    limiter.throttled(4_000, 200, burst[0]);
    limiter.throttled(2_000, 300, burst[1]);
    expect(limiter.snapshot(300).pausedForMs).toBe(3_900);
  });

  test('counts a burst once as well when nobody says which calls were refused', () => {
    const limiter = lane();
    for (let refusal = 0; refusal < 20; refusal += 1) limiter.throttled(null, 100 + refusal);
    expect(limiter.snapshot(119).pausedForMs).toBe(1_106);
  });

  test('is short again once the lane was at full speed', () => {
    const limiter = lane();
    let nowMs = 0;
    for (let refusal = 0; refusal < 3; refusal += 1) {
      limiter.throttled(null, nowMs, call(limiter, nowMs));
      nowMs += limiter.snapshot(nowMs).pausedForMs;
    }
    for (; nowMs < 60_000; nowMs += 100) {
      const reservation = limiter.reserve(SMALL, nowMs);
      if (!reservation.granted) continue;
      limiter.sent(reservation.grant, nowMs);
      limiter.succeeded(nowMs + 50, reservation.grant);
    }
    const burst = Array.from({ length: 40 }, () => call(limiter, nowMs));
    for (const grant of burst) limiter.throttled(null, nowMs, grant);
    expect(limiter.snapshot(nowMs).pausedForMs).toBe(1_125);
  });

  test('is what the server asks at first, and our own when it asks again and again for less', () => {
    const limiter = lane();
    let nowMs = 0;
    const pauses: number[] = [];
    for (let refusal = 0; refusal < 4; refusal += 1) {
      limiter.throttled(50, nowMs, call(limiter, nowMs));
      pauses.push(limiter.snapshot(nowMs).pausedForMs);
      nowMs += limiter.snapshot(nowMs).pausedForMs;
    }
    expect(pauses).toEqual([50, 2_250, 3_375, 3_375]);
  });

  test('is not begun anew by a refusal of before that arrives after it', () => {
    const limiter = lane();
    const [first, late] = [call(limiter, 0), call(limiter, 0)];
    limiter.throttled(null, 100, first);
    const probe = call(limiter, 2_000);
    limiter.throttled(null, 2_050, late);
    expect(limiter.snapshot(2_050).pausedForMs).toBe(0);
    limiter.throttled(null, 2_100, probe);
    expect(limiter.snapshot(2_100).pausedForMs).toBe(2_250);
  });
});

describe('the start after a pause', () => {
  test('is one call alone, until it succeeds', () => {
    const limiter = lane();
    limiter.throttled(1_000, 0, call(limiter, -100));
    const probe = call(limiter, 1_000);
    expect(limiter.reserve(SMALL, 1_000)).toMatchObject({ granted: false, blockedBy: 'pause' });
    limiter.succeeded(1_300, probe);
    expect(limiter.reserve(SMALL, 1_300).granted).toBe(false);
    expect(limiter.reserve(SMALL, 1_500).granted).toBe(true);
  });

  test('takes no success of a call sent before the pause for its own', () => {
    const limiter = lane();
    const [refused, accepted] = [call(limiter, 0), call(limiter, 0)];
    limiter.throttled(1_000, 100, refused);
    call(limiter, 1_100);
    limiter.succeeded(1_200, accepted);
    expect(limiter.reserve(SMALL, 1_700).granted).toBe(false);
  });

  test('lets another call try when the probe was never sent', () => {
    const limiter = lane();
    limiter.throttled(1_000, 0);
    const reservation = limiter.reserve(SMALL, 1_000);
    if (!reservation.granted) throw new Error('not granted');
    limiter.cancel(reservation.grant, 1_001);
    expect(limiter.reserve(SMALL, 1_001).granted).toBe(true);
  });

  test('does not wait minutes for a slow answer: a probe that is not refused in time was let in', () => {
    const limiter = lane();
    limiter.throttled(1_000, 200, call(limiter, 0));
    call(limiter, 1_200);
    expect(limiter.reserve(SMALL, 2_199).granted).toBe(false);
    expect(limiter.reserve(SMALL, 2_200).granted).toBe(true);
  });
});

/** Accepts everything but between two moments. */
function outage(fromMs: number, toMs: number, retryAfterMs?: number): FakeServer {
  return {
    arrive: (_call, nowMs) => {
      if (nowMs < fromMs || nowMs >= toMs) return { accepted: true };
      return { accepted: false, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
    },
  };
}

describe('30 workers', () => {
  test('told to wait five seconds come back neither before that nor in one instant', () => {
    const random = seededRandom(1);
    const server: FakeServer = {
      arrive: (_call, nowMs) =>
        nowMs < 1_000 ? { accepted: false, retryAfterMs: 5_000 } : { accepted: true },
    };
    const records = runLane({
      limiter: lane(600, random),
      server,
      random,
      workers: 30,
      untilMs: 30_000,
      answerMs: () => 100,
    });
    const refusedAtMs = Math.max(
      ...records.filter((record) => !record.accepted).map((record) => record.arrivedAtMs),
    );
    const back = records.filter((record) => record.sentAtMs > 1_000).map((record) => record.sentAtMs);
    expect(records.filter((record) => !record.accepted)).toHaveLength(30);
    expect(back[0]).toBeGreaterThanOrEqual(refusedAtMs + 5_000);
    const gapsMs = back.slice(1, 30).map((atMs, index) => atMs - (back[index] ?? 0));
    expect(Math.min(...gapsMs)).toBeGreaterThan(25);
  });

  test.each([1, 2, 3, 4, 5])(
    'in a storm of 30 s ask every few seconds and are at full speed 10 s after it (seed %i)',
    (seed) => {
      const random = seededRandom(seed);
      const records = runLane({
        limiter: lane(null, random),
        server: outage(60_000, 90_000),
        random,
        workers: 30,
        untilMs: 120_000,
        answerMs: () => 200 + 200 * random(),
      });
      const fullSpeed = acceptedBetween(records, 40_000, 60_000) / 20;
      const probes = records.filter((record) => record.sentAtMs > 61_000 && record.arrivedAtMs < 90_000);
      expect(probes.length).toBeGreaterThan(5);
      expect(probes.length).toBeLessThanOrEqual(12);
      expect(
        mostWithin(
          probes.map((record) => record.sentAtMs),
          2_000,
        ),
      ).toBe(1);
      expect(acceptedBetween(records, 100_000, 120_000) / 20).toBeGreaterThan(0.97 * fullSpeed);
      expect(refusedBetween(records, 90_000, 120_000)).toBe(0);
    },
  );

  test('answered by a slow server are at full speed again within 10 s too', () => {
    const random = seededRandom(9);
    const records: CallRecord[] = runLane({
      limiter: lane(null, random),
      server: outage(60_000, 61_000),
      random,
      workers: 300,
      untilMs: 180_000,
      answerMs: () => 20_000 + 20_000 * random(),
    });
    const sentAfterMs = records.map((record) => record.sentAtMs).filter((atMs) => atMs > 61_000);
    expect(sentAfterMs.filter((atMs) => atMs >= 70_000 && atMs < 80_000).length).toBeGreaterThan(75);
  });
});

describe('a server that does not answer', () => {
  function down(): { readonly limiter: Limiter; readonly open: readonly Grant[] } {
    const limiter = lane();
    const open = Array.from({ length: 5 }, () => call(limiter, 0));
    limiter.throttled(null, 1_000, open[0], 'unreachable');
    return { limiter, open };
  }

  test('pauses the lane at once, and the snapshot tells why, since when and until when', () => {
    const { limiter } = down();
    expect(limiter.snapshot(1_000)).toMatchObject({
      pause: { reason: 'unreachable', sinceMs: 1_000, untilMs: 2_125 },
      pausedForMs: 1_125,
    });
    expect(limiter.reserve(SMALL, 2_124)).toMatchObject({ granted: false, waitMs: 1, blockedBy: 'pause' });
  });

  test('is no news from calls that were sent before the pause', () => {
    const { limiter, open } = down();
    for (const grant of open) limiter.throttled(null, 1_500, grant, 'unreachable');
    expect(limiter.snapshot(1_500).pause).toMatchObject({ sinceMs: 1_000, untilMs: 2_125 });
  });

  test('gets one call at a time, however long that takes, after waits that grow to a minute', () => {
    const { limiter } = down();
    const waits: number[] = [];
    for (let probes = 0; probes < 60; probes += 1) {
      const atMs = limiter.snapshot(0).pause?.untilMs ?? 0;
      const probe = call(limiter, atMs);
      expect(limiter.reserve(SMALL, atMs + 20_000)).toMatchObject({ granted: false, blockedBy: 'pause' });
      limiter.cancel(probe, atMs + 20_000);
      limiter.throttled(null, atMs + 20_000, probe, 'unreachable');
      const pause = limiter.snapshot(atMs + 20_000).pause;
      expect(pause?.sinceMs).toBe(1_000);
      waits.push((pause?.untilMs ?? 0) - atMs - 20_000);
    }
    expect(waits[0]).toBeLessThan(4_000);
    expect(waits).toEqual([...waits].sort((a, b) => a - b));
    expect(waits.at(-1)).toBe(67_500);
  });

  test.each([8_000, 30_000])('for %i ms is at full speed within 10 s of its healing', (lengthMs) => {
    const random = seededRandom(4);
    const [fromMs, toMs] = [60_000, 60_000 + lengthMs];
    const records = runLane({
      limiter: lane(null, random),
      server: {
        arrive: (_call, nowMs) => {
          if (nowMs < fromMs || nowMs >= toMs) return { accepted: true };
          return { accepted: false, reason: 'unreachable' };
        },
      },
      random,
      workers: 30,
      untilMs: toMs + 40_000,
      answerMs: () => 200 + 200 * random(),
    });
    const before = acceptedBetween(records, 30_000, 60_000) / 30;
    expect(acceptedBetween(records, toMs + 10_000, toMs + 40_000) / 30).toBeGreaterThan(0.97 * before);
    expect(refusedBetween(records, fromMs, toMs)).toBeLessThan(30 + 15);
  });

  test('and answers in another way than asked for may be asked again at once', () => {
    const { limiter } = down();
    const probe = call(limiter, 2_125);
    limiter.commit(probe, null, 2_200);
    expect(limiter.reserve(SMALL, 2_200).granted).toBe(true);
  });
});

function mostWithin(momentsMs: readonly number[], spanMs: number): number {
  return Math.max(
    ...momentsMs.map(
      (startMs) => momentsMs.filter((atMs) => atMs >= startMs && atMs < startMs + spanMs).length,
    ),
  );
}
