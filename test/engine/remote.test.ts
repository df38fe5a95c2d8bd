/** Remote batches over the whole engine and a real store, on a clock that stands still, against a provider in the test. */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { RunEvent } from '../../src/core/event.js';
import type { Lane } from '../../src/engine/lane.js';
import { linesOfFile } from '../../src/engine/remote/file-lines.js';
import type { SendingWay } from '../../src/engine/sending-way.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import type { ProviderBatchLimits } from '../../src/provider/batch-limits.js';
import type { Provider } from '../../src/provider/provider.js';
import type { FileLine } from '../../src/provider/remote-batches.js';
import type { ExecuteOptions } from '../../src/runs/execute-run.js';
import type { BudgetSettings, PacingSettings, RemoteSettings } from '../../src/runs/run-settings.js';
import { FakeBatches, type FakeBatchesOptions, NETWORK } from '../support/fake-batches.js';
import { FakeClock } from '../support/fake-clock.js';
import { seededRandom } from '../support/seeded-random.js';
import { StoredRun } from '../support/stored-run.js';

const NO_BUDGET: BudgetSettings = { maxCostMicroUsd: null, maxTokensTotal: null, maxFailures: null };
/** A cent an output token and nothing else, so that a request with a cap of one costs exactly that. */
const MICRO_USD = 10_000;

interface Setting {
  readonly documents?: number;
  readonly linesPerBatch?: number;
  readonly remote?: Partial<RemoteSettings>;
  readonly pacing?: Partial<PacingSettings>;
  readonly budget?: Partial<BudgetSettings>;
  readonly server?: Omit<FakeBatchesOptions, 'clock'>;
}

const runs: StoredRun[] = [];
afterEach(async () => {
  for (const run of runs.splice(0)) await run.remove();
});

async function rigOf({ documents = 9, linesPerBatch = 3, remote, pacing, budget, server }: Setting = {}) {
  const clock = new FakeClock();
  const batches = new FakeBatches({ clock, ...server });
  const texts = Array.from({ length: documents }, (_, index) => `text ${index + 1}`);
  const run = await StoredRun.of(
    texts,
    { maxAttempts: 2, ...pacing },
    clock,
    { ...NO_BUDGET, ...budget },
    { max_tokens: 1, model: 'model-1' },
    null,
    { remote: true, ...remote },
  );
  runs.push(run);
  const limits: ProviderBatchLimits = { lines: linesPerBatch, bytes: 1e9, inputs: 1e9 };
  const sent: string[] = [];
  const provider: Provider = {
    async send({ bodyJson }) {
      const { messages } = JSON.parse(bodyJson) as { messages: { content: string }[] };
      const text = messages.at(-1)?.content ?? '';
      sent.push(text);
      return {
        ...{ ok: true, model: 'model-1', costMicroUsd: null, httpStatus: 200, requestId: 'r-2', hints: {} },
        parts: [{ ok: true, outputJson: JSON.stringify(text), text, finishReason: 'stop' }],
        usage: { inputTokens: 10, outputTokens: 1, cachedTokens: 0, reasoningTokens: 0 },
      };
    },
    probe: async () => ({ outcome: 'aborted' }),
    close: async () => undefined,
  };
  const prices: Pick<Lane, 'costOf' | 'mostOf'> = {
    costOf: (_model, usage) => usage.outputTokens * MICRO_USD,
    mostOf: (_model, _input, cap) => (cap ?? 1) * MICRO_USD,
  };
  const lane: Lane = {
    ...{ name: 'lane', weight: 1, provider, ...prices },
    limiter: createLimiter({ requestsPerMinute: null, tokensPerMinute: null, random: () => 0.5 }),
    remote: { batches, limits, bodyFor: (body) => body, ...prices },
  };
  const events: RunEvent[] = [];
  const execute = (changes: Partial<ExecuteOptions> = {}, onDrain?: (way: SendingWay) => void) =>
    run.executeOver([lane], seededRandom(3), onDrain, { tell: (event) => events.push(event), ...changes });
  const answers = async () => {
    const rows = await run.store.readResults({
      runId: run.run.id,
      only: 'all',
      afterLine: 0,
      limit: 1_000,
      includeBody: false,
    });
    return rows.map(({ result, error }) =>
      result === null ? (error?.kind ?? null) : JSON.parse(result.outputJson),
    );
  };
  const told = (type: RunEvent['type']) => events.filter((event) => event.type === type);
  return { clock, batches, run, lane, execute, answers, told, sent, events };
}

