/** A worker over a real store with several runs, on a clock that the test holds. */
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { usageError } from '../../src/core/errors.js';
import type { RunEvent } from '../../src/core/event.js';
import type { RunRecord } from '../../src/core/run.js';
import type { LeasedTask } from '../../src/core/task.js';
import type { Lane } from '../../src/engine/lane.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import { type PacingSettings, settingsToJson } from '../../src/runs/run-settings.js';
import { type WorkOptions, work } from '../../src/runs/work.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';
import { FakeClock } from '../support/fake-clock.js';
import { type JudgedProvider, judgedProvider } from '../support/judged-provider.js';
import { temporaryFolder } from '../support/program.js';
import { storeWith } from '../support/store-with.js';
import { plainRunSettings } from '../support/stored-run.js';

const SECOND_MS = 1_000;
const random = (): number => 0.5;

let clock: FakeClock;
let folder: ReturnType<typeof temporaryFolder>;
let store: Store;
let server: JudgedProvider;
let events: [RunEvent['type'], string | null][];
let stopRequests: { count: number; listeners: Set<(count: number) => void> };

beforeEach(async () => {
  clock = new FakeClock();
  folder = temporaryFolder();
  store = await openStore(join(folder.path, 'llm-batch.db'), { mode: 'write', clock });
  server = judgedProvider({ latencyMs: 100, headers: 'none' }, clock);
  events = [];
  stopRequests = { count: 0, listeners: new Set() };
});

afterEach(async () => {
  await store.close();
  folder.remove();
});

interface Documents {
  readonly count: number;
  readonly priority?: number;
  readonly pacing?: Partial<PacingSettings>;
  /** Of the server, so that runs may go to different ones. */
  readonly baseUrl?: string;
  /** By the provider's batches. */
  readonly remote?: boolean;
}

async function addRun(
  name: string,
  { count, priority = 0, pacing, baseUrl, remote = false }: Documents,
): Promise<RunRecord> {
  const plain = plainRunSettings({ concurrency: 4, ...pacing });
  const settings = { ...plain, remote: { ...plain.remote, remote } };
  const connection = { ...settings.connection, baseUrl: baseUrl ?? null };
  const run = await store.createRun({
    ...{ name, inputPath: join(folder.path, name), simulated: false, createdAtMs: clock.now() },
    settings: settingsToJson({ ...settings, connection }, store),
  });
  await addDocuments(run, count, priority);
  return store.updateRun(run.id, { status: 'open' });
}

function addDocuments({ id, name }: RunRecord, count: number, priority: number, from = 1) {
  return store.addTasks(
    id,
    Array.from({ length: count }, (_, index) => {
      const key = `${name} ${from + index}`;
      const body = JSON.stringify({ id: key, text: `${name} at ${priority}` });
      return {
        ...{ line: from + index, key, occurrence: 0, requestHash: key, priority, body },
        metadataJson: null,
      };
    }),
  );
}

function laneTo(provider: JudgedProvider): Lane {
  const limiter = createLimiter({ requestsPerMinute: null, tokensPerMinute: null, random });
  return { name: 'lane', weight: 1, provider, limiter, costOf: () => null, mostOf: () => null };
}

function startWork(changes: Partial<WorkOptions> = {}) {
  return work({
    ...{ store, clock, random, runId: null, concurrency: null, workerId: 'worker', idleExitMs: 0 },
    ...{ salvagePath: join(folder.path, 'salvage'), batchFolder: join(folder.path, 'batches') },
    connect: async () => ({
      ...{ lanes: [laneTo(server)], prices: { source: 'test', date: null }, mostConnections: 1_000 },
      close: async () => undefined,
    }),
    stop: {
      get count() {
        return stopRequests.count;
      },
      subscribe(listener) {
        stopRequests.listeners.add(listener);
        return () => stopRequests.listeners.delete(listener);
      },
    },
    tell: ({ type }, run) => events.push([type, run]),
    ...changes,
  });
}

function requestStop(): void {
  stopRequests.count += 1;
  for (const listener of stopRequests.listeners) listener(stopRequests.count);
}

