/** Background responses over the whole engine and a real store, on a clock that stands still, against a server in the test. */
import { afterEach, describe, expect, it } from 'vitest';
import type { RunEvent } from '../../src/core/event.js';
import type { ProviderFailure } from '../../src/core/failure.js';
import type { Lane } from '../../src/engine/lane.js';
import type { SendingWay } from '../../src/engine/sending-way.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import type { Provider } from '../../src/provider/provider.js';
import type { RemoteResponses, ResponseReply } from '../../src/provider/remote-responses.js';
import type { BudgetSettings, PacingSettings, RemoteSettings } from '../../src/runs/run-settings.js';
import { FakeClock } from '../support/fake-clock.js';
import { seededRandom } from '../support/seeded-random.js';
import { StoredRun } from '../support/stored-run.js';

/** A cent an output token and nothing else, so that a request with a cap of one costs exactly that. */
const MICRO_USD = 10_000;

interface Setting {
  readonly documents?: number;
  /** From a response's creation to its end. */
  readonly durationMs?: number;
  readonly rpm?: number;
  readonly pacing?: Partial<PacingSettings>;
  readonly remote?: Partial<RemoteSettings>;
  readonly budget?: Partial<BudgetSettings>;
}

const runs: StoredRun[] = [];
afterEach(async () => {
  for (const run of runs.splice(0)) await run.remove();
});

/** What a look at a response meets; null: how it stands. */
type Meets = (look: number, id: string) => ProviderFailure | null;

async function rigOf({ documents = 6, durationMs = 600_000, rpm, pacing, remote, budget }: Setting = {}) {
  const clock = new FakeClock();
  const run = await StoredRun.of(
    Array.from({ length: documents }, (_, index) => `text ${index + 1}`),
    { concurrency: 4, maxAttempts: 3, ...pacing },
    clock,
    { maxCostMicroUsd: null, maxTokensTotal: null, maxFailures: null, ...budget },
    { max_output_tokens: 1, model: 'model-1' },
    'responses',
    { background: true, ...remote },
  );
  runs.push(run);
  const server = {
    created: [] as { id: string; text: string; atMs: number }[],
    looksAtMs: new Map<string, number[]>(),
    removed: [] as string[],
    cancelled: [] as string[],
    mostOpen: 0,
    meets: (() => null) as Meets,
  };
  const answerOf = (text: string): ResponseReply => ({
    ...{ ok: true, model: 'model-1', costMicroUsd: null, httpStatus: 200, requestId: 'r', hints: {} },
    parts: [{ ok: true, outputJson: JSON.stringify(`answer to ${text}`), text, finishReason: 'stop' }],
    usage: { inputTokens: 10, outputTokens: 1, cachedTokens: 0, reasoningTokens: 0 },
  });
  const standing = (id: string): ResponseReply => {
    const { text, atMs } = server.created.find((one) => one.id === id) as (typeof server.created)[number];
    return clock.monotonicMs() - atMs >= durationMs
      ? answerOf(text)
      : { ok: true, isOpen: true, id, state: 'queued', usage: null, hints: {} };
  };
  const responses: RemoteResponses = {
    async create({ bodyJson }) {
      const { input } = JSON.parse(bodyJson) as { input: string | [{ content: string }] };
      const text = typeof input === 'string' ? input : input[0].content;
      const id = `resp-${server.created.length + 1}`;
      server.created.push({ id, text, atMs: clock.monotonicMs() });
      const open = server.created.filter((one) => clock.monotonicMs() - one.atMs < durationMs);
      server.mostOpen = Math.max(server.mostOpen, open.length);
      return standing(id);
    },
    async retrieve(id) {
      const looks = server.looksAtMs.get(id) ?? [];
      server.looksAtMs.set(id, [...looks, clock.monotonicMs()]);
      const failure = server.meets(looks.length + 1, id);
      return failure === null ? { ok: true, value: standing(id) } : { ok: false, failure };
    },
    async cancel(id) {
      server.cancelled.push(id);
      return { ok: true, value: standing(id) };
    },
    async remove(id) {
      server.removed.push(id);
      return { ok: true, value: null };
    },
  };
  const provider: Provider = {
    send: () => Promise.reject(new Error('sent directly')),
    probe: async () => ({ outcome: 'aborted' }),
    close: async () => undefined,
  };
  const lane: Lane = {
    ...{ name: 'lane', weight: 1, provider, responses },
    limiter: createLimiter({ requestsPerMinute: rpm ?? null, tokensPerMinute: null, random: () => 0.5 }),
    costOf: (_model, usage) => usage.outputTokens * MICRO_USD,
    mostOf: (_model, _input, cap) => (cap ?? 1) * MICRO_USD,
  };
  const events: RunEvent[] = [];
  const execute = (onDrain?: (way: SendingWay) => void) =>
    run.executeOver([lane], seededRandom(3), onDrain, { tell: (event) => events.push(event) });
  const told = (type: RunEvent['type']) => events.filter((event) => event.type === type);
  return { clock, run, server, execute, told };
}

const gapsOf = (atMs: readonly number[]) => atMs.slice(1).map((at, index) => at - (atMs[index] ?? 0));
const GONE: ProviderFailure = { kind: 'not_found', message: 'no such response', httpStatus: 404 };

