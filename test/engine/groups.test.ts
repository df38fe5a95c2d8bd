/** Several documents in one call: packed, judged one by one, split where the call fails, and billed once. */
import { afterEach, describe, expect, it } from 'vitest';
import type { LeasedTask } from '../../src/core/task.js';
import { Drain } from '../../src/engine/drain.js';
import type { Lane } from '../../src/engine/lane.js';
import type { JoinRequests, PreparedTask } from '../../src/engine/prepared-task.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import type { AnswerPart, Provider, ProviderReply } from '../../src/provider/provider.js';
import { answerOf } from '../support/answered.js';
import { FakeClock } from '../support/fake-clock.js';
import { StoredRun } from '../support/stored-run.js';

const clock = new FakeClock();
let stored: StoredRun | null = null;

afterEach(async () => {
  await stored?.remove();
  stored = null;
});

const textOf = (task: LeasedTask): string => (JSON.parse(task.body) as { text: string }).text;

function prepare(task: LeasedTask): PreparedTask {
  const bodyJson = JSON.stringify(textOf(task));
  return {
    task,
    grouping: { key: 'k', inputs: 1, bounds: { mostInputs: 2_048, mostTokens: 300_000 } },
    request: { endpoint: 'chat', bodyJson, attachments: [] },
    model: 'm',
    cost: () => ({ requests: 1, tokens: 3 }),
    billing: { model: 'm', mostInputTokens: 3, outputCap: 0, serviceTier: null },
    checkOutput: null,
    learn: () => undefined,
  };
}

const join: JoinRequests = (group) => ({
  endpoint: 'chat',
  bodyJson: `[${group.map(({ request }) => request.bodyJson).join()}]`,
  parts: group.length,
});

const vectorOf = (text: string): AnswerPart => ({
  ok: true,
  outputJson: JSON.stringify([text.length, text]),
  text: null,
  finishReason: '',
});

function answer(parts: readonly AnswerPart[], inputTokens = parts.length * 3): ProviderReply {
  const usage = { inputTokens, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 };
  return answerOf(parts, { usage, costMicroUsd: inputTokens * 2, requestId: 'req' });
}

function refusal(
  kind: 'invalid_request' | 'rate_limited' | 'overloaded' | 'too_large',
  httpStatus: number,
): ProviderReply {
  const failure = { kind, httpStatus, message: 'no' };
  return { ok: false, failure, usage: null, costMicroUsd: null, hints: {} };
}

/** Drains documents of these texts. @param reply to a call for some of them */
async function drained(
  texts: readonly string[],
  reply: (texts: readonly string[], call: number) => ProviderReply,
  {
    documents = 64,
    fewest,
    concurrency = 4,
    maxAttempts = 5,
    latencyMs = () => 40,
  }: {
    documents?: number;
    fewest?: number;
    concurrency?: number;
    maxAttempts?: number;
    latencyMs?: (documents: number) => number;
  } = {},
) {
  stored = await StoredRun.of(texts, {}, clock);
  const { store, run } = stored;
  const calls: (readonly string[])[] = [];
  const provider: Provider = {
    async send({ bodyJson }) {
      const asked = JSON.parse(bodyJson) as string[];
      await clock.sleep(latencyMs(asked.length));
      calls.push(asked);
      return reply(asked, calls.length);
    },
    probe: () => Promise.reject(new Error('nobody asks')),
    close: async () => undefined,
  };
  const limiter = createLimiter({ requestsPerMinute: null, tokensPerMinute: null, random: () => 0.5 });
  const lane: Lane = { name: 'lane', weight: 1, provider, limiter, costOf: () => null, mostOf: () => null };
  const drain = new Drain({
    store,
    runId: run.id,
    workerId: 'test',
    lanes: [lane],
    prepare,
    join,
    grouping: { fewest: fewest ?? documents, most: documents, targetLatencyMs: 1_000, waitMs: 100 },
    clock,
    random: () => 0.5,
    concurrency,
    mostConnections: Number.POSITIVE_INFINITY,
    retry: { maxAttempts, maxWaitMs: 3_600_000 },
    timeoutMs: 300_000,
    graceMs: 30_000,
    leaseMs: 30_000,
    isGuarded: true,
    isUntried: false,
    background: { task: 'collect', pollIntervalMs: null, keepRemote: false },
    budget: null,
    tooManyFailures: null,
    salvage: () => Promise.reject(new Error('nothing to salvage')),
  });
  const end = await clock.runUntil(drain.run());
  const rows = await store.readResults({
    runId: run.id,
    only: 'all',
    afterLine: 0,
    limit: 1_000,
    includeBody: false,
  });
  return { end, calls, rows, summary: await store.summarizeRun(run.id) };
}

const numbered = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `document ${index + 1}`);

