/** Servers that refuse inside the declared minute; the limiter has to find a pace from the refusals alone. */
import { describe, expect, test } from 'vitest';
import { createLimiter } from '../../src/limiter/limiter.js';
import { bucket, type FakeServerOptions, fakeServer, fixedSpans, rolling } from './fake-servers.js';
import { acceptedBetween, type CallRecord, refusedBetween, runLane, seededRandom } from './simulated-lane.js';

const MINUTE_MS = 60_000;

interface Outcome {
  readonly records: readonly CallRecord[];
  /** After the first minute, of what the server allows. */
  readonly quotaUsed: number;
  /** After the first minute, of all calls. */
  readonly refused: number;
}

function run(
  server: FakeServerOptions,
  settings: {
    readonly allowedPerMinute: number;
    readonly requestsPerMinute: number | null;
    readonly seed?: number;
    readonly minutes?: number;
    readonly fromMinute?: number;
    readonly workers?: number;
  },
): Outcome {
  const random = seededRandom(settings.seed ?? 1);
  const untilMs = (settings.minutes ?? 6) * MINUTE_MS;
  const fromMs = (settings.fromMinute ?? 1) * MINUTE_MS;
  const records = runLane({
    limiter: createLimiter({ requestsPerMinute: settings.requestsPerMinute, tokensPerMinute: null, random }),
    server: fakeServer(server),
    random,
    workers: settings.workers ?? 64,
    untilMs,
  });
  const accepted = acceptedBetween(records, fromMs, untilMs);
  const refused = refusedBetween(records, fromMs, untilMs);
  return {
    records,
    quotaUsed: accepted / ((settings.allowedPerMinute * (untilMs - fromMs)) / MINUTE_MS),
    refused: refused / (accepted + refused),
  };
}

const shorterWindows: readonly (readonly [string, () => FakeServerOptions])[] = [
  ['10 in any second', () => ({ requests: rolling(10, 1_000) })],
  ['10 in any second, refused calls counted', () => ({ requests: rolling(10, 1_000), countsRefused: true })],
  ['10 in each second of the clock', () => ({ requests: fixedSpans(10, 1_000) })],
  ['10 in any second, with Retry-After: 1', () => ({ requests: rolling(10, 1_000), retryAfterMs: 1_000 })],
  ['100 in any ten seconds', () => ({ requests: rolling(100, 10_000) })],
  ['a bucket of ten that refills ten a second', () => ({ requests: bucket(10, 10) })],
  ['a bucket of hardly more than one call', () => ({ requests: bucket(1.5, 10) })],
];

describe('600 a minute, declared, enforced as', () => {
  describe.each(shorterWindows)('%s', (_name, server) => {
    test.each([1, 2])(
      'is used to 94 percent with at most one and a half refused after the first minute (seed %i)',
      (seed) => {
        const outcome = run(server(), { allowedPerMinute: 600, requestsPerMinute: 600, seed });
        expect(outcome.quotaUsed).toBeGreaterThanOrEqual(0.94);
        expect(outcome.refused).toBeLessThanOrEqual(0.015);
      },
    );
  });

  test('600 in any minute is never spread and never refused', () => {
    const outcome = run(
      { requests: rolling(600, MINUTE_MS) },
      { allowedPerMinute: 600, requestsPerMinute: 600 },
    );
    expect(refusedBetween(outcome.records, 0, 6 * MINUTE_MS)).toBe(0);
    expect(acceptedBetween(outcome.records, 0, 1_000)).toBeGreaterThan(50);
    expect(outcome.quotaUsed).toBeGreaterThan(0.99);
  });

  test('half as many as declared is found within three minutes', () => {
    const outcome = run(
      { requests: rolling(300, MINUTE_MS) },
      { allowedPerMinute: 300, requestsPerMinute: 600, minutes: 8, fromMinute: 3 },
    );
    expect(outcome.quotaUsed).toBeGreaterThanOrEqual(0.95);
    expect(outcome.refused).toBeLessThanOrEqual(0.02);
  });
});

