/** Nothing is sent, told or lost but as the store has it: a run over a real store that may fail at any commit. */
import { existsSync, readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EXIT_CODES, LlmBatchError } from '../../src/core/errors.js';
import type { RunEvent } from '../../src/core/event.js';
import type { Settlement, TaskOutcome } from '../../src/core/outcome.js';
import type { Lane } from '../../src/engine/lane.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import type { Provider } from '../../src/provider/provider.js';
import type { ExecuteOptions } from '../../src/runs/execute-run.js';
import type { Store } from '../../src/store/store.js';
import { FakeClock } from '../support/fake-clock.js';
import { judgedProvider } from '../support/judged-provider.js';
import { storeWith } from '../support/store-with.js';
import { StoredRun } from '../support/stored-run.js';

const FULL = new LlmBatchError('The disk is full.', { code: 'STORE_FULL', exitCode: EXIT_CODES.store });
const BROKEN = new LlmBatchError('The disk is broken.', { code: 'STORE_IO', exitCode: EXIT_CODES.store });

let clock: FakeClock;
let run: StoredRun;
let database: Database.Database;

beforeEach(() => {
  clock = new FakeClock();
});

afterEach(async () => {
  database.close();
  await run.remove();
});

async function storedRun(texts: readonly string[], concurrency = 16): Promise<void> {
  run = await StoredRun.of(texts, { concurrency }, clock);
  database = new Database(run.storePath, { readonly: true });
}

function texts(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `Document number ${index + 1}, to be kept.`);
}

function drain(
  provider: Provider,
  changes: Partial<ExecuteOptions> = {},
  requestsPerMinute: number | null = null,
) {
  const limiter = createLimiter({ requestsPerMinute, tokensPerMinute: null, random: () => 0.5 });
  const lane: Lane = { name: 'lane', weight: 1, provider, limiter, costOf: () => null, mostOf: () => null };
  return run.executeOver([lane], () => 0.5, undefined, changes);
}

/** The first number that a query of our own finds. */
function count(sql: string): number {
  return database.prepare<[], number>(sql).pluck().get() ?? 0;
}

const OPEN_CALLS = 'SELECT count(*) FROM calls WHERE finished_at_ms IS NULL';
const ANSWERS = 'SELECT count(*) FROM results WHERE output_json IS NOT NULL';

type Record = Store['record'];

describe('a call', () => {
  it('is in the ledger before it leaves', async () => {
    await storedRun(texts(20), 5);
    const server = judgedProvider({ latencyMs: 50 }, clock);
    let open = 0;
    const unwritten: number[] = [];
    const { summary } = await drain({
      ...server,
      async send(...given) {
        open += 1;
        if (count(OPEN_CALLS) < open) unwritten.push(open);
        const reply = await server.send(...given);
        open -= 1;
        return reply;
      },
    });
    expect(summary.counts).toMatchObject({ completed: 20 });
    expect(unwritten).toEqual([]);
  });

  it('is not made while the disk is full, and made once when there is room', async () => {
    await storedRun(texts(12), 4);
    const fullUntilMs = clock.monotonicMs() + 20_000;
    const notices: RunEvent['type'][] = [];
    const server = judgedProvider({}, clock);
    const store = storeWith(run.store, {
      record: (...given) =>
        clock.monotonicMs() < fullUntilMs ? Promise.reject(FULL) : run.store.record(...given),
    });
    const tell = ({ type }: RunEvent): void => {
      if (type.startsWith('store_')) notices.push(type);
    };
    // As many a minute as there are documents: a try that came to nothing must not count.
    const { summary } = await drain(server, { store, tell }, 12);
    expect(clock.monotonicMs()).toBeLessThan(fullUntilMs + 10_000);
    expect(summary.counts).toMatchObject({ completed: 12 });
    expect(server.arrivals).toHaveLength(12);
    expect(server.arrivals.every(({ atMs }) => atMs >= fullUntilMs)).toBe(true);
    expect(notices[0]).toBe('store_trouble');
    expect(notices.at(-1)).toBe('store_recovered');
    expect(existsSync(run.salvagePath)).toBe(false);
  });
});

