/**
 * The whole engine over a real store, on a clock that stands still, before the simulator's strict window: minutes
 * of limits in an instant. The same in real minutes, over real sockets: test/slow/limits.test.ts.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Random } from '../../src/core/clock.js';
import { FakeClock } from '../support/fake-clock.js';
import { type JudgedProvider, judgedProvider } from '../support/judged-provider.js';
import { seededRandom } from '../support/seeded-random.js';
import { StoredRun } from '../support/stored-run.js';

const MINUTE_MS = 60_000;
/** How much longer than a minute the limiter waits, for calls that overtake each other on their way. */
const MARGIN_MS = 500;

let clock: FakeClock;
let random: Random;
let run: StoredRun;

beforeEach(() => {
  clock = new FakeClock();
  random = seededRandom(7);
});

afterEach(() => run.remove());

function texts(count: number): string[] {
  return Array.from(
    { length: count },
    (_, index) => `Document number ${index + 1} of a run within its limits.`,
  );
}

/** A way to the server of 1 to 60 ms, as over a real network: calls overtake each other. */
function strictServer(options: Parameters<typeof judgedProvider>[0]): JudgedProvider {
  const wayMs = (): number => 1 + Math.floor(random() * 60);
  return judgedProvider(options, clock, { wayThereMs: wayMs, wayBackMs: wayMs });
}

describe('under a strict window of 60 seconds', () => {
  it.each(['openai', 'none'] as const)(
    '600 requests per minute are used up to the last one and never passed (headers: %s)',
    async (headers) => {
      const server = strictServer({ rpm: 600, latencyMs: { min: 100, max: 900 }, headers });
      run = await StoredRun.of(texts(1_500), { rpm: 600 }, clock);
      const { end, summary } = await run.execute(server, random);
      expect(end.reason).toBe('drained');
      expect(summary.counts).toMatchObject({ completed: 1_500, failed: 0 });
      const { refusedByStatus, peak, calls } = server.books();
      expect(refusedByStatus).toEqual({});
      expect(calls).toBe(1_500);
      expect(peak.requestsShare).toBe(1);
      expect(busiestWindow(server.arrivals.map(({ atMs }) => atMs))).toBe(600);
    },
  );

  it.each(['openai', 'none'] as const)(
    '60,000 tokens per minute are used to 99 percent and never passed (headers: %s)',
    async (headers) => {
      const server = strictServer({
        headers,
        tpm: 60_000,
        latencyMs: { min: 100, max: 900 },
        outputTokens: { min: 50, max: 400 },
      });
      run = await StoredRun.of(texts(620), { tpm: 60_000 }, clock);
      const { end, summary } = await run.execute(server, random);
      expect(end.reason).toBe('drained');
      expect(summary.counts).toMatchObject({ completed: 620, failed: 0 });
      const { refusedByStatus, peak, tokensCharged } = server.books();
      expect(refusedByStatus).toEqual({});
      expect(tokensCharged).toBeGreaterThan(60_000 * 2.4);
      expect(peak.tokensShare).toBeGreaterThanOrEqual(0.99);
      expect(peak.tokensShare).toBeLessThanOrEqual(1);
    },
  );

  it('ten documents at 10 requests per minute start at once behind the first, the eleventh waits for it', async () => {
    const server = judgedProvider({ rpm: 10, latencyMs: 50 }, clock);
    run = await StoredRun.of(texts(11), { rpm: 10 }, clock);
    await run.execute(server, random);
    const times = server.arrivals.map(({ atMs }) => atMs);
    const [first = 0] = times;
    // The first call to a server goes alone; the others leave when it is answered.
    expect(new Set(times.slice(1, 10)).size).toBe(1);
    expect((times[1] ?? 0) - first).toBeLessThan(100);
    const waitedMs = (times[10] ?? 0) - first;
    expect(waitedMs).toBeGreaterThanOrEqual(MINUTE_MS);
    expect(waitedMs).toBeLessThanOrEqual(MINUTE_MS + MARGIN_MS);
    expect(server.books().refusedByStatus).toEqual({});
  });

  it('a process that takes over within the minute counts what the one before it sent', async () => {
    const server = judgedProvider({ rpm: 10, latencyMs: 50 }, clock);
    run = await StoredRun.of(texts(25), { rpm: 10 }, clock);
    await run.execute(server, random, (drain) => void clock.after(20_000, () => drain.stop()));
    expect(server.arrivals).toHaveLength(10);

    const { end } = await run.execute(server, random);
    expect(end.reason).toBe('drained');
    expect(server.books().refusedByStatus).toEqual({});
    const times = server.arrivals.map(({ atMs }) => atMs);
    const elevenWaitedMs = (times[10] ?? 0) - (times[0] ?? 0);
    expect(elevenWaitedMs).toBeGreaterThanOrEqual(MINUTE_MS);
    expect(elevenWaitedMs).toBeLessThanOrEqual(MINUTE_MS + MARGIN_MS);
  });

  it('a document larger than all the tokens of a minute fails at once, and the others go on', async () => {
    const server = judgedProvider({ tpm: 2_000 }, clock);
    run = await StoredRun.of(['word '.repeat(5_000), ...texts(3)], { tpm: 2_000 }, clock);
    const { summary } = await run.execute(server, random);
    expect(summary.counts).toMatchObject({ completed: 3, failed: 1 });
    expect(summary.failedByKind).toEqual({ too_large: 1 });
    expect(server.arrivals).toHaveLength(3);
  });
});