/** What arrived at the server, without the numbers: how many of each in a row. */
function seriesOf({ arrivals }: JudgedProvider): [string, number][] {
  const series: [string, number][] = [];
  for (const { text } of arrivals) {
    const last = series.at(-1);
    if (last?.[0] === text) last[1] += 1;
    else series.push([text, 1]);
  }
  return series;
}

async function statusOf(name: string): Promise<string | undefined> {
  return (await store.listRuns()).find((run) => run.name === name)?.status;
}

it('sends all runs, the higher priority first whatever run it is of, and ends when there is nothing', async () => {
  const mixed = await addRun('mixed', { count: 30, priority: 1 });
  await addDocuments(mixed, 30, 9, 100);
  await addRun('urgent', { count: 30, priority: 5 });
  const report = await clock.runUntil(startWork());
  const order = seriesOf(server).map(([text]) => text);
  // Calls of two priorities are open at once only where one ends and the next begins.
  const firstOf = (text: string): number => order.indexOf(text);
  expect(firstOf('mixed at 9')).toBe(0);
  expect(firstOf('urgent at 5')).toBeGreaterThan(order.lastIndexOf('mixed at 9') - 4);
  const arrivedBefore = (text: string, before: string): number => {
    const texts = server.arrivals.map((each) => each.text);
    return texts.slice(0, texts.indexOf(before)).filter((each) => each === text).length;
  };
  expect(arrivedBefore('mixed at 9', 'urgent at 5')).toBeGreaterThanOrEqual(26);
  expect(arrivedBefore('urgent at 5', 'mixed at 1')).toBeGreaterThanOrEqual(26);
  expect(server.arrivals).toHaveLength(90);
  expect([await statusOf('mixed'), await statusOf('urgent')]).toEqual(['finished', 'finished']);
  expect([...report.runs.values()].map(({ end }) => end.reason)).toEqual(['drained', 'drained']);
});

it('lets a short run pass through beside a long one of equal priority', async () => {
  await addRun('long', { count: 200 });
  await addRun('short', { count: 20 });
  await clock.runUntil(startWork());
  const texts = server.arrivals.map(({ text }) => text);
  // Each has half of the calls: the short one needs about as many of the long one's as it has.
  expect(texts.lastIndexOf('short at 0')).toBeLessThan(70);
});

it('counts the calls of a run that are still open when it has nothing more to send', async () => {
  await addRun('last', { count: 4, priority: 1 });
  await addRun('next', { count: 20 });
  await clock.runUntil(startWork());
  const [first] = server.arrivals;
  const besideTheLast = server.arrivals.filter(
    ({ text, atMs }) => text === 'next at 0' && atMs < (first?.atMs ?? 0) + 100,
  );
  expect(besideTheLast.length).toBeLessThanOrEqual(2);
});

it('holds no run up for one of higher priority that waits for another server', async () => {
  await addRun('elsewhere', { count: 40, priority: 9, baseUrl: 'http://127.0.0.1:9/v1' });
  await addRun('here', { count: 4, priority: 0 });
  await clock.runUntil(startWork());
  const texts = server.arrivals.map(({ text }) => text);
  expect(texts.lastIndexOf('here at 0')).toBeLessThan(12);
});

it('takes up what is submitted while it waits and while a call is open, at once where it is told so', async () => {
  const run = await addRun('served', { count: 1 });
  await clock.runUntil(startWork());
  server = judgedProvider({ latencyMs: 60 * SECOND_MS, headers: 'none' }, clock);
  await addDocuments(run, 1, 0, 2);
  let look = (): void => undefined;
  const onSubmitted = (listener: () => void) => {
    look = listener;
    return () => undefined;
  };
  const ended = startWork({ idleExitMs: 10 * SECOND_MS, onSubmitted });
  await clock.advance(SECOND_MS);
  expect(server.arrivals).toHaveLength(1);
  await addDocuments(run, 1, 0, 3);
  look();
  await clock.advance(50);
  expect(server.arrivals).toHaveLength(2);
  await clock.advance(65 * SECOND_MS);
  expect(await statusOf('served')).toBe('finished');
  // By its own look, and a finished run.
  await addDocuments(run, 1, 0, 4);
  await clock.advance(1.5 * SECOND_MS);
  expect(server.arrivals).toHaveLength(3);
  await clock.runUntil(ended);
  expect(await statusOf('served')).toBe('finished');
});