const ANSWERS = Array.from({ length: 9 }, (_, index) => `answer to text ${index + 1}`);

describe('a run by remote batches', () => {
  it('hands its documents in by files of one model, polls, and stores what comes of them', async () => {
    const { batches, execute, answers, run, told, sent } = await rigOf();
    const { end, summary } = await execute();
    expect(end).toEqual({ reason: 'drained' });
    expect(await answers()).toEqual(ANSWERS);
    expect(batches.created.map(({ lines }) => lines.length)).toEqual([3, 3, 3]);
    expect(new Set(batches.created.flatMap(({ lines }) => lines.map(({ url }) => url)))).toEqual(
      new Set(['/v1/chat/completions']),
    );
    expect(batches.created[0]?.asked.metadata).toMatchObject({ llm_batch_run: 'docs', llm_batch_shard: '1' });
    expect(summary).toMatchObject({
      costMicroUsd: 9 * MICRO_USD,
      calls: { made: 9 },
      counts: { completed: 9 },
    });
    expect(told('remote_submitted')).toHaveLength(3);
    expect(told('remote_settled')).toHaveLength(3);
    expect(sent, 'sent directly').toEqual([]);
    expect(batches.deleted.sort()).toEqual(['file-1', 'file-2', 'file-3']);
    expect(existsSync(run.batchFolder) ? readdirSync(run.batchFolder) : []).toEqual([]);
    expect(await run.store.maintenance.recount()).toEqual([]);
  });

  it('asks ever more seldom, or as often as it is told', async () => {
    const gapsOf = (atMs: readonly number[]) => atMs.slice(1).map((at, index) => at - (atMs[index] ?? 0));
    const slow = await rigOf({ documents: 1, server: { durationMs: 7_200_000 } });
    await slow.execute();
    const gaps = gapsOf(slow.batches.polledAtMs);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(360_000);
    expect(gaps[0]).toBeLessThan(13_000);
    expect(slow.batches.polledAtMs.length).toBeLessThan(45);
    const quick = await rigOf({ documents: 1, remote: { pollIntervalMs: 1_000 } });
    await quick.execute();
    expect(Math.max(...gapsOf(quick.batches.polledAtMs))).toBeLessThanOrEqual(1_200);
  });

  it('keeps to what may be at the provider at once, and waits where its queue is full, failing nothing', async () => {
    const few = await rigOf({ documents: 12, remote: { remoteMax: 2 }, server: { room: 2 } });
    await few.execute();
    expect(few.told('remote_queue_full')).toEqual([]);
    const full = await rigOf({ server: { room: 1 } });
    const { summary } = await full.execute();
    expect(full.told('remote_queue_full').length).toBeGreaterThan(0);
    expect(summary.counts).toMatchObject({ completed: 9, failed: 0 });
    expect(full.batches.uploads, 'the same file goes in again').toHaveLength(3);
    expect(new Set(full.batches.created.map(({ asked }) => JSON.stringify(asked.metadata))).size).toBe(
      full.batches.created.length,
    );
  });

  it('takes lines in any order, twice, broken or missing: each costs its own document at most a further try', async () => {
    const tries = new Map<string, number>();
    const odd = ['malformed', 'missing', 'unrun', 'twice'] as const;
    const { execute, answers, run } = await rigOf({
      server: {
        fateOf({ text }) {
          const seen = tries.get(text) ?? 0;
          tries.set(text, seen + 1);
          const fate = odd[Number(text.slice(5)) - 1];
          return fate === 'twice' || (fate !== undefined && seen < 2) ? fate : `answer to ${text}`;
        },
      },
    });
    const { summary } = await execute();
    expect(await answers()).toEqual(ANSWERS.map((text, index) => (index === 3 ? 'text 4' : text)));
    expect(summary.calls.made, 'what was not run is no call, a lost line may have been one').toBe(11);
    expect(summary.inDoubt.costMicroUsd).toBe(2 * MICRO_USD);
    expect(
      (
        await run.store.readResults({
          runId: run.run.id,
          only: 'all',
          afterLine: 0,
          limit: 3,
          includeBody: false,
        })
      ).map(({ attempts }) => attempts),
    ).toEqual([2, 2, 1]);
    expect(await run.store.maintenance.recount()).toEqual([]);
  });

  it('gives up a document whose line is missing time and again: each batch may have been billed for it', async () => {
    const { execute, answers, batches } = await rigOf({
      pacing: { maxAttempts: 9 },
      server: { fateOf: ({ text }) => (text === 'text 2' ? 'missing' : `answer to ${text}`) },
    });
    const { summary } = await execute();
    expect(await answers()).toEqual(ANSWERS.map((text, index) => (index === 1 ? 'bad_output' : text)));
    expect(batches.created).toHaveLength(5);
    expect(summary.counts).toMatchObject({ completed: 8, failed: 1 });
  });

  it('stops where there is no room for longer than the run may wait, and tells of it once', async () => {
    const { execute, told, batches, run } = await rigOf({
      documents: 3,
      pacing: { maxWaitMs: 3_600_000 },
      server: { room: 0 },
    });
    const { end } = await execute();
    expect(end).toMatchObject({ reason: 'halted', failure: { kind: 'rate_limited' } });
    expect(told('remote_queue_full')).toHaveLength(1);
    expect(batches.created.length).toBeLessThan(25);
    expect((await run.store.summarizeRun(run.run.id)).counts).toMatchObject({ ready: 3, failed: 0 });
  });

  it('tries failed lines again in a further batch, as often as calls, and fails what cannot be mended', async () => {
    const { execute, answers, batches } = await rigOf({
      server: {
        fateOf: ({ text }) =>
          text === 'text 2'
            ? { failure: { kind: 'overloaded', message: 'busy', httpStatus: 500 } }
            : text === 'text 5'
              ? { failure: { kind: 'invalid_request', message: 'no', httpStatus: 400 } }
              : `answer to ${text}`,
      },
    });
    const { summary } = await execute();
    expect(await answers()).toEqual(
      ANSWERS.map((text, index) => ({ 1: 'overloaded', 4: 'invalid_request' })[index] ?? text),
    );
    expect(batches.created.map(({ lines }) => lines.length)).toEqual([3, 3, 3, 1]);
    expect(summary).toMatchObject({ calls: { made: 10, failed: 3 }, counts: { completed: 7, failed: 2 } });
  });

  it('sends what a batch did not run in time again, with no attempt used', async () => {
    const isFirst = new Set<string>();
    const { execute, answers } = await rigOf({
      server: {
        ending: 'expired',
        fateOf({ text }) {
          const isRun = isFirst.has(text) || Number(text.slice(5)) % 2 === 0;
          isFirst.add(text);
          return isRun ? `answer to ${text}` : 'unrun';
        },
      },
    });
    // The error file is written first or last: either way a line is looked at twice before it is run.
    expect((await execute()).summary.counts).toMatchObject({ completed: 9, failed: 0 });
    expect(await answers()).toEqual(ANSWERS);
  });

  it('fails the documents of a batch that is refused for its own sake, and stops where all would be', async () => {
    const bad = { kind: 'invalid_request', message: 'line 2 is no request' } as const;
    const refused = await rigOf({ server: { failure: bad } });
    expect((await refused.execute()).summary.counts).toMatchObject({ failed: 9 });
    expect(await refused.answers()).toEqual(Array(9).fill('invalid_request'));
    const gone = { kind: 'not_found', message: 'no such model' } as const;
    const halted = await rigOf({ server: { failure: gone } });
    const { end, summary } = await halted.execute();
    expect(end).toMatchObject({ reason: 'halted', failure: gone });
    expect(summary.counts).toMatchObject({ failed: 0, completed: 0 });
  });

  it('stops where batches expire one after the other with nothing run, which costs nothing', async () => {
    const { execute, batches, run } = await rigOf({
      documents: 3,
      pacing: { maxWaitMs: 3_600_000 },
      server: { ending: 'expired', durationMs: 3 * 3_600_000, fateOf: () => 'unrun' },
    });
    const { end } = await execute();
    expect(end).toMatchObject({ reason: 'halted', failure: { kind: 'overloaded' } });
    expect(batches.created).toHaveLength(2);
    expect((await run.store.summarizeRun(run.run.id)).counts).toMatchObject({ ready: 3, failed: 0 });
  });

  it('goes on over the other lanes where one fails for all that is handed in there', async () => {
    const { clock, run, lane, batches, answers, told, events } = await rigOf();
    const gone = { kind: 'not_found', message: 'no such model' } as const;
    const bad = new FakeBatches({ clock, failure: gone });
    const { remote } = lane;
    if (remote === undefined) throw new Error('no batches');
    const badLane: Lane = { ...lane, name: 'bad', weight: 2, remote: { ...remote, batches: bad } };
    const tell = (event: RunEvent) => void events.push(event);
    const { end, summary } = await run.executeOver([badLane, lane], seededRandom(3), undefined, { tell });
    expect(end).toEqual({ reason: 'drained' });
    expect(summary.counts).toMatchObject({ completed: 9, failed: 0 });
    expect(await answers()).toEqual(ANSWERS);
    expect(told('lane_set_aside')).toMatchObject([{ lane: 'bad', failure: gone }]);
    expect(batches.created.flatMap(({ lines }) => lines)).toHaveLength(9);
  });

  it('says since when its server does not answer, and no more once it does', async () => {
    const { execute, batches } = await rigOf({ documents: 3 });
    const retrieve = batches.retrieve.bind(batches);
    const silent: number[] = [];
    let way: SendingWay | null = null;
    let asked = 0;
    batches.retrieve = async (id) => {
      asked += 1;
      silent.push(way?.snapshot().down.length ?? -1);
      return asked <= 3 ? { ok: false, failure: NETWORK } : retrieve(id);
    };
    await execute({}, (begun) => {
      way = begun;
    });
    expect(silent.slice(0, 5)).toEqual([0, 1, 1, 1, 0]);
  });

  it('never creates a batch twice where nobody heard that it was created', async () => {
    const { execute, batches, answers } = await rigOf({ server: { unheard: [1, 3] } });
    await execute();
    expect(batches.created).toHaveLength(3);
    expect(await answers()).toEqual(ANSWERS);
  });
});