describe('background responses', () => {
  it('are asked for ever more seldom, or as often as is told, and each look is no call', async () => {
    const slow = await rigOf({ documents: 1, durationMs: 400_000 });
    const { summary } = await slow.execute();
    expect(summary).toMatchObject({ counts: { completed: 1 }, calls: { made: 1 } });
    const looks = slow.server.looksAtMs.get('resp-1') ?? [];
    expect(looks[0]).toBeLessThan(1_300);
    const gaps = gapsOf(looks);
    expect(Math.max(...gaps)).toBeGreaterThan(24_000);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(36_000);
    expect(looks.length).toBeLessThan(25);
    expect([slow.told('call_started').length, slow.told('call_ended').length]).toEqual([1, 1]);
    const quick = await rigOf({ documents: 1, durationMs: 60_000, remote: { pollIntervalMs: 5_000 } });
    await quick.execute();
    const often = gapsOf(quick.server.looksAtMs.get('resp-1') ?? []);
    expect([Math.min(...often) >= 4_000, Math.max(...often) <= 6_000]).toEqual([true, true]);
  });

  it('take a place of the concurrency until they have ended, pass the limits once, and are removed when they are stored', async () => {
    const { server, execute, run } = await rigOf({ documents: 12, rpm: 6, durationMs: 120_000 });
    const { end, summary } = await execute();
    expect(end).toEqual({ reason: 'drained' });
    expect(summary).toMatchObject({ counts: { completed: 12 }, costMicroUsd: 12 * MICRO_USD });
    expect(server.mostOpen).toBe(4);
    const atMs = server.created.map((one) => one.atMs);
    for (const at of atMs)
      expect(atMs.filter((other) => other >= at && other < at + 60_000).length).toBeLessThan(7);
    expect(server.removed.toSorted()).toEqual(server.created.map(({ id }) => id).toSorted());
    expect(await run.store.maintenance.recount()).toEqual([]);
  });

  it('go on while the program does not run, and the next start fetches them: none is asked for anew', async () => {
    const { server, execute, run, clock, told } = await rigOf({ documents: 4 });
    const stopped = await execute((way) => clock.after(10_000, () => way.stop()));
    expect(stopped.end).toEqual({ reason: 'stopped' });
    expect(stopped.summary.counts).toMatchObject({ in_progress: 4, completed: 0 });
    expect(told('responses_left')).toEqual([{ type: 'responses_left', responses: 4 }]);
    expect((await run.store.summarizeRun(run.run.id)).inDoubt.calls).toBe(0);
    await clock.advance(3_600_000);
    const { end, summary } = await execute();
    expect(end).toEqual({ reason: 'drained' });
    expect(summary).toMatchObject({ counts: { completed: 4 }, calls: { made: 4, open: 0 } });
    expect(server.created).toHaveLength(4);
    expect(server.removed).toHaveLength(4);
  });

  it('count under a cap on cost before they are done, over a restart as well', async () => {
    const { server, execute, clock } = await rigOf({
      documents: 5,
      pacing: { concurrency: 2 },
      budget: { maxCostMicroUsd: 3 * MICRO_USD },
    });
    await execute((way) => clock.after(10_000, () => way.stop()));
    expect(server.created).toHaveLength(2);
    const { end, summary } = await execute();
    expect(end).toEqual({ reason: 'limit_reached', limit: 'cost' });
    expect(server.created).toHaveLength(3);
    expect(summary).toMatchObject({ counts: { completed: 3, ready: 2 }, costMicroUsd: 3 * MICRO_USD });
  });

  it('are not given up for one look that does not find them; after a second the document is asked again, and the first may have been billed', async () => {
    const { server, execute } = await rigOf({ documents: 2 });
    server.meets = (look, id) => (look === 1 || id === 'resp-1' ? GONE : null);
    const { summary } = await execute();
    expect(server.created.map(({ text }) => text)).toEqual(['text 1', 'text 2', 'text 1']);
    expect(summary).toMatchObject({
      counts: { completed: 2 },
      inDoubt: { calls: 1, costMicroUsd: MICRO_USD },
    });
  });

  it('stay where they are when their server does not let us ask any more, and the run stops', async () => {
    const { server, execute } = await rigOf({ documents: 3 });
    server.meets = () => ({ kind: 'auth', message: 'the key was revoked', httpStatus: 401 });
    const { end, summary } = await execute();
    expect(end).toMatchObject({ reason: 'halted', failure: { kind: 'auth' }, lane: 'lane' });
    expect(summary.counts).toMatchObject({ in_progress: 3, failed: 0 });
    server.meets = () => null;
    expect((await execute()).summary.counts).toMatchObject({ completed: 3 });
    expect(server.created).toHaveLength(3);
  });

  it('wait out a server that is gone, for as long as a run may wait for one', async () => {
    const { server, execute, clock } = await rigOf({ documents: 2, pacing: { maxWaitMs: 3_600_000 } });
    const untilMs = 1_800_000;
    server.meets = () =>
      clock.monotonicMs() < untilMs ? { kind: 'network', message: 'connection refused' } : null;
    const { summary } = await execute();
    expect(summary).toMatchObject({ counts: { completed: 2 }, calls: { made: 2, failed: 0 } });
    expect(server.created).toHaveLength(2);
  });
});