describe('an answer', () => {
  it('is told only when it is on the disk', async () => {
    await storedRun(texts(30), 8);
    let told = 0;
    const early: number[] = [];
    await drain(judgedProvider({ latencyMs: { min: 1, max: 40 } }, clock), {
      async onAnswers(taskIds) {
        told += taskIds.length;
        if (count(ANSWERS) < told) early.push(told);
      },
    });
    expect(told).toBe(30);
    expect(early).toEqual([]);
  });

  it('shares its commit with those that came at the same time', async () => {
    await storedRun(texts(128), 64);
    let commits = 0;
    await drain(judgedProvider({ latencyMs: 1_000 }, clock), {
      store: storeWith(run.store, {
        record(...given) {
          commits += 1;
          return run.store.record(...given);
        },
      }),
    });
    expect(count(ANSWERS)).toBe(128);
    expect(commits).toBeLessThan(24);
  });

  it('that was paid for is kept while the disk is full, and not paid for again', async () => {
    await storedRun(texts(10), 10);
    let fullUntilMs = Number.POSITIVE_INFINITY;
    const record: Record = (starts, settlements) => {
      if (settlements.length > 0 && fullUntilMs === Number.POSITIVE_INFINITY) {
        fullUntilMs = clock.monotonicMs() + 30_000;
      }
      const isFull = settlements.length > 0 && clock.monotonicMs() < fullUntilMs;
      return isFull ? Promise.reject(FULL) : run.store.record(starts, settlements);
    };
    const server = judgedProvider({ latencyMs: 100 }, clock);
    const { summary } = await drain(server, { store: storeWith(run.store, { record }) });
    expect(summary.counts).toMatchObject({ completed: 10 });
    expect(server.arrivals).toHaveLength(10);
    expect(existsSync(run.salvagePath)).toBe(false);
  });

  it('is not told as progress where the document is no longer ours', async () => {
    await storedRun(texts(1), 1);
    const server = judgedProvider({ latencyMs: 1_000 }, clock);
    const told: number[] = [];
    let stolen = false;
    const { summary } = await drain(server, {
      store: storeWith(run.store, {
        async record(starts, settlements) {
          if (settlements.length > 0 && !stolen) {
            stolen = true;
            await run.store.rescueTasks({ workers: ['test'], crashLimit: 9 });
          }
          return run.store.record(starts, settlements);
        },
      }),
      onAnswers: async (taskIds) => void told.push(...taskIds),
    });
    expect(summary.counts).toMatchObject({ completed: 1 });
    // Once, for the answer that was kept.
    expect(told).toEqual([1]);
    expect(server.arrivals).toHaveLength(2);
  });
});

describe('a store that takes nothing more', () => {
  /** Breaks at the first commit with such an outcome, when so many commits of outcomes have gone well. */
  function breaking(action: TaskOutcome['action'], commits = 0): Store {
    let isBroken = false;
    let left = commits;
    return storeWith(run.store, {
      record(starts, settlements) {
        if (settlements.length > 0) left -= 1;
        isBroken ||= left < 0 && settlements.some(({ outcomes }) => outcomes[0]?.action === action);
        return isBroken ? Promise.reject(BROKEN) : run.store.record(starts, settlements);
      },
    });
  }

  function salvaged(): Settlement[] {
    return readFileSync(run.salvagePath, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Settlement);
  }

  it('ends the run, and what was paid for is stored by the next start, not sent again', async () => {
    await storedRun(texts(9), 3);
    const server = judgedProvider({ latencyMs: 100 }, clock);
    const notices: RunEvent[] = [];
    const store = breaking('completed', 1);
    const drained = drain(server, { store, tell: (event) => void notices.push(event) });
    await expect(drained).rejects.toBe(BROKEN);
    const paid = salvaged();
    expect(paid.length).toBeGreaterThanOrEqual(3);
    expect(new Set(paid.map(({ outcomes }) => outcomes[0]?.action))).toEqual(new Set(['completed']));
    expect(notices.filter(({ type }) => type === 'salvaged')).not.toEqual([]);
    expect(count(ANSWERS)).toBe(server.arrivals.length - paid.length);

    const { summary } = await drain(server);
    expect(summary.counts).toMatchObject({ completed: 9 });
    expect(summary.calls).toMatchObject({ made: 9, open: 0, repeated: 0 });
    expect(server.arrivals).toHaveLength(9);
    expect(existsSync(run.salvagePath)).toBe(false);
  });

  it('leaves what became of refused calls to the next start too: the ledger knows them as refused, not as lost', async () => {
    await storedRun(['Good.', ...texts(4).map((text) => `[[simulate:429]] ${text}`)], 5);
    const refusing = judgedProvider({ headers: 'none' }, clock);
    await expect(drain(refusing, { store: breaking('released') })).rejects.toBe(BROKEN);
    const refused = salvaged().filter(({ outcomes }) => outcomes[0]?.action === 'released');
    expect(refused).not.toEqual([]);
    expect(refused.map(({ call }) => call !== null && 'kind' in call && call.kind)).toEqual(
      refused.map(() => 'rate_limited'),
    );

    const { summary } = await drain(judgedProvider({ directives: false }, clock));
    expect(summary.counts).toMatchObject({ completed: 5 });
    expect(summary.calls).toMatchObject({ open: 0, failed: refused.length, repeated: 0 });
    expect(summary.lanes).toMatchObject([{ throttled: refused.length }]);
  });

  it('leaves nothing behind for documents that no call was made for', async () => {
    await storedRun(texts(3), 3);
    const noCall = storeWith(run.store, { record: () => Promise.reject(BROKEN) });
    const server = judgedProvider({}, clock);
    await expect(drain(server, { store: noCall })).rejects.toBe(BROKEN);
    expect(server.arrivals).toEqual([]);
    expect(existsSync(run.salvagePath)).toBe(false);
    expect((await drain(server)).summary.counts).toMatchObject({ completed: 3 });
  });
});
