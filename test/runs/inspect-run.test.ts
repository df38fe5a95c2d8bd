/** What `status` tells of a run that another process may be draining. */
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunRecord } from '../../src/core/run.js';
import { inspectRun } from '../../src/runs/inspect-run.js';
import { settingsToJson } from '../../src/runs/run-settings.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';
import { callEnd, callStart, claim, completed, document } from '../contract/store/builders.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryFolder } from '../support/program.js';
import { runSettingsOf } from '../support/run-settings.js';

const LANE = 'OPENAI_API_KEY@api.openai.com';
const MINUTE_MS = 60_000;

let clock: FakeClock;
let folder: ReturnType<typeof temporaryFolder>;
let store: Store;

beforeEach(async () => {
  clock = new FakeClock();
  folder = temporaryFolder();
  store = await openStore(join(folder.path, 'llm-batch.db'), { mode: 'write', clock });
});

afterEach(async () => {
  await store.close();
  folder.remove();
});

async function make(requests: readonly string[], flags: Record<string, unknown> = {}): Promise<RunRecord> {
  const settings = await runSettingsOf({ flags });
  const run = await store.createRun({
    name: 'docs',
    inputPath: '/data/docs.jsonl',
    simulated: false,
    settings: settingsToJson(settings, { folder: null }),
    createdAtMs: clock.now(),
  });
  await store.addTasks(
    run.id,
    requests.map((request, index) => document(index + 1, { requestHash: `sha256:${request.repeat(20)}` })),
  );
  return store.updateRun(run.id, { status: 'open' });
}

/** Answers so many documents now. */
async function answer(run: RunRecord, count: number): Promise<void> {
  for (const task of await claim(store, run.id, count)) {
    const start = callStart(run.id, task, { startedAtMs: clock.now(), reservedTokens: 500, lane: LANE });
    const { callIds } = await store.record([start], []);
    await store.record([], [completed(task, callEnd(callIds[0] ?? 0))]);
  }
}

function texts(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${index}.`);
}

/** As the process that drains does. */
function drainBegins(runName: string): Promise<void> {
  return store.acquireDrainLock({ pid: process.pid, host: 'here', runName, sinceMs: clock.now() });
}

describe('a run that is drained', () => {
  it('is done when as many calls are made as documents are left, at the pace of the last minute', async () => {
    const run = await make(texts(60));
    await drainBegins('docs');
    await answer(run, 20);
    await clock.advance(30_000);
    const { requestsPerMinute, tokensPerMinute, etaMs } = await inspectRun(store, run, clock);
    expect(requestsPerMinute).toBe(20);
    expect(tokensPerMinute).toBe(20 * 150);
    // 20 in the half minute that the drain goes on, 40 are left.
    expect(etaMs).toBe(MINUTE_MS);
  });

  it('counts the last minute alone', async () => {
    const run = await make(texts(30));
    await drainBegins('docs');
    await answer(run, 10);
    await clock.advance(2 * MINUTE_MS);
    await answer(run, 6);
    const { requestsPerMinute, etaMs } = await inspectRun(store, run, clock);
    expect(requestsPerMinute).toBe(6);
    expect(etaMs).toBe((14 / 6) * MINUTE_MS);
  });

  it('does not wait for documents that wait for the answer to an equal one', async () => {
    const run = await make([...texts(20), ...Array<string>(20).fill('19.')]);
    const sharing = { runId: run.id, dedupe: true, reuseFrom: [] };
    let cursor: string | null = null;
    do cursor = await store.pairTasks(sharing, cursor, 1_000);
    while (cursor !== null);
    await drainBegins('docs');
    await answer(run, 10);
    await clock.advance(MINUTE_MS / 2);
    const { summary, etaMs } = await inspectRun(store, run, clock);
    expect(summary.shared.waiting).toBe(20);
    expect(etaMs).toBe(MINUTE_MS / 2);
  });

  it('has no end in sight after a few calls, or where another run of the store is drained', async () => {
    const run = await make(texts(30));
    await drainBegins('another');
    await answer(run, 10);
    await clock.advance(10_000);
    const inspection = await inspectRun(store, run, clock);
    expect(inspection.owner).toBeNull();
    expect(inspection.etaMs).toBeNull();
  });
});

describe('the limits of a run', () => {
  const learn = async (run: RunRecord, requestsPerMinute: number | null, lane = LANE) => {
    const value = { requestsPerMinute, tokensPerMinute: null, requestsPerDay: null };
    await store.noteObservations(run.id, [{ kind: 'learnt_limit', subject: lane, value }]);
    return (await store.listRuns()).find(({ id }) => id === run.id) ?? run;
  };

  it.each([
    [600, 500, 500],
    [400, 500, 400],
    [undefined, 500, 500],
    [600, null, 600],
    [undefined, null, null],
  ])('given as %s and learnt as %s are %s', async (given, learnt, limit) => {
    const run = await learn(await make(texts(1), given === undefined ? {} : { rpm: given }), learnt);
    const { requestsPerMinuteLimit, tokensPerMinuteLimit } = await inspectRun(store, run, clock);
    expect(requestsPerMinuteLimit).toBe(limit);
    expect(tokensPerMinuteLimit).toBeNull();
  });

  it('learnt by a lane that it has no more are not its own', async () => {
    const run = await learn(await make(texts(1)), 500, 'OLD_KEY@api.openai.com');
    expect((await inspectRun(store, run, clock)).requestsPerMinuteLimit).toBeNull();
  });

  it('of several lanes are the sum, where each is known', async () => {
    const run = await make(texts(1), { apiKeyEnv: ['A', 'B'], rpm: 100 });
    expect((await inspectRun(store, run, clock)).requestsPerMinuteLimit).toBe(200);
  });

  it('of several lanes are unknown where one is', async () => {
    const run = await make(texts(1), { apiKeyEnv: ['A', 'B'] });
    const learnt = await learn(run, 100, 'A@api.openai.com');
    expect((await inspectRun(store, learnt, clock)).requestsPerMinuteLimit).toBeNull();
  });
});
