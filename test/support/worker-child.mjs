/**
 * A worker in a process of its own, whose leases and windows are short enough for a test: reads its options as one line of
 * JSON, tells its events as such lines, and ends when there is nothing to do or with its input. Needs the compiled program.
 */
import { createInterface } from 'node:readline';
import { systemClock, systemRandom } from '../../build/core/clock.js';
import { LaneQuota } from '../../build/engine/lane-quota.js';
import { createLimiter } from '../../build/limiter/limiter.js';
import { createOpenAIProvider } from '../../build/provider/openai/client.js';
import { work } from '../../build/runs/work.js';
import { openStore } from '../../build/store/open.js';

const lines = createInterface({ input: process.stdin });
const requests = { count: 0, listeners: new Set() };
const stop = {
  get count() {
    return requests.count;
  },
  subscribe(listener) {
    requests.listeners.add(listener);
    return () => requests.listeners.delete(listener);
  },
};

lines.once('line', async (line) => {
  const options = JSON.parse(line);
  const clock = systemClock;
  const random = systemRandom;
  const store = await openStore(options.storeUrl, { mode: 'write', clock, schemaName: options.schemaName });
  const workerId = `${process.pid}`;
  const lane = () => {
    const limiter = createLimiter({
      requestsPerMinute: options.requestsPerWindow,
      tokensPerMinute: null,
      windowMs: options.windowMs,
      // Between them and their server they have a core or two: a call may leave long after it was counted.
      marginMs: 1_000,
      random,
    });
    const provider = createOpenAIProvider({
      ...{ baseUrl: options.baseUrl, apiKey: null, maxConnections: options.concurrency, clock },
    });
    const quota = new LaneQuota({ store: store.quotas, lane: 'lane', sender: workerId, limiter, clock });
    return { name: 'lane', weight: 1, provider, limiter, quota, costOf: () => null, mostOf: () => null };
  };
  const report = await work({
    ...{ store, runId: null, clock, random, workerId, stop, leaseMs: options.leaseMs },
    ...{ concurrency: options.concurrency, idleExitMs: options.idleExitMs },
    ...{ salvagePath: options.salvagePath, batchFolder: `${options.salvagePath}.batches` },
    async connect() {
      const lanes = [lane()];
      return {
        ...{ lanes, prices: { source: 'test', date: null }, mostConnections: 100 },
        async close() {
          for (const each of lanes) await Promise.all([each.quota.end(), each.provider.close()]);
        },
      };
    },
    tell(event) {
      if (
        ['rescued', 'leases_lost', 'store_trouble', 'ended', 'throttled', 'call_failed'].includes(event.type)
      ) {
        const { type, documents, rescued, lostCalls } = event;
        process.stdout.write(`${JSON.stringify({ type, documents, rescued, lostCalls })}\n`);
      }
    },
  });
  await store.close();
  process.stdout.write(`${JSON.stringify({ type: 'done', isStopped: report.isStopped })}\n`);
  lines.close();
});
lines.once('close', () => {
  requests.count += 1;
  for (const listener of requests.listeners) listener(requests.count);
});
