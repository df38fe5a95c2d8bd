/** A run drained by `executeRun` over a real store, on a clock that stands still: what holds its parts together. */
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LlmBatchError } from '../../src/core/errors.js';
import type { Lane } from '../../src/engine/lane.js';
import type { SendingWay } from '../../src/engine/sending-way.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import type { Provider } from '../../src/provider/provider.js';
import { observationsOf } from '../../src/runs/run-observations.js';
import type { Store } from '../../src/store/store.js';
import { FakeClock } from '../support/fake-clock.js';
import { type JudgedProvider, judgedProvider } from '../support/judged-provider.js';
import { seededRandom } from '../support/seeded-random.js';
import { storeWith } from '../support/store-with.js';
import { StoredRun } from '../support/stored-run.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const NO_BUDGET = { maxCostMicroUsd: null, maxTokensTotal: null, maxFailures: null };
const random = (): number => 0.5;

let clock: FakeClock;
let run: StoredRun;

beforeEach(() => {
  clock = new FakeClock();
});

afterEach(() => run.remove());

function texts(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `Document number ${index + 1} of a run.`);
}

function laneOf(name: string, rpm: number | null, provider: Provider): Lane {
  const limiter = createLimiter({ requestsPerMinute: rpm, tokensPerMinute: null, random });
  return { name, weight: 1, provider, limiter, costOf: () => null, mostOf: () => null };
}

function arrivalsMs({ arrivals }: JudgedProvider): number[] {
  return arrivals.map(({ atMs }) => atMs);
}

describe('a run whose first calls are all refused in one way', () => {
  it('ends with a few calls, though hundreds of documents are ready and refusals come back one by one', async () => {
    const chance = seededRandom(3);
    const server = judgedProvider({ outage: { fault: 'bad-request' } }, clock, {
      wayBackMs: () => 1 + Math.floor(chance() * 400),
    });
    run = await StoredRun.of(texts(300), { concurrency: 8 }, clock);
    const { end, summary } = await run.execute(server, random);
    expect(end).toMatchObject({ reason: 'halted', failure: { kind: 'invalid_request' } });
    expect(summary.counts).toMatchObject({ ready: 300, failed: 0 });
    // Enough to be sure, and what was open meanwhile.
    expect(server.arrivals.length).toBeLessThanOrEqual(40);
  });
});

describe('a server that has answered no run of the store', () => {
  it('is asked once, and by all the others when that call is back; after that, by all at once', async () => {
    const server = judgedProvider({ latencyMs: 100, headers: 'none' }, clock);
    run = await StoredRun.of(texts(40), { concurrency: 8 }, clock);
    await run.execute(server, random, (drain) => clock.after(250, () => drain.stop()));
    const first = arrivalsMs(server);
    expect((first[1] ?? 0) - (first[0] ?? 0)).toBeGreaterThanOrEqual(100);
    expect(first[8]).toBe(first[1]);

    await run.execute(server, random);
    const later = arrivalsMs(server).slice(first.length);
    expect(later[7]).toBe(later[0]);
  });
});

describe('of two lanes whose minute is used up', () => {
  /** One call on lane b, 50 seconds before the run goes on over both. */
  async function fiftySecondsAfterACallOf(name: string, documents: number) {
    const a = judgedProvider({}, clock);
    const b = judgedProvider({}, clock);
    run = await StoredRun.of(texts(documents), { concurrency: 1 }, clock);
    const only = name === 'b' ? b : a;
    await run.executeOver([laneOf(name, 1, only)], random, (drain) => clock.after(10, () => drain.stop()));
    expect(only.arrivals).toHaveLength(1);
    await clock.advance(50 * SECOND_MS);
    const startedAtMs = clock.monotonicMs();
    await run.executeOver([laneOf('a', 1, a), laneOf('b', 1, b)], random);
    const later = (server: JudgedProvider): number[] =>
      arrivalsMs(server)
        .filter((atMs) => atMs >= startedAtMs)
        .map((atMs) => atMs - startedAtMs);
    return { a: later(a), b: later(b) };
  }

  it('the one that is free first takes the next call', async () => {
    const { a, b } = await fiftySecondsAfterACallOf('b', 4);
    expect(a[0]).toBeLessThan(SECOND_MS);
    expect(b[0]).toBeGreaterThan(9 * SECOND_MS);
    expect(b[0]).toBeLessThan(12 * SECOND_MS);
    expect(a[1]).toBeGreaterThan(MINUTE_MS);
  });

  it.each(['a', 'b'])('earlier calls of %s count against that lane alone', async (name) => {
    const { a, b } = await fiftySecondsAfterACallOf(name, 3);
    const [used, free] = name === 'a' ? [a, b] : [b, a];
    expect(free[0]).toBeLessThan(SECOND_MS);
    expect(used[0]).toBeGreaterThan(9 * SECOND_MS);
  });
});

