/** Several keys, each with its own limits, over a real store and the simulator's strict judge, on a clock that stands still. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Random } from '../../src/core/clock.js';
import type { Lane } from '../../src/engine/lane.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import { inspectRun } from '../../src/runs/inspect-run.js';
import type { SimulatorOptions } from '../../src/simulator/options.js';
import { FakeClock } from '../support/fake-clock.js';
import { type JudgedProvider, judgedProvider } from '../support/judged-provider.js';
import { seededRandom } from '../support/seeded-random.js';
import { StoredRun } from '../support/stored-run.js';

const MINUTE_MS = 60_000;

let clock: FakeClock;
let random: Random;
let run: StoredRun;

beforeEach(() => {
  clock = new FakeClock();
  random = seededRandom(11);
});

afterEach(() => run.remove());

function texts(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `Document number ${index + 1} of several lanes.`);
}

function laneOf(name: string, rpm: number, more: SimulatorOptions = {}): Lane & { server: JudgedProvider } {
  const wayMs = (): number => 1 + Math.floor(random() * 60);
  const server = judgedProvider({ rpm, latencyMs: { min: 50, max: 500 }, headers: 'none', ...more }, clock, {
    wayThereMs: wayMs,
    wayBackMs: wayMs,
  });
  const limiter = createLimiter({ requestsPerMinute: rpm, tokensPerMinute: null, random });
  return { name, weight: 1, provider: server, limiter, server, costOf: () => null, mostOf: () => null };
}

describe('three lanes of 300, 200 and 100 requests per minute', () => {
  it('together reach 98 % of 600, none over its own', async () => {
    const lanes = [laneOf('a', 300), laneOf('b', 200), laneOf('c', 100)];
    run = await StoredRun.of(texts(1_500), {}, clock);
    const { end, summary } = await run.executeOver(lanes, random);
    expect(end.reason).toBe('drained');
    expect(summary.counts).toMatchObject({ completed: 1_500, failed: 0 });
    for (const { server } of lanes) expect(server.books().refusedByStatus).toEqual({});
    const arrivals = lanes
      .flatMap(({ server }) => server.arrivals.map(({ atMs }) => atMs))
      .sort((a, b) => a - b);
    const startMs = arrivals[0] ?? 0;
    const inTwoMinutes = arrivals.filter((atMs) => atMs < startMs + 2 * MINUTE_MS).length;
    expect(inTwoMinutes).toBeGreaterThanOrEqual(2 * 600 * 0.98);
  });

  it('lose nothing when one key is revoked in the middle: the others do its work', async () => {
    const revoked = laneOf('b', 200, { outage: { fault: 'unauthorized', afterMs: 20_000 } });
    const lanes = [laneOf('a', 300), revoked, laneOf('c', 100)];
    run = await StoredRun.of(texts(1_000), {}, clock);
    const { end, summary } = await run.executeOver(lanes, random);
    expect(end.reason).toBe('drained');
    expect(summary.counts).toMatchObject({ completed: 1_000, failed: 0 });
    const refused = revoked.server.arrivals.filter(({ status }) => status === 401);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThanOrEqual(64);
    const rows = await run.store.readResults({
      runId: run.run.id,
      only: 'all',
      afterLine: 0,
      limit: 2_000,
      includeBody: false,
    });
    expect(new Set(rows.map(({ attempts }) => attempts))).toEqual(new Set([1]));
  });

  it('stop the run only when the last of them has failed', async () => {
    const dead = { outage: { fault: 'insufficient-quota' } };
    const lanes = [laneOf('a', 300, dead), laneOf('b', 200, dead), laneOf('c', 100, dead)];
    run = await StoredRun.of(texts(500), {}, clock);
    const { end, summary } = await run.executeOver(lanes, random);
    expect(end).toMatchObject({ reason: 'halted', failure: { kind: 'quota_exhausted' } });
    expect(summary.counts).toMatchObject({ ready: 500, completed: 0, failed: 0 });
    for (const { server } of lanes) expect(server.arrivals.length).toBeGreaterThan(0);
  });
});

describe('what a lane learns from its server', () => {
  it('is kept with the run for those that look at it', async () => {
    const lane = laneOf('a', 300, { headers: 'openai', tpm: 90_000 });
    run = await StoredRun.of(texts(40), {}, clock);
    await run.executeOver([lane], random);
    const [stored] = await run.store.listRuns();
    if (stored === undefined) throw new Error('the run must be there');
    const { learntLimits } = await inspectRun(run.store, stored, clock);
    expect(learntLimits).toEqual([
      { lane: 'a', requestsPerMinute: 300, tokensPerMinute: 90_000, requestsPerDay: null },
    ]);
  });
});