describe('a cap on cost', () => {
  it('that allows two of three batches submits two, and the run stops when they are done', async () => {
    const { execute, batches, told, run } = await rigOf({ budget: { maxCostMicroUsd: 6 * MICRO_USD } });
    const { end, summary } = await execute();
    expect(end).toEqual({ reason: 'limit_reached', limit: 'cost' });
    expect(batches.created).toHaveLength(2);
    expect(summary).toMatchObject({ counts: { completed: 6, ready: 3 }, costMicroUsd: 6 * MICRO_USD });
    expect(told('limit_reached')).toHaveLength(1);
    expect(await run.store.maintenance.recount()).toEqual([]);
  });

  it('counts a line that the server refused at nothing, so that its document can be sent again', async () => {
    const tried = new Set<string>();
    const { execute, answers } = await rigOf({
      budget: { maxCostMicroUsd: 9 * MICRO_USD },
      server: {
        // Asked of each line by its name, since both files of a batch ask.
        fateOf({ customId, text }) {
          if (text !== 'text 2') return `answer to ${text}`;
          if (tried.size === 0) tried.add(customId);
          return tried.has(customId)
            ? { failure: { kind: 'overloaded', message: 'busy', httpStatus: 500 } }
            : `answer to ${text}`;
        },
      },
    });
    expect((await execute()).end).toEqual({ reason: 'drained' });
    expect(await answers()).toEqual(ANSWERS);
  });

  it('counts what is at the provider also after a restart', async () => {
    const { execute, batches } = await rigOf({
      budget: { maxCostMicroUsd: 6 * MICRO_USD },
      remote: { remoteMax: 1 },
    });
    expect((await execute({ waits: false })).end).toEqual({ reason: 'left' });
    expect(batches.created).toHaveLength(1);
    await execute();
    expect(batches.created).toHaveLength(2);
  });
});

