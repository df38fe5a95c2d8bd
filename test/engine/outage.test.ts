/** A server that goes away in the middle of a run, over a real store, on a clock that stands still. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Random } from '../../src/core/clock.js';
import type { RunEvent } from '../../src/core/event.js';
import type { ProviderFailure } from '../../src/core/failure.js';
import type { Lane } from '../../src/engine/lane.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import type { Provider, ProviderReply } from '../../src/provider/provider.js';
import { inspectRun, type RunInspection } from '../../src/runs/inspect-run.js';
import { observationsOf } from '../../src/runs/run-observations.js';
import { answered, answerOf } from '../support/answered.js';
import { FakeClock } from '../support/fake-clock.js';
import { seededRandom } from '../support/seeded-random.js';
import { StoredRun } from '../support/stored-run.js';

let clock: FakeClock;
let random: Random;
let run: StoredRun;

beforeEach(() => {
  clock = new FakeClock();
  random = seededRandom(7);
});

afterEach(() => run.remove());

const FAILURES: Readonly<Record<string, ProviderFailure>> = {
  '502': { kind: 'overloaded', message: 'Bad gateway', httpStatus: 502 },
  '503': { kind: 'overloaded', message: 'Overloaded', httpStatus: 503 },
  'HTML page': { kind: 'network', message: 'A page', httpStatus: 522 },
  refused: {
    kind: 'network',
    message: 'Nothing accepts connections there',
    code: 'ECONNREFUSED',
    isUnsent: true,
  },
  reset: { kind: 'network', message: 'The connection was reset', code: 'ECONNRESET' },
  timeout: { kind: 'timeout', message: 'No answer' },
};

interface Span {
  readonly fromMs: number;
  readonly forMs: number;
}

/** Answers in 100 to 500 ms, except in the span. */
function server(failure: ProviderFailure, outage: Span, failsAfterMs = 5) {
  const answeredAtMs: number[] = [];
  const calledAtMs: number[] = [];
  const provider: Provider = {
    async send(): Promise<ProviderReply> {
      calledAtMs.push(clock.monotonicMs());
      const isAway = (): boolean => {
        const nowMs = clock.monotonicMs();
        return nowMs >= outage.fromMs && nowMs < outage.fromMs + outage.forMs;
      };
      if (!isAway()) await clock.sleep(100 + 400 * random());
      if (isAway()) {
        await clock.sleep(failsAfterMs);
        return { ok: false, failure, usage: null, costMicroUsd: null, hints: {} };
      }
      answeredAtMs.push(clock.monotonicMs());
      const usage = { inputTokens: 10, outputTokens: 1, cachedTokens: 0, reasoningTokens: 0 };
      return answerOf([answered('yes')], { usage });
    },
    probe: () => Promise.reject(new Error('nobody asks')),
    async close() {},
  };
  return { provider, answeredAtMs, calledAtMs };
}

function laneTo(name: string, provider: Provider, requestsPerDay: number | null = null): Lane {
  const limiter = createLimiter({ requestsPerMinute: null, tokensPerMinute: null, requestsPerDay, random });
  return { name, weight: 1, provider, limiter, costOf: () => null, mostOf: () => null };
}

function texts(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `Document ${index + 1} of an outage.`);
}

function between(times: readonly number[], fromMs: number, toMs: number): number {
  return times.filter((atMs) => atMs >= fromMs && atMs < toMs).length;
}

const OPEN = 48;

describe.each(Object.keys(FAILURES))('a server that answers nothing but "%s"', (name) => {
  const failure = FAILURES[name] as ProviderFailure;

  it.each([8_000, 30_000])(
    'for %i ms fails no document, is hardly called, and is at full speed soon',
    async (forMs) => {
      const outage = { fromMs: 2_000, forMs };
      const { provider, answeredAtMs, calledAtMs } = server(failure, outage);
      const documents = 2_200;
      run = await StoredRun.of(texts(documents), { concurrency: OPEN }, clock);
      const notices: RunEvent[] = [];
      const { end, summary } = await run.executeOver([laneTo('lane', provider)], random, undefined, {
        tell: (event) => notices.push(event),
      });
      expect(end.reason).toBe('drained');
      expect(summary.counts).toMatchObject({ completed: documents, failed: 0 });
      expect(calledAtMs.length).toBeLessThanOrEqual(documents + OPEN + 0.05 * documents);
      const before = between(answeredAtMs, 1_000, 2_000);
      const healedAtMs = outage.fromMs + forMs;
      expect(between(answeredAtMs, healedAtMs + 10_000, healedAtMs + 11_000)).toBeGreaterThan(before * 0.9);
      expect(notices.map(({ type }) => type).filter((type) => type.startsWith('lane_'))).toEqual([
        'lane_down',
        'lane_up',
      ]);
    },
  );
});

