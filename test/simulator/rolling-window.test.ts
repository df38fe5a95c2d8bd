import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RollingWindow } from '../../src/simulator/rolling-window.js';

const LENGTH_MS = 100;

interface Arrival {
  readonly atMs: number;
  readonly tokens: number;
}

/** Some with long gaps, then many close together: the window slides first and outgrows its memory then. */
const steps = (longestGapMs: number, maxLength: number) =>
  fc.array(fc.record({ gapMs: fc.nat({ max: longestGapMs }), tokens: fc.nat({ max: 50 }) }), {
    maxLength,
    size: 'max',
  });

/** Whole milliseconds, so that arrivals often fall on the very edges of windows. */
const arrivals = fc.tuple(steps(40, 50), steps(1, 300), steps(40, 50)).map((phases) => {
  let atMs = 0;
  return phases.flat().map(({ gapMs, tokens }): Arrival => {
    atMs += gapMs;
    return { atMs, tokens };
  });
});

function within(seen: readonly Arrival[], nowMs: number): Arrival[] {
  return seen.filter(({ atMs }) => atMs > nowMs - LENGTH_MS && atMs <= nowMs);
}

function sum(seen: readonly Arrival[]): number {
  return seen.reduce((total, { tokens }) => total + tokens, 0);
}

function filled(seen: readonly Arrival[]): RollingWindow {
  const window = new RollingWindow(LENGTH_MS);
  for (const { atMs, tokens } of seen) window.add(atMs, tokens);
  return window;
}

describe('RollingWindow', () => {
  it('counts what a plain search through all arrivals counts, at every arrival', () => {
    fc.assert(
      fc.property(arrivals, (all) => {
        const window = new RollingWindow(LENGTH_MS);
        for (const [index, { atMs, tokens }] of all.entries()) {
          window.add(atMs, tokens);
          const expected = within(all.slice(0, index + 1), atMs);
          expect(window.requests(atMs)).toBe(expected.length);
          expect(window.tokens(atMs)).toBe(sum(expected));
        }
      }),
    );
  });

  it('names the first millisecond at which there is room, for requests and for tokens', () => {
    fc.assert(
      fc.property(arrivals, fc.integer({ min: 1, max: 20 }), fc.nat({ max: 300 }), (all, limit, tokens) => {
        const nowMs = all.at(-1)?.atMs ?? 0;
        const firstMoment = (holds: (left: Arrival[]) => boolean): number => {
          let waitMs = 0;
          while (!holds(within(all, nowMs + waitMs))) waitMs += 1;
          return waitMs;
        };
        const window = filled(all);
        expect(window.msUntilFewerThan(limit, nowMs)).toBe(firstMoment((left) => left.length < limit));
        expect(window.msUntilTokensAtMost(tokens, nowMs)).toBe(firstMoment((left) => sum(left) <= tokens));
        expect(window.msUntilEmpty(nowMs)).toBe(firstMoment((left) => left.length === 0));
      }),
    );
  });

  it('an arrival leaves at the moment it is as old as the window is long', () => {
    const window = new RollingWindow(LENGTH_MS);
    window.add(10, 7);
    expect(window.requests(10 + LENGTH_MS - 1)).toBe(1);
    expect(window.requests(10 + LENGTH_MS)).toBe(0);
    expect(window.tokens(10 + LENGTH_MS)).toBe(0);
  });

  it('a shorter window made of it remembers what it can hold', () => {
    const window = new RollingWindow(LENGTH_MS);
    for (const atMs of [0, 50, 80, 90]) window.add(atMs, 1);
    expect(window.withLength(40).requests(90)).toBe(2);
  });
});