describe('a run that leaves its batches with the provider', () => {
  it('without waiting hands in what it may, and each later start fetches what is done', async () => {
    const { execute, answers, told, clock, run } = await rigOf({ server: { durationMs: 36_000_000 } });
    const first = await execute({ waits: false });
    expect(first.end).toEqual({ reason: 'left' });
    expect(first.run.status).toBe('open');
    expect(first.summary.counts).toMatchObject({ in_progress: 9 });
    expect(told('remote_left')).toMatchObject([{ batches: 3, documents: 9 }]);
    expect((await execute({ waits: false })).end).toEqual({ reason: 'left' });
    await clock.advance(36_000_000);
    const last = await execute({ waits: false });
    expect(last.end).toEqual({ reason: 'drained' });
    expect(last.run.status).toBe('finished');
    expect(await answers()).toEqual(ANSWERS);
    expect(await run.store.maintenance.recount()).toEqual([]);
  });

  it('when it is stopped, and says so', async () => {
    const { execute, told, batches, answers } = await rigOf();
    const stop = { count: 0, subscribe: () => () => undefined };
    let way: SendingWay | null = null;
    const { end } = await execute(
      {
        stop,
        tell: (event) => {
          if (event.type === 'remote_polled' && event.shard === 3) way?.stop();
        },
      },
      (ready) => {
        way = ready;
      },
    );
    expect(end).toEqual({ reason: 'stopped' });
    expect(batches.cancelled).toEqual([]);
    await execute();
    expect(batches.created).toHaveLength(3);
    expect(await answers()).toEqual(ANSWERS);
    expect(told('remote_submitted'), 'not again').toEqual([]);
  });

  it('is sent directly from a time on: what is not done is cancelled, and what was answered until then is taken', async () => {
    const { execute, answers, batches, sent, told } = await rigOf({
      remote: { finishDirectByMs: 3_600_000 },
      server: { durationMs: 86_400_000 },
    });
    const { end, summary } = await execute();
    expect(end).toEqual({ reason: 'drained' });
    expect(batches.cancelled.sort()).toEqual(['batch-1', 'batch-2', 'batch-3']);
    expect(told('remote_overdue')).toHaveLength(3);
    expect(sent.sort()).toEqual(['text 2', 'text 5', 'text 8']);
    expect((await answers()).filter((answer) => String(answer).startsWith('answer to'))).toHaveLength(6);
    expect(summary.counts).toMatchObject({ completed: 9 });
  });
});