describe('a group', () => {
  it('is one call, and each of its documents has its own answer', async () => {
    const { calls, rows, summary } = await drained(numbered(130), (texts) => answer(texts.map(vectorOf)));
    expect(calls.map(({ length }) => length)).toEqual([64, 64, 2]);
    expect(summary.counts).toMatchObject({ completed: 130 });
    expect(summary.calls).toMatchObject({ made: 3, open: 0, failed: 0 });
    expect(rows.map(({ result }) => JSON.parse(result?.outputJson ?? 'null') as unknown)).toEqual(
      numbered(130).map((text) => [text.length, text]),
    );
  });

  it('is billed once: the shares of its documents add up to what the server counted', async () => {
    const { rows, summary } = await drained(numbered(50), (texts) => answer(texts.map(vectorOf), 1_001));
    expect(summary.usage.inputTokens).toBe(1_001);
    expect(summary.costMicroUsd).toBe(2_002);
    expect(rows.reduce((sum, { usage }) => sum + (usage?.inputTokens ?? 0), 0)).toBe(1_001);
    expect(rows.reduce((sum, { costMicroUsd }) => sum + (costMicroUsd ?? 0), 0)).toBeCloseTo(2_002, 6);
  });

  it('that fails for one of its documents is split until that one is alone', async () => {
    const texts = numbered(64).map((text, index) => (index === 41 ? 'bad' : text));
    const { calls, summary, rows } = await drained(texts, (asked) =>
      asked.includes('bad') ? refusal('invalid_request', 400) : answer(asked.map(vectorOf)),
    );
    expect(summary.counts).toMatchObject({ completed: 63, failed: 1 });
    expect(calls.length).toBeLessThanOrEqual(14);
    const answered = calls.filter((asked) => !asked.includes('bad')).flat();
    expect(answered.toSorted()).toEqual(texts.filter((text) => text !== 'bad').toSorted());
    expect(rows.filter(({ error }) => error !== null)).toMatchObject([{ line: 42, attempts: 1 }]);
    expect(rows.filter(({ result }) => result !== null).every(({ attempts }) => attempts === 1)).toBe(true);
  });

  it('that a troubled server fails is split too: only the document that is alone uses its attempts', async () => {
    const texts = numbered(32).map((text, index) => (index === 7 ? 'bad' : text));
    const { summary, rows } = await drained(
      texts,
      (asked) => (asked.includes('bad') ? refusal('overloaded', 500) : answer(asked.map(vectorOf))),
      { maxAttempts: 2 },
    );
    expect(summary.counts).toMatchObject({ completed: 31, failed: 1 });
    expect(rows.filter(({ error }) => error !== null)).toMatchObject([{ line: 8, attempts: 2 }]);
  });

  it('that is throttled goes back whole, with no attempt used', async () => {
    const { calls, rows, summary } = await drained(numbered(10), (asked, call) =>
      call === 1 ? refusal('rate_limited', 429) : answer(asked.map(vectorOf)),
    );
    expect(calls.map(({ length }) => length)).toEqual([10, 10]);
    expect(summary.counts).toMatchObject({ completed: 10 });
    expect(rows.every(({ attempts }) => attempts === 1)).toBe(true);
  });

  it('of which one document is not answered tries that one again, and keeps the others', async () => {
    const missing: AnswerPart = { ok: false, failure: { kind: 'bad_output', message: 'no vector for it' } };
    const { calls, rows, summary } = await drained(numbered(10), (asked, call) =>
      answer(asked.map((text) => (call === 1 && text === 'document 4' ? missing : vectorOf(text)))),
    );
    expect(calls.map(({ length }) => length)).toEqual([10, 1]);
    expect(summary.counts).toMatchObject({ completed: 10 });
    expect(rows.map(({ attempts }) => attempts)).toEqual([1, 1, 1, 2, 1, 1, 1, 1, 1, 1]);
  });

  it('all of whose documents a server refuses is no reason to fail them one by one: the run stops', async () => {
    const { end, calls, summary } = await drained(numbered(400), () => refusal('invalid_request', 400));
    expect(end).toMatchObject({ reason: 'halted' });
    expect(calls.length).toBeLessThanOrEqual(20);
    expect(summary.counts).toMatchObject({ completed: 0, failed: 0, ready: 400 });
  });
});

describe('the size of groups', () => {
  it('goes from the fewest to the most as soon as calls are known to be quick, however many are open', async () => {
    const { calls } = await drained(numbered(6_000), (texts) => answer(texts.map(vectorOf)), {
      fewest: 10,
      documents: 100,
      concurrency: 30,
    });
    const sizes = calls.map(({ length }) => length);
    // With sizes between them, as many calls of each would have been packed before the next was known.
    expect([...new Set(sizes)]).toEqual([10, 100]);
    expect(calls.flat().toSorted()).toEqual(numbered(6_000).toSorted());
  });

  it('goes to what calls should take where the server is slower with more, up and down', async () => {
    let made = 0;
    const { calls } = await drained(numbered(2_000), (texts) => answer(texts.map(vectorOf)), {
      fewest: 10,
      documents: 80,
      concurrency: 2,
      latencyMs(documents) {
        made += 1;
        return made < 18 ? 20 + documents * 8 : 20 + documents * 16;
      },
    });
    const sizes = calls.map(({ length }) => length);
    // 100 ms for ten are 600 ms for sixty, or less; 980 ms for sixty are 600 ms for 36, or more.
    expect(sizes.slice(0, 20)).toEqual(expect.arrayContaining([10, 60]));
    expect(Math.max(...sizes)).toBe(60);
    expect(Math.max(...sizes.slice(-10))).toBe(36);
  });

  it('finds the most that a server takes in one call', async () => {
    const { calls, summary } = await drained(
      numbered(2_000),
      (texts) => (texts.length > 32 ? refusal('too_large', 413) : answer(texts.map(vectorOf))),
      { fewest: 10, documents: 100, concurrency: 2 },
    );
    expect(summary.counts).toMatchObject({ completed: 2_000 });
    const refused = calls.filter(({ length }) => length > 32);
    expect(refused.length).toBeLessThanOrEqual(16);
    expect(calls.slice(-10, -2).every(({ length }) => length >= 30 && length <= 32)).toBe(true);
  });
});
