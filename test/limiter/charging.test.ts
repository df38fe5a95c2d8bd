/** Whether the output cap or the use is charged, found out from what the server says and lets in. */
import { describe, expect, test } from 'vitest';
import { Charging } from '../../src/limiter/charging.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import { createOutputEstimator } from '../../src/pricing/output-estimate.js';
import { bucket, fakeServer, fixedSpans, type Rule, rolling } from './fake-servers.js';
import { type CallRecord, runLane, seededRandom } from './simulated-lane.js';

const MINUTE_MS = 60_000;
const TOKENS_PER_MINUTE = 60_000;
const PROMPT_TOKENS = 50;
const OUTPUT_CAP = 4_096;

const shapes: readonly (readonly [string, () => Rule])[] = [
  ['over any minute', () => rolling(TOKENS_PER_MINUTE, MINUTE_MS)],
  ['over each minute of the clock', () => fixedSpans(TOKENS_PER_MINUTE, MINUTE_MS)],
  ['with a bucket', () => bucket(TOKENS_PER_MINUTE, TOKENS_PER_MINUTE / 60)],
];

interface Run {
  readonly records: readonly CallRecord[];
  readonly acceptedFrom: (fromMs: number, toMs: number) => number;
  readonly refused: number;
  readonly chargesOutputCap: boolean | null;
}

/** Answers of about 50 tokens under a cap of 4,096. */
function run(settings: {
  readonly tokens: Rule;
  readonly charges: 'use' | 'cap';
  readonly tells: boolean;
  readonly declared?: number | null;
  readonly seed?: number;
  readonly answerMs?: (random: () => number) => number;
  readonly workers?: number;
}): Run {
  const random = seededRandom(settings.seed ?? 1);
  const outputs = createOutputEstimator();
  const { tokens, charges } = settings;
  const limiter = createLimiter({
    requestsPerMinute: null,
    tokensPerMinute: settings.declared === undefined ? TOKENS_PER_MINUTE : settings.declared,
    random,
  });
  const answerMs = settings.answerMs ?? ((chance: () => number) => 20 + 1_980 * chance());
  const records = runLane({
    limiter,
    server: fakeServer({ tokens, charges, ...(settings.tells && { tellsTokens: TOKENS_PER_MINUTE }) }),
    random,
    workers: settings.workers ?? 32,
    untilMs: 4 * MINUTE_MS,
    call: () => ({
      promptTokens: PROMPT_TOKENS,
      outputCap: OUTPUT_CAP,
      outputTokens: 40 + Math.floor(20 * random()),
    }),
    cost: (call) => ({
      requests: 1,
      tokens: PROMPT_TOKENS + outputs.outputTokens(call.outputCap),
      tokensAtCap: PROMPT_TOKENS + call.outputCap,
    }),
    onAnswer: (call) => outputs.observe(call.outputTokens),
    answerMs: () => answerMs(random),
  });
  return {
    records,
    acceptedFrom: (fromMs, toMs) =>
      records.filter((record) => record.accepted && record.arrivedAtMs >= fromMs && record.arrivedAtMs < toMs)
        .length,
    refused: records.filter((record) => !record.accepted).length,
    chargesOutputCap: limiter.snapshot(4 * MINUTE_MS).chargesOutputCap,
  };
}