describe('an outage', () => {
  const refused = FAILURES['refused'] as ProviderFailure;

  it('uses up no requests of the day where nothing accepted a connection', async () => {
    const { provider } = server(refused, { fromMs: 2_000, forMs: 30_000 });
    run = await StoredRun.of(texts(1_000), { concurrency: OPEN }, clock);
    const { summary } = await run.executeOver([laneTo('lane', provider, 1_000)], random);
    expect(summary.counts).toMatchObject({ completed: 1_000, failed: 0 });
    expect(clock.monotonicMs()).toBeLessThan(60_000);
  });

  it('of one of two lanes leaves its work to the other', async () => {
    const away = server(refused, { fromMs: 1_000, forMs: 24 * 3_600_000 });
    const there = server(refused, { fromMs: 0, forMs: 0 });
    run = await StoredRun.of(texts(2_000), { concurrency: OPEN }, clock);
    const { summary } = await run.executeOver(
      [laneTo('a', away.provider), laneTo('b', there.provider)],
      random,
    );
    expect(summary.counts).toMatchObject({ completed: 2_000, failed: 0 });
    expect(away.calledAtMs.length - away.answeredAtMs.length).toBeLessThanOrEqual(OPEN + 20);
  });

  it('that lasts longer than the longest wait stops the run, and loses nothing', async () => {
    const { provider } = server(refused, { fromMs: 1_000, forMs: 24 * 3_600_000 });
    run = await StoredRun.of(texts(500), { concurrency: OPEN, maxWaitMs: 10 * 60_000 }, clock);
    const { end, summary } = await run.executeOver([laneTo('lane', provider)], random);
    expect(end).toMatchObject({ reason: 'halted', failure: { kind: 'network' } });
    expect(summary.counts.failed).toBe(0);
    expect(clock.monotonicMs()).toBeGreaterThan(10 * 60_000);
    expect(clock.monotonicMs()).toBeLessThan(13 * 60_000);
  });

  it('is told while it lasts: since when, and what is met', async () => {
    const { provider } = server(refused, { fromMs: 1_000, forMs: 60_000 });
    run = await StoredRun.of(texts(500), { concurrency: OPEN }, clock);
    let snapshot: object = {};
    const inspected: Promise<RunInspection>[] = [];
    await run.executeOver([laneTo('lane', provider)], random, (drain) => {
      clock.after(30_000, () => {
        snapshot = drain.snapshot();
        inspected.push(
          run.store.listRuns().then(([stored = run.run]) => inspectRun(run.store, stored, clock)),
        );
      });
    });
    expect(snapshot).toMatchObject({ down: [{ lane: { name: 'lane' } }] });
    const [seen] = await Promise.all(inspected);
    const noted = observationsOf(seen?.run ?? run.run).outages;
    expect(noted).toMatchObject([{ lane: 'lane', message: refused.message }]);
    const [after = run.run] = await run.store.listRuns();
    expect(observationsOf(after).outages).toEqual([]);
  });

  it('from the first call on ends the run, and is not told as one that is waited for', async () => {
    const { provider } = server(refused, { fromMs: 0, forMs: 24 * 3_600_000 });
    run = await StoredRun.of(texts(500), { concurrency: OPEN }, clock);
    const types: string[] = [];
    const { end, summary } = await run.executeOver([laneTo('lane', provider)], random, undefined, {
      tell: (event) => types.push(event.type),
    });
    expect(end).toMatchObject({ reason: 'halted', failure: { kind: 'network' } });
    expect(summary.counts).toMatchObject({ completed: 0, failed: 0 });
    expect(types).toContain('halted');
    expect(types).not.toContain('lane_down');
  });

  it('is the end of nobody where the server fails every second call', async () => {
    let call = 0;
    const good = server(refused, { fromMs: 0, forMs: 0 }).provider;
    const failure = FAILURES['502'] as ProviderFailure;
    const provider: Provider = {
      ...good,
      async send(request, options) {
        call += 1;
        if (call > 100 && random() < 0.5) {
          await clock.sleep(20);
          return { ok: false, failure, usage: null, costMicroUsd: null, hints: {} };
        }
        return good.send(request, options);
      },
    };
    run = await StoredRun.of(texts(1_500), { concurrency: OPEN }, clock);
    const { summary } = await run.executeOver([laneTo('lane', provider)], random);
    expect(summary.counts).toMatchObject({ completed: 1_500, failed: 0 });
  });

  it('is none where one document alone is failed each time: that is its own trouble', async () => {
    const good = server(refused, { fromMs: 0, forMs: 0 }).provider;
    const failure = FAILURES['502'] as ProviderFailure;
    const provider: Provider = {
      ...good,
      send: async (request, options) =>
        request.bodyJson.includes('Document 200 of')
          ? { ok: false, failure, usage: null, costMicroUsd: null, hints: {} }
          : good.send(request, options),
    };
    run = await StoredRun.of(texts(300), { concurrency: OPEN }, clock);
    const { summary } = await run.executeOver([laneTo('lane', provider)], random);
    expect(summary.counts).toMatchObject({ completed: 299, failed: 1 });
    expect(summary.failedByKind).toEqual({ overloaded: 1 });
  });
});