describe('tokens of a call that was refused', () => {
  it('are free for the next one: the minute is not waited for', async () => {
    const refusal = { fault: 'retry-after 2', forMs: 500 };
    const server = judgedProvider({ tpm: 1_000, outage: refusal, headers: 'none' }, clock);
    run = await StoredRun.of(texts(2), { tpm: 1_000, concurrency: 2 }, clock, NO_BUDGET, { max_tokens: 400 });
    const { summary } = await run.execute(server, random);
    expect(summary.counts).toMatchObject({ completed: 2 });
    expect(server.arrivals.filter(({ status }) => status === 429)).not.toEqual([]);
    expect(clock.monotonicMs()).toBeLessThan(45 * SECOND_MS);
  });
});

describe('tokens that a call set aside and did not need', () => {
  it('are free for the next one as soon as its answer is here', async () => {
    const server = judgedProvider({ tpm: 1_000, latencyMs: SECOND_MS, headers: 'none' }, clock);
    run = await StoredRun.of(texts(5), { tpm: 1_000 }, clock, NO_BUDGET, { max_tokens: 800 });
    const { summary } = await run.execute(server, random);
    expect(summary.counts).toMatchObject({ completed: 5 });
    expect(clock.monotonicMs()).toBeLessThan(30 * SECOND_MS);
  });

  it('are set aside no more, once answers have shown what is needed', async () => {
    const server = judgedProvider({ tpm: 20_000, headers: 'none', latencyMs: 5 * SECOND_MS }, clock);
    run = await StoredRun.of(texts(500), { tpm: 20_000 }, clock);
    const { summary } = await run.execute(server, random);
    expect(summary.counts).toMatchObject({ completed: 500 });
    // Eight rounds of 64; what an answer could need at most would let only some 18 of them go at once.
    expect(clock.monotonicMs()).toBeLessThan(80 * SECOND_MS);
  });
});

describe('a lane with a limit of requests per day', () => {
  it('remembers what another process sent in the last 24 hours, and nothing older', async () => {
    const daily = (provider: Provider): Lane => ({
      ...laneOf('a', null, provider),
      limiter: createLimiter({ requestsPerMinute: null, tokensPerMinute: null, requestsPerDay: 2, random }),
    });
    const server = judgedProvider({}, clock);
    run = await StoredRun.of(texts(3), { concurrency: 1 }, clock);
    await run.executeOver([daily(server)], random, (drain) => clock.after(MINUTE_MS, () => drain.stop()));
    expect(server.arrivals).toHaveLength(2);
    await clock.advance(23.8 * HOUR_MS);
    await run.executeOver([daily(server)], random);
    expect(server.arrivals[2]?.atMs).toBeGreaterThan(24 * HOUR_MS);
    expect(server.arrivals[2]?.atMs).toBeLessThan(24.1 * HOUR_MS);
  });
});

describe('what a run was asked for', () => {
  it('holds for the attempts of a document', async () => {
    const server = judgedProvider({}, clock);
    run = await StoredRun.of(['[[simulate:500]] Bad.', ...texts(40)], { maxAttempts: 2 }, clock);
    const { summary } = await run.execute(server, random);
    expect(summary.counts).toMatchObject({ completed: 40, failed: 1 });
    expect(server.arrivals.filter(({ status }) => status === 500)).toHaveLength(2);
  });

  it('holds for the first calls: without a guard each document fails by itself', async () => {
    const server = judgedProvider({ outage: { fault: 'bad-request' } }, clock);
    run = await StoredRun.of(texts(40), { guard: false }, clock);
    const { end, summary } = await run.execute(server, random);
    expect(end.reason).toBe('drained');
    expect(summary.counts).toMatchObject({ failed: 40 });
  });

  it('holds for how many calls are open', async () => {
    const server = judgedProvider({ latencyMs: 100 }, clock);
    let open = 0;
    let most = 0;
    run = await StoredRun.of(texts(30), { concurrency: 3 }, clock);
    await run.execute(
      {
        ...server,
        async send(...given) {
          open += 1;
          most = Math.max(most, open);
          const reply = await server.send(...given);
          open -= 1;
          return reply;
        },
      },
      random,
    );
    expect(most).toBe(3);
  });

  it('holds for how long one call may take, and for how long a stop waits', async () => {
    const given: number[] = [];
    const never: Provider = {
      async send(_, { timeoutMs, signal }) {
        given.push(timeoutMs);
        await clock.sleep(HOUR_MS, signal);
        return { ok: false, aborted: true };
      },
      probe: () => Promise.reject(new Error('nobody asks')),
      close: async () => undefined,
    };
    run = await StoredRun.of(texts(2), { timeoutMs: 7_000, graceMs: 5_000 }, clock);
    const { end } = await run.execute(never, random, (drain) => clock.after(SECOND_MS, () => drain.stop()));
    expect(end).toEqual({ reason: 'stopped' });
    expect(new Set(given)).toEqual(new Set([7_000]));
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(6 * SECOND_MS);
    expect(clock.monotonicMs()).toBeLessThan(7 * SECOND_MS);
  });
});