describe('a server that says what is left', () => {
  describe.each(shapes)('and counts %s', (_name, rule) => {
    test.each([1, 2, 3])(
      'has over nine tenths of its tokens used in the first minute already where use is charged (seed %i)',
      (seed) => {
        const outcome = run({ tokens: rule(), charges: 'use', tells: true, seed });
        expect(outcome.acceptedFrom(0, MINUTE_MS) * 100).toBeGreaterThan(0.9 * TOKENS_PER_MINUTE);
        expect(outcome.acceptedFrom(MINUTE_MS, 4 * MINUTE_MS) * 100).toBeGreaterThan(
          0.95 * 3 * TOKENS_PER_MINUTE,
        );
        expect(outcome.refused).toBe(0);
        expect(outcome.chargesOutputCap).toBe(false);
      },
    );

    test.each([1, 2, 3])('is never met with a refusal where the cap is charged (seed %i)', (seed) => {
      const outcome = run({ tokens: rule(), charges: 'cap', tells: true, seed });
      expect(outcome.refused).toBe(0);
      expect(outcome.acceptedFrom(0, 4 * MINUTE_MS)).toBeGreaterThanOrEqual(4 * 13);
      expect(outcome.chargesOutputCap).toBe(true);
    });
  });

  test('is used to 90 % where use is charged and answers take ten seconds', () => {
    const outcome = run({
      tokens: rolling(TOKENS_PER_MINUTE, MINUTE_MS),
      charges: 'use',
      tells: true,
      answerMs: (random) => 5_000 + 10_000 * random(),
      workers: 200,
    });
    expect(outcome.acceptedFrom(MINUTE_MS, 4 * MINUTE_MS) * 100).toBeGreaterThan(0.9 * 3 * TOKENS_PER_MINUTE);
  });

  test('teaches the limit as well, where none was declared', () => {
    const outcome = run({
      tokens: rolling(TOKENS_PER_MINUTE, MINUTE_MS),
      charges: 'use',
      tells: true,
      declared: null,
    });
    expect(outcome.acceptedFrom(MINUTE_MS, 4 * MINUTE_MS) * 100).toBeGreaterThan(
      0.95 * 3 * TOKENS_PER_MINUTE,
    );
    expect(outcome.refused).toBeLessThanOrEqual(3);
  });

  test('is taken at its word when it has room, although our own count at cap is full', () => {
    const limiter = createLimiter({ requestsPerMinute: null, tokensPerMinute: 10_000, random: () => 0.5 });
    const cost = { requests: 1, tokens: 100, tokensAtCap: 4_100 };
    const grants = [limiter.reserve(cost, 0), limiter.reserve(cost, 0)];
    expect(limiter.reserve(cost, 0)).toMatchObject({ granted: false, blockedBy: 'tokens' });
    for (const reservation of grants) {
      if (!reservation.granted) throw new Error('not granted');
      limiter.sent(reservation.grant, 0);
      limiter.observe({ tokens: { limit: 10_000, remaining: 9_800 } }, 500, reservation.grant);
      limiter.commit(reservation.grant, 100, 500);
    }
    expect(limiter.reserve(cost, 500).granted).toBe(true);
    expect(limiter.reserve(cost, 500).granted).toBe(true);
    expect(limiter.reserve(cost, 500)).toMatchObject({ granted: false, blockedBy: 'tokens' });
  });
});

describe('a server that says nothing', () => {
  describe.each(shapes)('and counts %s', (_name, rule) => {
    test('is used to 90 % where use is charged', () => {
      const outcome = run({ tokens: rule(), charges: 'use', tells: false });
      expect(outcome.acceptedFrom(0, 4 * MINUTE_MS) * 100).toBeGreaterThan(0.9 * 4 * TOKENS_PER_MINUTE);
      expect(outcome.refused).toBe(0);
    });

    test('teaches by its first refusals that the cap is charged', () => {
      const outcome = run({ tokens: rule(), charges: 'cap', tells: false });
      expect(
        outcome.records.filter((record) => !record.accepted && record.sentAtMs > 2 * MINUTE_MS).length,
      ).toBe(0);
      expect(outcome.acceptedFrom(MINUTE_MS, 4 * MINUTE_MS)).toBeGreaterThanOrEqual(3 * 12);
    });
  });
});

describe('what the server says is left', () => {
  test('is the least of what calls of the last second or two were told', () => {
    const charging = new Charging();
    charging.told(900, 10_990);
    charging.told(2_000, 11_005);
    expect(charging.hasRoomFor(1_000)).toBe(false);
    expect(charging.hasRoomFor(900)).toBe(true);
    charging.told(5_000, 14_000);
    charging.told(10, 10_500);
    expect(charging.hasRoomFor(4_000)).toBe(true);
    charging.opened(4_000);
    expect(charging.hasRoomFor(1_001)).toBe(false);
    charging.closed(4_000);
    expect(charging.hasRoomFor(5_000)).toBe(true);
  });

  test('takes three counts at cap to give up that use is charged, and none if more was let in than that allows', () => {
    const charging = new Charging();
    charging.told(900, 0);
    charging.accepted(2_200, 1_000);
    expect(charging.chargesOutputCap).toBe(false);
    for (let word = 0; word < 5; word += 1) charging.compared(950, 100, 2_500, 1_000);
    expect(charging.chargesOutputCap).toBe(false);
    charging.compared(950, 100, 1_000, 1_000);
    charging.compared(950, 100, 1_000, 1_000);
    expect(charging.counted).toBe('tokens');
    charging.compared(950, 100, 1_000, 1_000);
    expect(charging.counted).toBe('tokensAtCap');
    expect(charging.chargesOutputCap).toBe(true);
  });
});