describe('600 a minute of which nobody says anything, enforced as', () => {
  describe.each(shorterWindows)('%s', (_name, server) => {
    test('is found within four minutes', () => {
      const outcome = run(server(), {
        allowedPerMinute: 600,
        requestsPerMinute: null,
        minutes: 10,
        fromMinute: 4,
      });
      expect(outcome.quotaUsed).toBeGreaterThanOrEqual(0.92);
      expect(outcome.refused).toBeLessThanOrEqual(0.025);
    });
  });
});

test('a server that lets in half as many by the second is found within four minutes', () => {
  const outcome = run(
    { requests: rolling(5, 1_000) },
    { allowedPerMinute: 300, requestsPerMinute: 600, minutes: 9, fromMinute: 4 },
  );
  expect(outcome.quotaUsed).toBeGreaterThanOrEqual(0.85);
  expect(outcome.refused).toBeLessThanOrEqual(0.02);
});

test('where the headers tell the minute and the server enforces the second, both are learnt', () => {
  const outcome = run(
    { requests: rolling(10, 1_000), tellsRequests: 600 },
    { allowedPerMinute: 600, requestsPerMinute: null },
  );
  expect(outcome.quotaUsed).toBeGreaterThanOrEqual(0.95);
  expect(outcome.refused).toBeLessThanOrEqual(0.01);
});

test('nothing oscillates: attempts to go without spreading become rarer while they fail', () => {
  const outcome = run(
    { requests: rolling(10, 1_000) },
    { allowedPerMinute: 600, requestsPerMinute: 600, minutes: 60 },
  );
  const refusedInMinute = Array.from({ length: 60 }, (_, minute) =>
    refusedBetween(outcome.records, minute * MINUTE_MS, (minute + 1) * MINUTE_MS),
  );
  const attempts = refusedInMinute.flatMap((refused, minute) => (minute > 0 && refused > 0 ? [minute] : []));
  expect(attempts.length).toBeGreaterThanOrEqual(2);
  expect(attempts.length).toBeLessThanOrEqual(7);
  const pauses = attempts.slice(1).map((minute, index) => minute - (attempts[index] ?? 0));
  expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
  expect(outcome.quotaUsed).toBeGreaterThan(0.97);
});

test('a trial of bursts costs a fast lane a handful of calls, not a second of refusals', () => {
  const outcome = run(
    { requests: rolling(100, 1_000) },
    { allowedPerMinute: 6_000, requestsPerMinute: 6_000, minutes: 8, workers: 300 },
  );
  const refused = refusedBetween(outcome.records, MINUTE_MS, 8 * MINUTE_MS);
  expect(refused).toBeGreaterThan(0);
  expect(refused).toBeLessThan(100);
  expect(outcome.quotaUsed).toBeGreaterThan(0.93);
});

test('a lane refused for a moment goes without spreading again when no burst on trial is refused', () => {
  const random = seededRandom(6);
  const limiter = createLimiter({ requestsPerMinute: 600, tokensPerMinute: null, random });
  const rule = rolling(600, MINUTE_MS);
  const records = runLane({
    limiter,
    server: {
      arrive: (_call, nowMs) => {
        const accepted = (nowMs < 10_000 || nowMs > 11_000) && rule.admits(1, nowMs);
        if (accepted) rule.charge(1, nowMs);
        return { accepted };
      },
    },
    random,
    workers: 8,
    untilMs: 8 * MINUTE_MS,
    answerMs: () => 300 + 400 * random(),
  });
  expect(limiter.snapshot(8 * MINUTE_MS).pace).toBeNull();
  expect(refusedBetween(records, 12_000, 8 * MINUTE_MS)).toBe(0);
});