describe('a run that is asked to stop', () => {
  it('has that noted before its calls have ended, so that a kill in between blames no document', async () => {
    const noted: string[] = [];
    const listeners = new Set<(count: number) => void>();
    run = await StoredRun.of(texts(2), {}, clock);
    const store = storeWith(run.store, { noteStop: async (workerId) => void noted.push(workerId) });
    const stop = {
      count: 0,
      subscribe(listener: (count: number) => void) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    };
    clock.after(SECOND_MS, () => {
      stop.count = 1;
      for (const listener of listeners) listener(1);
      expect(noted).toEqual(['test']);
    });
    const slow = judgedProvider({ latencyMs: 5_000 }, clock);
    const { end } = await run.execute(slow, random, undefined, { store, stop });
    expect(end).toEqual({ reason: 'stopped' });
    expect(noted).toEqual(['test']);
  });
});

describe('a call that is recorded while the user asks to stop at once', () => {
  it('is not waited for', async () => {
    const never: Provider = {
      async send(_, { signal }) {
        await clock.sleep(HOUR_MS, signal);
        return { ok: false, aborted: true };
      },
      probe: () => Promise.reject(new Error('nobody asks')),
      close: async () => undefined,
    };
    run = await StoredRun.of(texts(1), {}, clock);
    let abort = (): void => undefined;
    const store = storeWith(run.store, {
      record(starts, outcomes) {
        if (starts.length > 0) abort();
        return run.store.record(starts, outcomes);
      },
    });
    const keep = (drain: SendingWay): void => {
      abort = () => drain.abort();
    };
    const { end, summary } = await run.executeOver([laneOf('a', null, never)], random, keep, { store });
    expect(end).toEqual({ reason: 'stopped' });
    expect(summary.counts).toMatchObject({ ready: 1 });
    expect(clock.monotonicMs()).toBeLessThan(SECOND_MS);
  });
});

describe('the lease of a document whose answer takes minutes', () => {
  /** What another process would find to take over, looked for every second while the one call is open. */
  async function takenOver(store: (real: Store) => Store = (real) => real): Promise<number> {
    const server = judgedProvider({ latencyMs: 4 * MINUTE_MS }, clock);
    run = await StoredRun.of(texts(1), {}, clock);
    const database = new Database(run.storePath, { readonly: true });
    const ended = database
      .prepare<[number], number>(
        'SELECT count(*) FROM tasks JOIN workers ON workers.id = worker_id WHERE lease_until_ms <= ?',
      )
      .pluck();
    let found = 0;
    const look = (): void => {
      found += ended.get(clock.now()) ?? 0;
      clock.after(SECOND_MS, look);
    };
    const { summary } = await run.executeOver([laneOf('a', null, server)], random, look, {
      store: store(run.store),
    });
    database.close();
    expect(summary.counts).toMatchObject({ completed: 1 });
    expect(server.arrivals).toHaveLength(1);
    return found;
  }

  it('never ends before the answer is here', async () => {
    expect(await takenOver()).toBe(0);
  });

  it('outlives two beats that a busy store does not take', async () => {
    let beats = 0;
    const busy = new LlmBatchError('The store is busy.', { code: 'STORE_BUSY', exitCode: 5 });
    const missing = await takenOver((real) =>
      storeWith(real, {
        beat(...given) {
          beats += 1;
          return beats % 3 === 0 ? real.beat(...given) : Promise.reject(busy);
        },
      }),
    );
    expect(beats).toBeGreaterThan(3);
    expect(missing).toBe(0);
  });

  it('is not asked for more often than a store can bear', async () => {
    let beats = 0;
    await takenOver((real) =>
      storeWith(real, {
        beat(...given) {
          beats += 1;
          return real.beat(...given);
        },
      }),
    );
    expect(beats).toBeLessThanOrEqual(60);
  });
});