it('lets open calls finish when it is asked to stop, gives the rest back, and says that it was stopped', async () => {
  await addRun('docs', { count: 100 });
  const ended = startWork({ idleExitMs: null });
  await clock.advance(SECOND_MS);
  requestStop();
  const { isStopped } = await clock.runUntil(ended);
  expect(isStopped).toBe(true);
  const { counts } = await store.summarizeRun(1);
  expect(counts).toMatchObject({ in_progress: 0, delayed: 0, completed: server.arrivals.length });
  expect(counts.ready).toBe(100 - server.arrivals.length);
  expect(await statusOf('docs')).toBe('open');
});

it('passes over a run that it cannot send, tells it once, goes on with the others and tries it again', async () => {
  await addRun('foreign', { count: 2, baseUrl: 'http://127.0.0.1:9/v1' });
  await addRun('docs', { count: 20 });
  let isTrusted = false;
  const ended = startWork({
    idleExitMs: 300 * SECOND_MS,
    connect: async ({ name }) => {
      if (name === 'foreign' && !isTrusted) throw usageError('KEY_MISSING', 'No key.', 'export it');
      return {
        ...{ lanes: [laneTo(server)], prices: { source: 'test', date: null }, mostConnections: 9 },
        close: async () => undefined,
      };
    },
  });
  await clock.advance(130 * SECOND_MS);
  expect(await statusOf('docs')).toBe('finished');
  expect(events.filter(([type]) => type === 'run_passed_over')).toEqual([['run_passed_over', 'foreign']]);
  isTrusted = true;
  const { passedOver } = await clock.runUntil(ended);
  expect(passedOver).toEqual([]);
  expect(await statusOf('foreign')).toBe('finished');
});

it('goes on when runs are cancelled and deleted under it, and wakes neither', async () => {
  const cancelled = await addRun('cancelled', { count: 100 });
  const deleted = await addRun('deleted', { count: 100 });
  await addRun('docs', { count: 10 });
  const ended = startWork();
  await clock.advance(150);
  await store.cancelRun(cancelled.id);
  await store.deleteRun(deleted.id);
  await clock.runUntil(ended);
  expect(await statusOf('cancelled')).toBe('cancelled');
  expect(await statusOf('deleted')).toBeUndefined();
  expect(await statusOf('docs')).toBe('finished');
  expect(server.arrivals.length).toBeLessThan(40);
  expect(events.map(([type]) => type)).toContain('leases_lost');
});

it('leaves what a provider works on by itself to one process, where others may be at work too', async () => {
  await addRun('remote', { count: 4, remote: true });
  await addRun('direct', { count: 2 });
  const shared = storeWith(store, { capabilities: { ...store.capabilities, sharedDrain: true } });
  const told: string[] = [];
  const tell: WorkOptions['tell'] = (event) => event.type === 'run_passed_over' && told.push(event.message);
  const { passedOver } = await clock.runUntil(startWork({ store: shared, tell }));
  expect(passedOver).toEqual(['remote']);
  expect(told).toEqual([expect.stringContaining('no work for workers')]);
  expect(seriesOf(server)).toEqual([['direct at 0', 2]]);
});

it('leaves a run alone while it is imported anew, and goes on with it afterwards', async () => {
  const { id } = await addRun('docs', { count: 50 });
  const ended = startWork({ idleExitMs: 60 * SECOND_MS });
  await clock.advance(250);
  await store.beginReimport(id);
  await clock.advance(5 * SECOND_MS);
  const before = server.arrivals.length;
  expect(before).toBeLessThan(25);
  expect(await statusOf('docs')).toBe('importing');
  await store.updateRun(id, { status: 'open' });
  await clock.runUntil(ended);
  expect((await store.summarizeRun(id)).counts.completed).toBe(50);
});