describe('a process that dies', () => {
  class Death extends Error {}

  /**
   * Dies at a step, a request or an access to the store, before or after that has had its effect; nothing works afterwards.
   * @param last by its number, or the first of its name
   */
  function mortal(last: number | string, after: boolean) {
    let done = 0;
    let isDead = false;
    const guard = async <Value>(name: string, work: () => Promise<Value>): Promise<Value> => {
      done += 1;
      if (isDead) throw new Death();
      isDead = done === last || name === last;
      const isLast = isDead;
      if (isLast && !after) throw new Death();
      const value = await work();
      if (isDead) throw new Death();
      return value;
    };
    const wrap = <Target extends object>(
      target: Target,
      deep: readonly string[] = [],
      plain: readonly string[] = [],
    ): Target =>
      new Proxy(target, {
        get(_, name: string) {
          const value = Reflect.get(target, name) as unknown;
          if (deep.includes(name)) return wrap(value as object);
          if (typeof value !== 'function') return value;
          if (plain.includes(name)) return value.bind(target);
          return (...values: unknown[]) =>
            guard(name, () => Reflect.apply(value, target, values) as Promise<unknown>);
        },
      });
    return { wrap, count: () => done };
  }

  it('at any of its steps leaves nothing created twice, nothing answered twice and nothing lost', async () => {
    // How many steps there are shows a run that nothing happens to.
    const whole = await rigOf({ documents: 7 });
    const counter = mortal(Number.POSITIVE_INFINITY, false);
    const counted = (rig: typeof whole, life: ReturnType<typeof mortal>) => ({
      store: life.wrap(rig.run.store, ['remote'], ['listRuns', 'noteStop']),
    });
    const lanesOf = (rig: typeof whole, life: ReturnType<typeof mortal>): Lane[] => {
      const { remote } = rig.lane;
      if (remote === undefined) throw new Error('no batches');
      return [{ ...rig.lane, remote: { ...remote, batches: life.wrap(rig.batches, [], ['readLine']) } }];
    };
    await whole.run.executeOver(lanesOf(whole, counter), seededRandom(3), undefined, counted(whole, counter));
    const steps = counter.count();
    expect(steps).toBeGreaterThan(40);
    const random = seededRandom(20_251);
    const deaths = [
      ...['give', 'upload', 'create', 'retrieve', 'download', 'settle'].map((name) => [name, true] as const),
      ...Array.from({ length: 6 }, () => [1 + Math.floor(random() * steps), random() < 0.5] as const),
    ];
    for (const [step, after] of deaths) {
      const rig = await rigOf({ documents: 7 });
      const life = mortal(step, after);
      const where = `death ${after ? 'after' : 'before'} ${step}`;
      await expect(
        rig.run.executeOver(lanesOf(rig, life), seededRandom(3), undefined, counted(rig, life)),
        where,
      ).rejects.toThrow(Death);
      const { end, summary } = await rig.execute();
      expect(end, where).toEqual({ reason: 'drained' });
      expect(await rig.answers(), where).toEqual(ANSWERS.slice(0, 7));
      const files = rig.batches.created.map(({ asked }) => asked.metadata['llm_batch_file']);
      expect(new Set(files).size, where).toBe(files.length);
      const asked = rig.batches.created.flatMap(({ lines }) => lines.map(({ text }) => text));
      expect(asked.sort(), where).toEqual(Array.from({ length: 7 }, (_, index) => `text ${index + 1}`));
      expect(summary.costMicroUsd, where).toBe(rig.batches.billed.size * MICRO_USD);
      expect(await rig.run.store.maintenance.recount(), where).toEqual([]);
    }
  });
});

it('lines of files come as they are, and tell where their bytes are no text', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'llm-batch-lines-'));
  const path = join(folder, 'lines.jsonl');
  writeFileSync(
    path,
    Buffer.concat([Buffer.from('a\n\n'), Buffer.from([0x62, 0xff, 0x0a]), Buffer.from('c')]),
  );
  const lines: FileLine[] = [];
  for await (const line of linesOfFile(path)) lines.push(line);
  rmSync(folder, { recursive: true });
  expect(lines).toEqual([
    { text: 'a', isUtf8: true },
    { text: 'b\ufffd', isUtf8: false },
    { text: 'c', isUtf8: true },
  ]);
});