describe('what is kept of how a run ended', () => {
  const stored = async () => {
    const [record] = await run.store.listRuns();
    if (record === undefined) throw new Error('the run must be there');
    return record;
  };

  it('is its reason while something is left to do, and nothing once all is done', async () => {
    const server = judgedProvider({ insufficientQuotaAfter: 3 }, clock);
    run = await StoredRun.of(texts(6), { concurrency: 1 }, clock);
    const halted = await run.execute(server, random);
    expect(halted.end).toMatchObject({ reason: 'halted' });
    const atMs = clock.now();
    expect(await stored()).toMatchObject({ status: 'open', stoppedAtMs: atMs });
    expect((await stored()).haltReason).toMatch(/^quota_exhausted: /);

    await clock.advance(MINUTE_MS);
    const { run: after } = await run.execute(judgedProvider({}, clock), random);
    expect(after).toEqual(await stored());
    expect(after).toMatchObject({ status: 'finished', haltReason: null });
    expect(after.stoppedAtMs).toBeGreaterThanOrEqual(atMs + MINUTE_MS);
  });

  it('is the budget, where the next call could pass it', async () => {
    run = await StoredRun.of(texts(6), {}, clock, { ...NO_BUDGET, maxTokensTotal: 500 }, { max_tokens: 600 });
    const { end } = await run.execute(judgedProvider({}, clock), random);
    expect(end).toEqual({ reason: 'limit_reached', limit: 'tokens' });
    expect((await stored()).haltReason).toBe('limit_reached: tokens');
  });

  it('is the failures, where they are more than the user accepts', async () => {
    const refused = texts(6).map((text) => `[[simulate:refuse]] ${text}`);
    const budget = { ...NO_BUDGET, maxFailures: { documents: 1 } };
    run = await StoredRun.of(refused, { concurrency: 1 }, clock, budget);
    const { end } = await run.execute(judgedProvider({}, clock), random);
    expect(end).toEqual({ reason: 'limit_reached', limit: 'failures' });
    expect((await stored()).haltReason).toBe('limit_reached: failures');
  });

  it('counts what earlier processes of the run have spent against its cap', async () => {
    const budget = { ...NO_BUDGET, maxTokensTotal: 2_000 };
    run = await StoredRun.of(texts(40), { concurrency: 1 }, clock, budget, { max_tokens: 300 });
    await run.execute(judgedProvider({ outputTokens: 300 }, clock), random);
    const spent = (await run.store.summarizeRun(run.run.id)).usage;
    expect(spent.inputTokens + spent.outputTokens).toBeGreaterThan(1_000);
    const server = judgedProvider({ outputTokens: 300 }, clock);
    const again = await run.execute(server, random);
    expect(again.end).toEqual({ reason: 'limit_reached', limit: 'tokens' });
    expect(server.arrivals).toEqual([]);
  });

  it('names the prices of the last time that something was sent', async () => {
    run = await StoredRun.of(texts(2), {}, clock);
    const prices = { source: 'the first table', date: '2026-01-01' };
    await run.executeOver([laneOf('a', null, judgedProvider({}, clock))], random, undefined, { prices });
    expect(observationsOf(await stored())).toMatchObject({ prices });
    // Everything is answered: another table prices nothing any more.
    await run.executeOver([laneOf('a', null, judgedProvider({}, clock))], random, undefined, {
      prices: { source: 'another', date: null },
    });
    expect(observationsOf(await stored())).toMatchObject({ prices });
  });
});

describe('a run that an earlier process left in the middle', () => {
  it('is told of the documents that were put back, and answers them', async () => {
    run = await StoredRun.of(texts(3), {}, clock);
    await run.store.claimTasks({
      runId: run.run.id,
      workerId: 'dead',
      limit: 2,
      leaseMs: MINUTE_MS,
    });
    const reports: object[] = [];
    const { summary } = await run.executeOver(
      [laneOf('a', null, judgedProvider({}, clock))],
      random,
      undefined,
      { tell: (event) => event.type === 'rescued' && reports.push(event) },
    );
    expect(reports).toMatchObject([{ rescued: 2, poisoned: 0 }]);
    expect(summary.counts).toMatchObject({ completed: 3 });
  });

  it('says nothing of it where nothing was put back', async () => {
    run = await StoredRun.of(texts(1), {}, clock);
    const reports: object[] = [];
    await run.executeOver([laneOf('a', null, judgedProvider({}, clock))], random, undefined, {
      tell: (event) => event.type === 'rescued' && reports.push(event),
    });
    expect(reports).toEqual([]);
  });

  it('is counted from where it stood: the drain hands out what was done before', async () => {
    run = await StoredRun.of(texts(4), { concurrency: 1 }, clock);
    const server = judgedProvider({ latencyMs: 100 }, clock);
    await run.executeOver([laneOf('a', null, server)], random, (drain) =>
      clock.after(150, () => drain.stop()),
    );
    const { before } = await run.executeOver([laneOf('a', null, server)], random);
    const completedBefore = before.counts.completed;
    expect(completedBefore).toBe(server.arrivals.length - (4 - completedBefore));
    expect(completedBefore).toBeGreaterThan(0);
    expect(completedBefore).toBeLessThan(4);
  });
});