test('a server that begins to allow more is followed', () => {
  const random = seededRandom(5);
  const [before, after] = [rolling(5, 1_000), rolling(10, 1_000)];
  const records = runLane({
    limiter: createLimiter({ requestsPerMinute: 600, tokensPerMinute: null, random }),
    server: {
      arrive: (_call, nowMs) => {
        const rule = nowMs < 4 * MINUTE_MS ? before : after;
        const accepted = rule.admits(1, nowMs);
        if (accepted) rule.charge(1, nowMs);
        return { accepted };
      },
    },
    random,
    workers: 64,
    untilMs: 20 * MINUTE_MS,
  });
  expect(acceptedBetween(records, 16 * MINUTE_MS, 20 * MINUTE_MS) / 4).toBeGreaterThan(565);
});

describe.each(['slow_down', 'overload'] as const)('a server that says %s', (reason) => {
  test('is given less until it copes, and nearly all it can take after that', () => {
    const random = seededRandom(3);
    const capacity = bucket(10, 10);
    const records = runLane({
      limiter: createLimiter({ requestsPerMinute: 1_200, tokensPerMinute: null, random }),
      server: {
        arrive: (_call, nowMs) => {
          const accepted = capacity.admits(1, nowMs);
          if (accepted) capacity.charge(1, nowMs);
          return { accepted, reason };
        },
      },
      random,
      workers: 64,
      untilMs: 10 * MINUTE_MS,
    });
    const accepted = acceptedBetween(records, MINUTE_MS, 10 * MINUTE_MS);
    const refused = refusedBetween(records, MINUTE_MS, 10 * MINUTE_MS);
    expect(refused / (accepted + refused)).toBeLessThanOrEqual(0.025);
    expect(accepted / (9 * 600)).toBeGreaterThan(0.8);
  });

  test('for half a minute is at full speed again within a minute', () => {
    const random = seededRandom(4);
    const records = runLane({
      limiter: createLimiter({ requestsPerMinute: 600, tokensPerMinute: null, random }),
      server: {
        arrive: (_call, nowMs) => ({ accepted: nowMs < 2 * MINUTE_MS || nowMs >= 2.5 * MINUTE_MS, reason }),
      },
      random,
      workers: 64,
      untilMs: 6 * MINUTE_MS,
    });
    expect(refusedBetween(records, 2.1 * MINUTE_MS, 2.5 * MINUTE_MS)).toBeLessThan(45);
    expect(acceptedBetween(records, 4 * MINUTE_MS, 6 * MINUTE_MS) / 2).toBeGreaterThan(570);
  });
});

test('a server overloaded for an hour is still asked about once a minute', () => {
  const random = seededRandom(8);
  const records = runLane({
    limiter: createLimiter({ requestsPerMinute: 60, tokensPerMinute: null, random }),
    server: { arrive: () => ({ accepted: false, reason: 'overload' }) },
    random,
    workers: 4,
    untilMs: 60 * MINUTE_MS,
  });
  const late = records.filter((record) => record.sentAtMs > 50 * MINUTE_MS);
  expect(late.length).toBeGreaterThanOrEqual(8);
  expect(late.length).toBeLessThanOrEqual(10);
});

test.each([
  [0.02, 0.95],
  [0.05, 0.85],
  [0.1, 0.5],
])(
  'a server that refuses %d of all calls for want of room, however slow they come, is used to %d of the limit',
  (share, used) => {
    const random = seededRandom(7);
    const chance = seededRandom(9);
    const records = runLane({
      limiter: createLimiter({ requestsPerMinute: 600, tokensPerMinute: null, random }),
      server: { arrive: () => ({ accepted: chance() >= share, reason: 'overload' }) },
      random,
      workers: 16,
      untilMs: 5 * MINUTE_MS,
    });
    expect(acceptedBetween(records, 0, 5 * MINUTE_MS) / (5 * 600)).toBeGreaterThan(used);
  },
);
