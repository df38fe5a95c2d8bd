// The store on PostgreSQL with every commit on its disk: import, claims among a million, and what some workers drain from
// it when answers take no time. On a server of its own, or LLM_BATCH_TEST_POSTGRES_URL.
import { fork } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transformWithOxc } from 'vite';
import { systemClock } from '../dist/core/clock.js';
import { openStore } from '../dist/store/open.js';
import { round } from './round.mjs';

const DOCUMENTS = Number(process.env.DOCUMENTS ?? 1_000_000);
const DRAINED = Number(process.env.DRAINED ?? 20_000);
const WORKERS = Number(process.env.WORKERS ?? 4);
const CLAIMS = 1_000;
/** As many as a worker has calls open. */
const PER_CLAIM = 64;
const PAGE = 1_000;
const TEXT = 'The battery lasts two days and the screen is bright, but the strap broke after a week. '.repeat(
  12,
);
const LEASE_MS = 60_000;

if (process.send !== undefined) {
  process.on('message', async (order) => {
    process.send(await drain(order));
    process.disconnect();
  });
} else {
  await main();
}

async function main() {
  const given = process.env.LLM_BATCH_TEST_POSTGRES_URL;
  const server = given === undefined ? await startServer() : null;
  const url = given ?? server.url;
  const schemaName = `bench_${process.pid}`;
  const store = await open(url, schemaName);
  try {
    const run = await store.createRun({
      ...{ name: 'bench', inputPath: '-', simulated: true, settings: {}, createdAtMs: Date.now() },
    });
    const imported = await secondsOf(async () => {
      for (let first = 0; first < DOCUMENTS; first += PAGE) {
        const page = Array.from({ length: Math.min(PAGE, DOCUMENTS - first) }, (_, index) =>
          documentOf(first + index),
        );
        await store.addTasks(run.id, page);
      }
      await store.updateRun(run.id, { status: 'open' });
    });
    console.log(`import: ${Math.round(DOCUMENTS / imported)} documents of 1 KB a second (${DOCUMENTS})`);

    const times = [];
    for (let turn = 0; turn < CLAIMS; turn += 1) {
      const startedAt = performance.now();
      const tasks = await store.claimTasks({
        runId: run.id,
        workerId: 'claimer',
        limit: PER_CLAIM,
        leaseMs: LEASE_MS,
      });
      times.push(performance.now() - startedAt);
      await store.record(
        [],
        tasks.map((task) => ({ call: null, outcomes: [releaseOf(task)] })),
      );
    }
    times.sort((one, other) => one - other);
    const at = (share) => round(times[Math.floor(share * times.length)]);
    console.log(
      `claims of ${PER_CLAIM} among ${DOCUMENTS}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms (target 3), ${CLAIMS} of them`,
    );

    let drained = 0;
    const drainSeconds = await secondsOf(async () => {
      const orders = Array.from({ length: WORKERS }, (_, index) => ({
        ...{ url, schemaName, runId: run.id, workerId: `worker-${index}`, most: DRAINED / WORKERS },
      }));
      for (const tasks of await Promise.all(orders.map(inChild))) drained += tasks;
    });
    console.log(
      `drain: ${Math.round(drained / drainSeconds)} tasks a second by ${WORKERS} workers with answers of 1 KB (target 5,000), ${drained} tasks, start of the processes included`,
    );
    const { counts } = await store.summarizeRun(run.id);
    console.log(
      `completed ${counts.completed}, in progress ${counts.in_progress}; recount: ${(await store.maintenance.recount()).length} differences`,
    );
  } finally {
    await store.close();
    await server?.remove();
  }
}

/** That of the tests. */
async function startServer() {
  const source = fileURLToPath(new URL('../test/support/postgres-server.ts', import.meta.url));
  const compiled = source.replace('.ts', `-${process.pid}.mjs`);
  writeFileSync(compiled, (await transformWithOxc(readFileSync(source, 'utf8'), source)).code);
  try {
    const { startPostgres } = await import(compiled);
    return await startPostgres({ durable: true });
  } finally {
    rmSync(compiled);
  }
}

function open(url, schemaName) {
  return openStore(url, { mode: 'write', clock: systemClock, schemaName });
}

async function inChild(order) {
  const child = fork(fileURLToPath(import.meta.url));
  return new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`a worker ended with ${code}`)));
    child.send(order);
  });
}

/** As the engine does: starts of the next calls and what came of the last go in one commit. @returns how many tasks */
async function drain({ url, schemaName, runId, workerId, most }) {
  const store = await open(url, schemaName);
  let done = 0;
  let settlements = [];
  const claim = () => store.claimTasks({ runId, workerId, limit: PER_CLAIM, leaseMs: LEASE_MS });
  let next = claim();
  for (;;) {
    const tasks = done < most ? await next : [];
    const starts = tasks.map((task) => startOf(runId, task));
    if (tasks.length === 0 && settlements.length === 0) break;
    done += tasks.length;
    if (done < most) next = claim();
    const { callIds } = await store.record(starts, settlements);
    settlements = tasks.map((task, index) => settlementOf(task, callIds[index]));
  }
  await store.close();
  return done;
}

function documentOf(index) {
  return {
    ...{ line: index + 1, key: `doc-${index}`, occurrence: 0, requestHash: `sha256:${index}`, priority: 0 },
    ...{ body: JSON.stringify({ id: `doc-${index}`, text: TEXT }), metadataJson: null },
  };
}

function startOf(runId, { taskId, attemptToken }) {
  return {
    ...{ runId, tasks: [{ taskId, attemptToken }], lane: 'lane-1', startedAtMs: Date.now() },
    ...{ reservedTokens: 500, mostTokens: 900, mostCostMicroUsd: 70 },
  };
}

function settlementOf({ taskId, attemptToken }, callId) {
  const usage = { inputTokens: 250, outputTokens: 250, cachedTokens: 0, reasoningTokens: 0 };
  const call = {
    ...{
      callId,
      finishedAtMs: Date.now(),
      latencyMs: 1,
      httpStatus: 200,
      kind: null,
      usage,
      costMicroUsd: 42,
    },
    ...{ requestId: `req-${taskId}`, message: null },
  };
  const result = { outputJson: JSON.stringify(TEXT), model: 'model-1', finishReason: 'stop' };
  const outcome = {
    taskId,
    attemptToken,
    action: 'completed',
    result,
    atMs: Date.now(),
    share: { usage, costMicroUsd: 42 },
  };
  return { call, outcomes: [outcome] };
}

function releaseOf({ taskId, attemptToken }) {
  return { taskId, attemptToken, action: 'released', delayMs: null, isThrottled: false, share: null };
}

async function secondsOf(work) {
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1_000;
}