describe('thirty workers told Retry-After: 5', () => {
  it('do not come back before it, nor in the same instant', async () => {
    const server = judgedProvider(
      { latencyMs: 20, outage: { fault: 'retry-after 5', afterMs: 20, forMs: 5_000 } },
      clock,
    );
    run = await StoredRun.of(texts(91), { concurrency: 30 }, clock);
    const { end, summary } = await run.execute(server, random);
    expect(end.reason).toBe('drained');
    expect(summary.counts).toMatchObject({ completed: 91, failed: 0 });

    const refused = server.arrivals.filter(({ status }) => status === 429);
    const told = refused[0]?.atMs ?? 0;
    // Those that had left, and few more: one refusal among calls that are let in would hold back its own document alone.
    expect(refused.length).toBeGreaterThanOrEqual(15);
    expect(refused.length).toBeLessThanOrEqual(38);
    expect(Math.max(...refused.map(({ atMs }) => atMs))).toBeLessThanOrEqual(told + 20);
    const back = server.arrivals.slice(1).flatMap(({ status, atMs }) => (status === 200 ? [atMs] : []));
    expect(back).toHaveLength(90);
    expect(Math.min(...back)).toBeGreaterThanOrEqual(told + 5_000);
    expect(server.books().violations.beforeRetryAfter).toBe(0);
    // One goes ahead to see; then a few in each tenth of a second, never thirty at once.
    const together = new Map<number, number>();
    for (const atMs of back.slice(0, 30)) together.set(atMs, (together.get(atMs) ?? 0) + 1);
    expect(Math.max(...together.values())).toBe(1);
    expect((back[29] ?? 0) - (back[0] ?? 0)).toBeGreaterThanOrEqual(1_000);
    // No attempt is used by being throttled.
    const rows = await run.store.readResults({
      runId: run.run.id,
      only: 'all',
      afterLine: 0,
      limit: 100,
      includeBody: false,
    });
    expect(new Set(rows.map(({ attempts }) => attempts))).toEqual(new Set([1]));
  });
});

/** The most arrivals in any half-open 60 seconds, counted anew without the simulator's window. */
function busiestWindow(times: readonly number[]): number {
  const sorted = [...times].sort((one, other) => one - other);
  let start = 0;
  let most = 0;
  for (const [index, atMs] of sorted.entries()) {
    while ((sorted[start] ?? atMs) <= atMs - MINUTE_MS) start += 1;
    most = Math.max(most, index - start + 1);
  }
  return most;
}