it('puts back what another worker left when its lease ended, and finishes what that one had only to finish', async () => {
  const { id } = await addRun('docs', { count: 3 });
  await store.claimTasks({ runId: id, workerId: 'dead', limit: 3, leaseMs: 20 * SECOND_MS });
  const done = await addRun('done', { count: 0 });
  const ended = startWork({ idleExitMs: 60 * SECOND_MS });
  await clock.advance(15 * SECOND_MS);
  expect(server.arrivals).toHaveLength(0);
  expect((await store.listRuns()).find((run) => run.id === done.id)?.status).toBe('finished');
  await clock.advance(20 * SECOND_MS);
  expect(server.arrivals).toHaveLength(3);
  expect(events.filter(([type]) => type === 'rescued')).toHaveLength(1);
  await clock.runUntil(ended);
});

it('stores no late answer over that of the worker that took its document over, and tells it; its call is in the ledger', async () => {
  const { id } = await addRun('docs', { count: 1 });
  server = judgedProvider({ latencyMs: 60 * SECOND_MS, headers: 'none' }, clock);
  const ended = startWork();
  await clock.advance(5 * SECOND_MS);
  expect(server.arrivals).toHaveLength(1);
  await store.rescueTasks({ workers: ['worker'], crashLimit: 3 });
  const [task] = await store.claimTasks({ runId: id, workerId: 'other', limit: 1, leaseMs: 60 * SECOND_MS });
  const { taskId, attemptToken } = task as LeasedTask;
  const result = { outputJson: '"of the other"', model: 'model', finishReason: 'stop' };
  const outcome = {
    action: 'completed',
    taskId,
    attemptToken,
    result,
    share: null,
    atMs: clock.now(),
  } as const;
  await store.record([], [{ call: null, outcomes: [outcome] }]);
  await clock.runUntil(ended);
  expect(events.filter(([type]) => type === 'leases_lost')).toEqual([['leases_lost', 'docs']]);
  expect(await store.readTasks(id, [taskId])).toMatchObject([{ result: { outputJson: '"of the other"' } }]);
  expect((await store.summarizeRun(id)).calls.made).toBe(1);
});

it('sends no call that was ready when its lease ended, which another may have made by then', async () => {
  const { id } = await addRun('docs', { count: 3, pacing: { concurrency: 2 } });
  server = judgedProvider({ latencyMs: 60 * SECOND_MS, headers: 'none' }, clock);
  let cutOff: Promise<void> | null = null;
  let reconnect = (): void => undefined;
  const beat: Store['beat'] = async (...beats) => {
    await cutOff;
    return store.beat(...beats);
  };
  const ended = startWork({ store: storeWith(store, { beat }), idleExitMs: 10 * SECOND_MS });
  await clock.advance(5 * SECOND_MS);
  expect((await store.summarizeRun(id)).calls).toMatchObject({ made: 3, open: 3 });
  expect(server.arrivals).toHaveLength(2);
  cutOff = new Promise((resolve) => {
    reconnect = resolve;
  });
  await clock.advance(50 * SECOND_MS);
  expect(await store.rescueTasks({ crashLimit: 3 })).toMatchObject({ rescued: 3 });
  await store.claimTasks({ runId: id, workerId: 'other', limit: 3, leaseMs: 60 * SECOND_MS });
  await clock.advance(20 * SECOND_MS);
  expect(events.map(([type]) => type)).toContain('leases_lost');
  reconnect();
  await clock.runUntil(ended);
  expect(server.arrivals).toHaveLength(2);
});

it('leaves a run whose key fails for a minute, and sends the others', async () => {
  await addRun('broken', { count: 5 });
  await addRun('docs', { count: 5 });
  const refusing = judgedProvider({ outage: { fault: 'unauthorized' }, headers: 'none' }, clock);
  const ended = startWork({
    idleExitMs: 100 * SECOND_MS,
    connect: async ({ name }) => ({
      lanes: [laneTo(name === 'broken' ? refusing : server)],
      prices: { source: 'test', date: null },
      mostConnections: 9,
      close: async () => undefined,
    }),
  });
  await clock.advance(50 * SECOND_MS);
  const { length } = refusing.arrivals;
  expect(length).toBeLessThanOrEqual(2);
  const { runs } = await clock.runUntil(ended);
  // Tried once more, with as many calls as may be open: its settings are those of the run that was answered.
  expect(refusing.arrivals.length).toBeLessThanOrEqual(length + 4);
  expect(runs.get('broken')?.end.reason).toBe('halted');
  expect(runs.get('docs')?.summary.counts.completed).toBe(5);
});
