/**
 * The rolling window against a checker that shares no code with it: a plain list of everything that happened,
 * summed anew at every question.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  createLimiter,
  type DeclaredLimits,
  type Grant,
  type Limiter,
  type Reservation,
} from '../../src/limiter/limiter.js';

const WINDOW_MS = 60_000;

type Step =
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'ask'; readonly requests: number; readonly tokens: number }
  | { readonly kind: 'send'; readonly pick: number }
  | { readonly kind: 'commit'; readonly pick: number; readonly actual: number | null }
  | { readonly kind: 'cancel'; readonly pick: number }
  | ({ readonly kind: 'limits' } & DeclaredLimits);

const limits = {
  requestsPerMinute: fc.option(fc.integer({ min: 2, max: 8 })),
  tokensPerMinute: fc.option(fc.integer({ min: 60, max: 200 })),
};

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(25_000) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(70_000) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      requests: fc.integer({ min: 1, max: 2 }),
      tokens: fc.nat(60),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('send' as const), pick: fc.nat() }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('commit' as const),
      pick: fc.nat(),
      actual: fc.option(fc.nat(90)),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel' as const), pick: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('limits' as const), ...limits }) },
);

const scenario = fc.record({
  ...limits,
  marginMs: fc.constantFrom(0, 250),
  steps: fc.array(step, { minLength: 10, maxLength: 80 }),
});
type Scenario = typeof scenario extends fc.Arbitrary<infer Value> ? Value : never;

interface Call {
  readonly grant: Grant;
  readonly requests: number;
  readonly reserved: number;
  tokens: number;
  sentAtMs: number | null;
  settled: boolean;
  cancelled: boolean;
}

/** Plays steps on a limiter and writes down what happened. */
class Story {
  readonly limiter: Limiter;
  readonly calls: Call[] = [];
  nowMs = 1_000;
  limits: DeclaredLimits;
  /** Calls that were granted and might not leave any more. */
  overtaken = 0;

  constructor(settings: Omit<Scenario, 'steps'>) {
    this.limits = settings;
    this.limiter = createLimiter({ ...settings, random: () => 0.5 });
  }

  play(next: Step): Reservation | null {
    if (next.kind === 'wait') {
      this.nowMs += next.ms;
      return null;
    }
    if (next.kind === 'ask') return this.ask(next.requests, next.tokens);
    if (next.kind === 'limits') {
      this.limits = next;
      this.limiter.setLimits(next, this.nowMs);
      return null;
    }
    const open = this.calls.filter(
      (call) => !call.settled && (next.kind !== 'send' || call.sentAtMs === null),
    );
    const call = open[next.pick % Math.max(1, open.length)];
    if (call === undefined) return null;
    if (next.kind === 'send') this.send(call);
    else if (next.kind === 'commit') {
      if (call.sentAtMs === null && !this.send(call)) return null;
      this.limiter.commit(call.grant, next.actual, this.nowMs);
      call.settled = true;
      call.tokens = next.actual ?? call.tokens;
    } else {
      this.limiter.cancel(call.grant, this.nowMs);
      call.settled = true;
      call.cancelled = true;
    }
    return null;
  }

  send(call: Call): boolean {
    const leaves = this.limiter.sent(call.grant, this.nowMs);
    if (leaves) call.sentAtMs = this.nowMs;
    else {
      this.overtaken += 1;
      call.settled = true;
      call.cancelled = true;
    }
    return leaves;
  }

  ask(requests: number, tokens: number): Reservation {
    const reservation = this.limiter.reserve({ requests, tokens }, this.nowMs);
    if (reservation.granted) {
      this.calls.push({
        grant: reservation.grant,
        requests,
        reserved: tokens,
        tokens,
        sentAtMs: null,
        settled: false,
        cancelled: false,
      });
    }
    return reservation;
  }

  get sent(): number {
    return this.calls.filter(({ sentAtMs }) => sentAtMs !== null).length;
  }

