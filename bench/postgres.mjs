// The store on PostgreSQL with every commit on its disk: import, claims among a million, and what some workers drain from
// it when answers take no time. On a server of its own, whose processor time is told too, or LLM_BATCH_TEST_POSTGRES_URL.
import { fork } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../build/core/clock.js';
import { openStore } from '../build/store/open.js';
import { startServer } from './postgres-server.mjs';
import { round } from './round.mjs';

const DOCUMENTS = Number(process.env.DOCUMENTS ?? 1_000_000);
const DRAINED = Number(process.env.DRAINED ?? 200_000);
const WORKERS = Number(process.env.WORKERS ?? 4);
/** Of each size. */
const CLAIMS = 500;
const SIZES = [1, 16, 32, 64];
/** As many as a worker has calls open. */
const PER_CLAIM = 64;
const PAGE = 1_000;
const TEXT = 'The battery lasts two days and the screen is bright, but the strap broke after a week. '.repeat(
  12,
);
const OUTPUT_JSON = JSON.stringify(TEXT);
const LEASE_MS = 60_000;

if (process.send !== undefined) {
  await work();
} else {
  await main();
}

async function main() {
  const server = await startServer();
  const { url } = server;
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
    for (const size of SIZES) await measureClaims(store, run.id, size);
    await measureDrain(run.id, url, schemaName);
    const { counts } = await store.summarizeRun(run.id);
    console.log(
      `completed ${counts.completed}, in progress ${counts.in_progress}; recount: ${(await store.maintenance.recount()).length} differences`,
    );
  } finally {
    await store.close();
    await server.remove();
  }
}

/** What was claimed is called and settled before the next claim, as in a drain. */
async function measureClaims(store, runId, limit) {
  const times = [];
  for (let turn = 0; turn < CLAIMS; turn += 1) {
    const startedAt = performance.now();
    const tasks = await store.claimTasks({ runId, workerId: 'claimer', limit, leaseMs: LEASE_MS });
    times.push(performance.now() - startedAt);
    const { callIds } = await store.record(
      tasks.map((task) => startOf(runId, task)),
      [],
    );
    await store.record(
      [],
      tasks.map((task, index) => settlementOf(task, callIds[index])),
    );
  }
  times.sort((one, other) => one - other);
  const at = (share) => round(times[Math.floor(share * times.length)]);
  console.log(
    `claims of ${limit} among ${DOCUMENTS}: p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, p99 ${at(0.99)} ms (target 3), ${CLAIMS} of them`,
  );
}

async function measureDrain(runId, url, schemaName) {
  const children = await Promise.all(
    Array.from({ length: WORKERS }, async (_, index) => {
      const child = fork(fileURLToPath(import.meta.url));
      const most = DRAINED / WORKERS;
      await answerOf(child, { url, schemaName, runId, workerId: `worker-${index}`, most });
      return child;
    }),
  );
  const spentBefore = serverSeconds(url);
  let tasks = 0;
  let workerSeconds = 0;
  const seconds = await secondsOf(async () => {
    for (const drained of await Promise.all(children.map((child) => answerOf(child, 'go')))) {
      tasks += drained.tasks;
      workerSeconds += drained.processorSeconds;
    }
  });
  const spent = serverSeconds(url) - spentBefore;
  const perTask = (total) => `${round((1_000 * total) / tasks, 3)} ms`;
  console.log(
    `drain: ${Math.round(tasks / seconds)} tasks a second by ${WORKERS} workers with answers of 1 KB (target 5,000), ${tasks} tasks; ` +
      `processor time of a task: ${perTask(workerSeconds)} of the workers, ${perTask(spent)} of the server`,
  );
}

/** Processor time of the server at that port and of the processes that it has started, where this machine tells. */
function serverSeconds(url) {
  const TICKS_A_SECOND = 100;
  const port = `port=${new URL(url).port}`;
  const processes = new Map();
  try {
    for (const id of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        const stat = readFileSync(`/proc/${id}/stat`, 'utf8');
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        const commandLine = readFileSync(`/proc/${id}/cmdline`, 'utf8').split('\0');
        processes.set(id, {
          parent: fields[1],
          fields,
          isServer: commandLine.includes(port) && /postgres$/.test(commandLine[0]),
        });
      } catch {
        // It has ended.
      }
    }
  } catch {
    return Number.NaN;
  }
  const server = [...processes].find(([, { isServer }]) => isServer)?.[0];
  const own = ({ fields }) => Number(fields[11]) + Number(fields[12]);
  let ticks = 0;
  for (const [id, each] of processes) {
    if (id === server) ticks += own(each) + Number(each.fields[13]) + Number(each.fields[14]);
    else if (each.parent === server) ticks += own(each);
  }
  return server === undefined ? Number.NaN : ticks / TICKS_A_SECOND;
}

function open(url, schemaName) {
  return openStore(url, { mode: 'write', clock: systemClock, schemaName });
}

function answerOf(child, order) {
  return new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`a worker ended with ${code}`)));
    child.send(order);
  });
}

/** A worker: opens the store at the first order, and drains at the second. */
async function work() {
  let order;
  let store;
  process.on('message', async (message) => {
    if (message !== 'go') {
      order = message;
      store = await open(order.url, order.schemaName);
      process.send('ready');
      return;
    }
    const before = process.cpuUsage();
    const tasks = await drain(store, order);
    const { user, system } = process.cpuUsage(before);
    process.send({ tasks, processorSeconds: (user + system) / 1e6 });
    await store.close();
    process.disconnect();
  });
}

/** As the engine does: starts of the next calls and what came of the last go in one commit. @returns how many tasks */
async function drain(store, { runId, workerId, most }) {
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
  const result = { outputJson: OUTPUT_JSON, model: 'model-1', finishReason: 'stop' };
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

async function secondsOf(work) {
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1_000;
}
