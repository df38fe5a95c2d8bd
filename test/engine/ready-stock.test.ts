/** Calls are made ready ahead of their slots; one that does not leave after all leaves no trace. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { SendingWay } from '../../src/engine/sending-way.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import type { Provider, ProviderReply } from '../../src/provider/provider.js';
import { answered, answerOf } from '../support/answered.js';
import { FakeClock } from '../support/fake-clock.js';
import { storeWith } from '../support/store-with.js';
import { StoredRun } from '../support/stored-run.js';

let clock: FakeClock;
let stored: StoredRun;

beforeEach(() => {
  clock = new FakeClock();
});
afterEach(() => stored.remove());

const USAGE = { inputTokens: 1, outputTokens: 1, cachedTokens: 0, reasoningTokens: 0 };
const GOOD: ProviderReply = answerOf([answered('fine')], { usage: USAGE });
const THROTTLED: ProviderReply = {
  ok: false,
  failure: { kind: 'rate_limited', httpStatus: 429, message: 'slow down', retryAfterMs: 5_000 },
  usage: null,
  costMicroUsd: null,
  hints: {},
};

const texts = (count: number): string[] => Array.from({ length: count }, (_, index) => `document ${index}`);

function answering(replyTo: (call: number) => ProviderReply, latencyMs: number | ((call: number) => number)) {
  const sentAtMs: number[] = [];
  const provider: Provider = {
    async send() {
      sentAtMs.push(clock.monotonicMs());
      const call = sentAtMs.length;
      await clock.sleep(typeof latencyMs === 'number' ? latencyMs : latencyMs(call));
      return replyTo(call);
    },
    probe: () => Promise.reject(new Error('nobody asks')),
    close: async () => undefined,
  };
  return { provider, sentAtMs };
}

it('a slot is taken again in the very moment in which it is free: the commit of the next call has been done', async () => {
  stored = await StoredRun.of(texts(40), { concurrency: 4 }, clock);
  const { provider, sentAtMs } = answering(() => GOOD, 40);
  await stored.execute(provider, () => 0.5);
  // The first call went alone; then there are ten turns of four calls, of which only the first waits for a commit.
  expect((sentAtMs.at(-1) ?? 0) - (sentAtMs[1] ?? 0)).toBeLessThanOrEqual(9 * 40 + 4);
});

it('commits that take 18 ms leave no slot empty: 50 open calls of 40 ms are 97 % of 1,250 a second at least', async () => {
  stored = await StoredRun.of(texts(800), { concurrency: 50 }, clock);
  // 30 to 50 ms, so that answers come one by one.
  const { provider, sentAtMs } = answering(
    () => GOOD,
    (call) => 30 + ((call * 7) % 21),
  );
  const { store } = stored;
  const slowly = async <Value>(work: () => Promise<Value>): Promise<Value> => {
    await clock.sleep(18);
    return work();
  };
  await stored.execute(provider, () => 0.5, undefined, {
    store: storeWith(store, {
      record: (...progress) => slowly(() => store.record(...progress)),
      claimTasks: (options) => slowly(() => store.claimTasks(options)),
    }),
  });
  const tookMs = (sentAtMs[700] ?? 0) - (sentAtMs[100] ?? 0);
  expect(600 / tookMs).toBeGreaterThanOrEqual(0.97 * 1.25);
});

it('calls that are ready when the run is stopped are not sent, not counted, and their documents are ready again', async () => {
  stored = await StoredRun.of(texts(40), { concurrency: 4 }, clock);
  const { provider, sentAtMs } = answering(() => GOOD, 1_000);
  let running: SendingWay | null = null;
  const end = stored.execute(
    provider,
    () => 0.5,
    (drain) => {
      running = drain;
      clock.after(1_500, () => running?.stop());
    },
  );
  const { summary } = await end;
  expect(sentAtMs).toHaveLength(5);
  expect(summary.calls).toMatchObject({ made: 5, open: 0, repeated: 0 });
  expect(summary.counts).toMatchObject({ completed: 5, ready: 35 });
  expect(summary.lanes).toMatchObject([{ calls: 5 }]);
});

it('calls that are ready when their lane is silenced do not leave before it speaks again', async () => {
  stored = await StoredRun.of(texts(60), { concurrency: 8 }, clock);
  // The first is answered; of the eight that follow, each is told to wait.
  const { provider, sentAtMs } = answering((call) => (call > 1 && call <= 9 ? THROTTLED : GOOD), 40);
  const limiter = createLimiter({ requestsPerMinute: 6_000, tokensPerMinute: null, random: () => 0.5 });
  const lane = { name: 'lane', weight: 1, provider, limiter, costOf: () => null, mostOf: () => null };
  const { summary } = await stored.executeOver([lane], () => 0.5);
  // Those that were taken back have no place in the minute.
  expect(limiter.snapshot(clock.monotonicMs()).requestsInWindow).toBe(sentAtMs.length);
  expect(summary.counts).toMatchObject({ completed: 60 });
  expect(summary.calls.made).toBe(sentAtMs.length);
  const refusedAtMs = (sentAtMs[1] ?? 0) + 40;
  expect(sentAtMs.filter((atMs) => atMs > refusedAtMs && atMs < refusedAtMs + 5_000)).toEqual([]);
});