  /** Calls sent within `lengthMs` before now, and with `unsentToo` those that could be sent at any moment. */
  inWindow(lengthMs: number, unsentToo: boolean): Call[] {
    return this.calls.filter((call) => {
      if (call.cancelled) return false;
      return call.sentAtMs === null ? unsentToo : call.sentAtMs > this.nowMs - lengthMs;
    });
  }
}

function sum(calls: readonly Call[], value: (call: Call) => number): number {
  return calls.reduce((total, call) => total + value(call), 0);
}

describe('the rolling window', () => {
  test('at a grant, this call, those of the last 60 s and all unsent ones are within both limits of that moment', () => {
    fc.assert(
      fc.property(scenario, ({ steps, ...settings }) => {
        const story = new Story(settings);
        for (const next of steps) {
          if (story.play(next)?.granted !== true) continue;
          const counted = story.inWindow(WINDOW_MS, true);
          const { requestsPerMinute, tokensPerMinute } = story.limits;
          expect(sum(counted, (call) => call.requests)).toBeLessThanOrEqual(requestsPerMinute ?? Infinity);
          expect(sum(counted, (call) => call.tokens)).toBeLessThanOrEqual(tokensPerMinute ?? Infinity);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('no call leaves if it would exceed the limit of that moment, except for what calls used beyond their reservations', () => {
    let overtaken = 0;
    fc.assert(
      fc.property(scenario, ({ steps, ...settings }) => {
        const story = new Story(settings);
        for (const next of steps) {
          const sentBefore = story.sent;
          story.play(next);
          if (story.sent === sentBefore) continue;
          const counted = story.inWindow(WINDOW_MS, false);
          const beyond = sum(counted, (call) => Math.max(0, call.tokens - call.reserved));
          const { requestsPerMinute, tokensPerMinute } = story.limits;
          expect(sum(counted, (call) => call.requests)).toBeLessThanOrEqual(requestsPerMinute ?? Infinity);
          expect(sum(counted, (call) => call.tokens)).toBeLessThanOrEqual(
            (tokensPerMinute ?? Infinity) + beyond,
          );
        }
        overtaken += story.overtaken;
      }),
      { numRuns: 1_000 },
    );
    expect(overtaken).toBeGreaterThan(30);
  });

  test('a call that was told to wait is granted at that very moment and not a millisecond sooner', () => {
    let waits = 0;
    fc.assert(
      fc.property(scenario, ({ steps, ...settings }) => {
        for (const [index, next] of steps.entries()) {
          if (next.kind !== 'ask') continue;
          const before = steps.slice(0, index);
          const told = replay(settings, before, 0).ask(next.requests, next.tokens);
          if (told.granted || told.impossible) continue;
          waits += 1;
          expect(told.waitMs).toBeGreaterThan(0);
          expect(replay(settings, before, told.waitMs).ask(next.requests, next.tokens).granted).toBe(true);
          expect(replay(settings, before, told.waitMs - 1).ask(next.requests, next.tokens).granted).toBe(
            false,
          );
        }
      }),
      { numRuns: 200 },
    );
    expect(waits).toBeGreaterThan(300);
  });

  test('what it counts is what was reserved or used, and nothing of what was cancelled', () => {
    fc.assert(
      fc.property(scenario, ({ steps, ...settings }) => {
        const story = new Story(settings);
        for (const next of steps) {
          story.play(next);
          const counted = story.inWindow(WINDOW_MS + settings.marginMs, true);
          const snapshot = story.limiter.snapshot(story.nowMs);
          expect(snapshot.requestsInWindow).toBe(sum(counted, (call) => call.requests));
          expect(snapshot.tokensInWindow).toBe(sum(counted, (call) => call.tokens));
        }
      }),
      { numRuns: 300 },
    );
  });
});

/** The same steps anew, every grant sent, then `waitMs` in which nothing happens. */
function replay(settings: Omit<Scenario, 'steps'>, steps: readonly Step[], waitMs: number): Story {
  const story = new Story(settings);
  for (const next of steps) story.play(next);
  for (const call of story.calls) {
    if (call.sentAtMs === null && !call.settled) story.send(call);
  }
  story.nowMs += waitMs;
  return story;
}
