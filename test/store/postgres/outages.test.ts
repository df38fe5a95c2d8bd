/** Connections that break and a server that dies: what was committed counts once, what was not is done again. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { openStore } from '../../../src/store/open.js';
import type { Store } from '../../../src/store/store.js';
import {
  callEnd,
  callStart,
  claim,
  claimOne,
  completed,
  documents,
  NOW_MS,
  openRun,
  results,
  startCall,
} from '../../contract/store/builders.js';
import { type PostgresServer, startPostgres } from '../../support/postgres-server.js';

let server: PostgresServer;
let stores: Store[] = [];
let made = 0;

beforeAll(async () => {
  server = await startPostgres({ durable: true });
});

afterAll(() => server.remove());

beforeEach(() => {
  made += 1;
});

afterEach(async () => {
  for (const store of stores) await store.close();
  stores = [];
});

async function open(url = server.url): Promise<Store> {
  const store = await openStore(url, { mode: 'write', clock: systemClock, schemaName: `outage_${made}` });
  stores.push(store);
  return store;
}

/** Ends all connections, as an administrator would, and a failover. @returns how many there were */
async function terminateAll(): Promise<number> {
  const admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  const { rowCount } = await admin.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'llm-batch'`,
  );
  await admin.end();
  return rowCount ?? 0;
}

/**
 * Two workers drain a run over connections of their own.
 * @param disturb called after so many tasks were answered
 * @returns how often each task was called
 */
async function drainDisturbed(
  tasks: number,
  disturbances: ReadonlyMap<number, () => Promise<unknown>>,
): Promise<{ store: Store; runId: number; calls: ReadonlyMap<number, number> }> {
  const store = await open();
  const runId = await openRun(store, documents(tasks));
  const calls = new Map<number, number>();
  let answered = 0;
  const disturbing: Promise<unknown>[] = [];
  const work = async (worker: Store, name: string): Promise<void> => {
    for (;;) {
      // One at a time, so that each meets workers that are at work.
      await Promise.all(disturbing);
      const claimed = await claim(worker, runId, 5, name);
      if (claimed.length === 0) return;
      const { callIds } = await worker.record(
        claimed.map((task) => callStart(runId, task)),
        [],
      );
      for (const { taskId } of claimed) calls.set(taskId, (calls.get(taskId) ?? 0) + 1);
      for (const _ of claimed) {
        answered += 1;
        const disturb = disturbances.get(answered);
        if (disturb !== undefined) disturbing.push(disturb());
      }
      const { lostTaskIds } = await worker.record(
        [],
        claimed.map((task, index) => {
          const answer = { outputJson: `"answer ${task.line}"`, model: 'm', finishReason: 'stop' };
          return completed(task, callEnd(callIds[index] ?? 0), answer);
        }),
      );
      expect(lostTaskIds).toEqual([]);
    }
  };
  await Promise.all([work(store, 'one'), work(await open(), 'two')]);
  await Promise.all(disturbing);
  return { store, runId, calls };
}

async function expectAllOnce(
  { store, runId, calls }: Awaited<ReturnType<typeof drainDisturbed>>,
  tasks: number,
): Promise<void> {
  const found = await results(store, runId);
  expect(found.map(({ line, result }) => [line, result?.outputJson])).toEqual(
    documents(tasks).map(({ line }) => [line, `"answer ${line}"`]),
  );
  expect(calls.size).toBe(tasks);
  expect([...calls.values()].filter((times) => times !== 1)).toEqual([]);
  const summary = await store.summarizeRun(runId);
  expect(summary.calls).toEqual({ made: tasks, open: 0, failed: 0, repeated: 0, late: 0 });
  expect(summary.counts).toMatchObject({ ready: 0, in_progress: 0, completed: tasks });
  expect(await store.maintenance.recount()).toEqual([]);
}

describe('while a run is drained', () => {
  it('every connection may be ended, again and again: no call is repeated, no answer lost or counted twice', async () => {
    const ended: number[] = [];
    const terminate = async () => ended.push(await terminateAll());
    const drained = await drainDisturbed(100, new Map([7, 22, 40, 61, 83].map((at) => [at, terminate])));
    expect(Math.min(...ended)).toBeGreaterThan(0);
    expect(Math.max(...ended)).toBeGreaterThan(1);
    await expectAllOnce(drained, 100);
  });

  it("a claim that the server had on no disk when it died is nobody's: its calls do not leave", async () => {
    const store = await open();
    const runId = await openRun(store, documents(5));
    const claimed = await claim(store, runId, 5, 'one');
    await server.kill();
    await server.start();
    const { callIds } = await store.record(
      claimed.map((task) => callStart(runId, task)),
      [],
    );
    const refused = claimed.filter((_, index) => callIds[index] === null).map(({ taskId }) => taskId);
    const others = await claim(await open(), runId, 5, 'two');
    expect(others.map(({ taskId }) => taskId)).toEqual(refused);
  });

  it('the server may die and come back: the same, since the workers are alive', async () => {
    const restart = async () => {
      await server.kill();
      await server.start();
    };
    const drained = await drainDisturbed(100, new Map([[30, restart]]));
    await expectAllOnce(drained, 100);
  });

  it('an owner whose connection was ended says again that it is there', async () => {
    const store = await open();
    await store.acquireDrainLock({ pid: 1, host: 'here', runName: 'reviews', sinceMs: NOW_MS });
    const other = await open();
    await terminateAll();
    while ((await other.readOwner('reviews')) === null) await systemClock.sleep(20);
    expect(await other.readOwner('reviews')).toMatchObject({ pid: 1 });
  });
});

/** Passes on what clients and the server say, until it is told to cut them off at the next commit. */
class CuttingProxy {
  /** What the server does not hear any more, or the client. */
  cut: 'commit' | 'answer' | null = null;
  cuts = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(target: URL) {
    this.#server = createServer((client) => {
      const upstream = connect(Number(target.port), target.hostname);
      let isMuted = false;
      for (const socket of [client, upstream]) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => this.#sockets.delete(socket));
      }
      client.on('data', (data: Buffer) => {
        if (this.cut !== null && data.includes('; COMMIT')) {
          const { cut } = this;
          this.cut = null;
          this.cuts += 1;
          isMuted = true;
          if (cut === 'commit') {
            client.destroy();
            // The server still has the transaction, and sees the end of it later.
            systemClock.after(50, () => upstream.destroy());
            return;
          }
        }
        upstream.write(data);
      });
      upstream.on('data', (data: Buffer) => {
        if (isMuted) client.destroy();
        else client.write(data);
      });
      client.on('close', () => {
        if (!isMuted) upstream.destroy();
      });
      upstream.on('close', () => client.destroy());
    });
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    return typeof address === 'object' ? (address?.port ?? 0) : 0;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

describe('a connection that breaks at a commit', () => {
  let proxy: CuttingProxy;
  let url: URL;

  beforeEach(async () => {
    url = new URL(server.url);
    proxy = new CuttingProxy(new URL(server.url));
    url.port = String(await proxy.listen());
  });

  afterEach(async () => {
    for (const store of stores) await store.close();
    stores = [];
    proxy.close();
  });

  it.each(['commit', 'answer'] as const)(
    '(of which the %s is lost) is made once, whatever was heard of it',
    async (cut) => {
      const store = await open(url.href);
      const runId = await openRun(store, documents(4));
      const task = await claimOne(store, runId);

      proxy.cut = cut;
      const callId = await startCall(store, runId, task);
      proxy.cut = cut;
      expect((await store.record([], [completed(task, callEnd(callId))])).lostTaskIds).toEqual([]);
      proxy.cut = cut;
      const others = await claim(store, runId, 3);
      proxy.cut = cut;
      expect(await store.addTasks(runId, documents(6))).toEqual({ added: 2, duplicates: 4 });
      proxy.cut = cut;
      await store.createRun({ name: 'x', inputPath: '-', simulated: false, settings: {}, createdAtMs: 0 });
      expect(proxy.cuts).toBe(5);

      expect(others).toHaveLength(3);
      const summary = await store.summarizeRun(runId);
      expect(summary.calls).toEqual({ made: 1, open: 0, failed: 0, repeated: 0, late: 0 });
      expect(summary.counts).toMatchObject({ completed: 1, in_progress: 3, ready: 2 });
      expect(await results(store, runId)).toHaveLength(1);
      expect(await store.listRuns()).toHaveLength(2);
      expect(await store.maintenance.recount()).toEqual([]);
    },
  );
});
