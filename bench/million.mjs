// One million documents: import speed and memory of `run`, then `resume` and `status` with 99 % of them done.
import { spawn, spawnSync } from 'node:child_process';
import { createWriteStream, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../build/core/clock.js';
import { openStore } from '../build/store/open.js';
import { CLI, startSimulator } from './simulator.mjs';

const DOCUMENTS = Number(process.env.DOCUMENTS ?? 1_000_000);
const DONE = Math.floor(DOCUMENTS * 0.99);
const PAGE = 1_000;

const folder = mkdtempSync(join(tmpdir(), 'llm-batch-million-'));
const input = join(folder, 'documents.jsonl');
const store = join(folder, 'store.db');
const simulator = await startSimulator();
try {
  await writeInput();
  console.log(`input: ${DOCUMENTS} documents, ${(statSync(input).size / 1e6).toFixed(0)} MB`);

  const imported = await untilFirstCall(['run', input, '--prompt', 'Classify: {{text}}']);
  console.log(
    `import: ${(imported.seconds).toFixed(1)} s from start to first call, ${Math.round(DOCUMENTS / imported.seconds)} documents/s (target 60,000), peak memory ${imported.peakMegabytes.toFixed(0)} MB (target 250)`,
  );

  await settleMost();
  const resumed = await untilFirstCall(['resume']);
  console.log(
    `resume at ${DOCUMENTS} tasks, 99 % done: first call after ${resumed.seconds.toFixed(2)} s (target 1)`,
  );
  const times = [];
  for (let turn = 0; turn < 5; turn += 1) {
    const startedAt = performance.now();
    const { status, stderr } = spawnSync(process.execPath, [CLI, 'status', '--db', store], {
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(stderr);
    times.push((performance.now() - startedAt) / 1_000);
  }
  times.sort((a, b) => a - b);
  console.log(`status: median ${times[2].toFixed(2)} s of five, whole process (target 0.3)`);
} finally {
  simulator.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function writeInput() {
  const sentence =
    'The battery lasts two days and the screen is bright, but the strap broke after a week of daily use. ';
  const text = sentence.repeat(10).slice(0, 960);
  const stream = createWriteStream(input);
  for (let first = 0; first < DOCUMENTS; first += PAGE) {
    let page = '';
    for (let index = first; index < Math.min(first + PAGE, DOCUMENTS); index += 1) {
      page += `${JSON.stringify({ id: `doc-${index}`, text: `${index} ${text}` })}\n`;
    }
    if (!stream.write(page)) await new Promise((resolve) => stream.once('drain', resolve));
  }
  await new Promise((resolve) => stream.end(resolve));
}

/** Starts the program, waits for its first call to reach the server, notes time and peak memory, kills it. */
async function untilFirstCall(args) {
  const before = await calls();
  const startedAt = performance.now();
  const child = spawn(
    process.execPath,
    [CLI, ...args, '--base-url', simulator.url, '--db', store, '--quiet'],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  );
  const closed = new Promise((resolve) => child.on('close', resolve));
  while ((await calls()) === before) await new Promise((resolve) => setTimeout(resolve, 25));
  const seconds = (performance.now() - startedAt) / 1_000;
  const peakKilobytes = Number(
    /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? 0,
  );
  child.kill('SIGKILL');
  await closed;
  return { seconds, peakMegabytes: peakKilobytes / 1_024 };
}

async function calls() {
  const response = await fetch(`${simulator.url.replace(/\/v1$/, '')}/simulator/books`);
  const books = await response.json();
  return books.calls ?? books.totalCalls;
}

/** Completes 99 % of the tasks through the store's own port. */
async function settleMost() {
  const opened = await openStore(store, { mode: 'write', clock: systemClock });
  const [run] = await opened.listRuns();
  // An hour ago: a million calls within the last minute would be looked at one by one to seed its limits.
  const nowMs = systemClock.now() - 3_600_000;
  await opened.acquireDrainLock({ pid: process.pid, host: 'bench', runName: run.name, sinceMs: nowMs });
  await opened.rescueTasks({ crashLimit: 3 });
  const usage = { inputTokens: 240, outputTokens: 12, cachedTokens: 0, reasoningTokens: 0 };
  const { counts } = await opened.summarizeRun(run.id);
  for (let done = counts.completed; done < DONE; done += PAGE) {
    const tasks = await opened.claimTasks({
      runId: run.id,
      workerId: 'bench',
      limit: PAGE,
      leaseMs: 600_000,
    });
    const { callIds } = await opened.record(
      tasks.map(({ taskId, attemptToken }) => ({
        runId: run.id,
        tasks: [{ taskId, attemptToken }],
        lane: 'bench',
        startedAtMs: nowMs,
        reservedTokens: 300,
        mostTokens: 300,
        mostCostMicroUsd: null,
      })),
      [],
    );
    await opened.record(
      [],
      tasks.map(({ taskId, attemptToken }, index) => ({
        call: {
          callId: callIds[index],
          finishedAtMs: nowMs,
          latencyMs: 200 + (index % 700),
          httpStatus: 200,
          kind: null,
          usage,
          costMicroUsd: null,
          requestId: null,
          message: null,
        },
        outcomes: [
          {
            action: 'completed',
            taskId,
            attemptToken,
            share: { usage, costMicroUsd: null },
            atMs: nowMs,
            result: { outputJson: '"positive"', model: 'gpt-4o-mini', finishReason: 'stop' },
          },
        ],
      })),
    );
  }
  await opened.close();
}
