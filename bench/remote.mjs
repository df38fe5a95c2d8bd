// 120,000 documents by remote batches: time and peak memory of a run that nothing disturbs, then of one that is killed at
// twelve seeded moments, with what the server has seen and billed of it.
import { spawn, spawnSync } from 'node:child_process';
import { createReadStream, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { round } from './round.mjs';
import { ourRun, writeDocuments } from './runs.mjs';
import { CLI, startSimulator } from './simulator.mjs';

const DOCUMENTS = Number(process.env.DOCUMENTS ?? 120_000);
const SEED = Number(process.env.KILL_SEED ?? 20_251);
const LOOK_EVERY_MS = 20;
/** A kill comes so long after its moment at most. */
const LATEST_MS = 1_500;
/** What is over soon. */
const SOON_MS = 50;

/** What a store holds of its batches while it is at it, in the order of a run; each is met twice. */
const MOMENTS = {
  build: "state = 'building'",
  upload: "state = 'built' AND input_file_id IS NULL",
  create: "input_file_id IS NOT NULL AND remote_state IS NULL OR state = 'submitted' AND polls = 0",
  poll: "state = 'submitted' AND remote_state = 'in_progress'",
  download: "state = 'settling'",
  settle: "state = 'settling'",
};

const folder = mkdtempSync(join(tmpdir(), 'llm-batch-remote-'));
try {
  const text =
    'The battery lasts two days and the screen is bright, but the strap broke after a week. '.repeat(10);
  const input = writeDocuments(folder, DOCUMENTS, (index) => `${index} ${text}`);
  console.log(`${DOCUMENTS} documents, ${round(statSync(input).size / 1e6, 0)} MB`);
  await measured('undisturbed', input, []);
  await measured(`killed (KILL_SEED=${SEED})`, input, [...Object.keys(MOMENTS), ...Object.keys(MOMENTS)]);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Runs until it is done, through a kill at each of these moments, and says what the server makes of it. */
async function measured(title, input, moments) {
  const simulator = await startSimulator('--options', '{"batches":{"durationMs":3000}}');
  try {
    const name = moments.length === 0 ? 'whole' : 'killed';
    const { url } = simulator;
    const poll = ['--poll-interval', '500ms'];
    const run = ourRun({ url, input, folder, name }, '--prompt', '{{text}}', '--remote', ...poll);
    const resume = [CLI, 'resume', ...placesOf(name), '--base-url', url, '--quiet', ...poll];
    const startedAt = performance.now();
    const random = seededRandom(SEED);
    let peakKilobytes = 0;
    const met = [];
    for (const moment of [...moments, null]) {
      const life = spawn(process.execPath, met.length === 0 ? run : resume, {
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      let complaint = '';
      life.stderr.on('data', (data) => {
        complaint += data;
      });
      const looking = setInterval(() => {
        peakKilobytes = Math.max(peakKilobytes, residentKilobytes(life.pid));
      }, LOOK_EVERY_MS);
      const ended = new Promise((resolve) => life.on('close', (code, signal) => resolve(signal ?? code)));
      if (moment !== null) {
        await meet(MOMENTS[moment], join(folder, `${name}.db`), life);
        await sleep(random() * (moment === 'create' || moment === 'download' ? SOON_MS : LATEST_MS));
        life.kill('SIGKILL');
      }
      const end = await ended;
      clearInterval(looking);
      met.push(`${moment ?? 'end'}: ${end}`);
      if (end === 0) break;
      if (end !== 'SIGKILL') throw new Error(`exit ${end}: ${complaint}`);
    }
    const seconds = (performance.now() - startedAt) / 1_000;
    const memory = `peak memory ${round(peakKilobytes / 1024, 0)} MB (target 250)`;
    console.log(
      `${title}: ${round(seconds, 0)} s, ${memory}${moments.length === 0 ? '' : ` · ${met.join(', ')}`}`,
    );
    console.log(`  ${(await judged(simulator, name)).join(' · ')}`);
  } finally {
    simulator.stop();
  }
}

/** Whether the store, the results and the server's books say the same. */
async function judged({ url }, name) {
  const { remote } = await (await fetch(new URL('/simulator/books', url))).json();
  const files = new Set(remote.batches.map(({ metadata }) => metadata.llm_batch_file));
  const answered = new Set();
  let lines = 0;
  for await (const line of createInterface({ input: createReadStream(join(folder, `${name}.jsonl`)) })) {
    lines += 1;
    answered.add(JSON.parse(line).id);
  }
  const said = spawnSync(process.execPath, [CLI, 'status', ...placesOf(name).slice(0, 2), '--json']);
  const { calls, tokens } = JSON.parse(said.stdout);
  const isBilled = tokens.input === remote.promptTokens && tokens.output === remote.completionTokens;
  return [
    `${answered.size} answered, ${lines - answered.size} twice`,
    `${remote.batches.length} batches, ${remote.batches.length - files.size} twice`,
    `${remote.linesRun - DOCUMENTS} lines run in vain`,
    `${calls.made} calls in the ledger, tokens ${isBilled ? 'as' : 'NOT as'} the server counted`,
  ];
}

/** Waits until the store has a batch like that, or the program has ended. */
async function meet(condition, path, life) {
  while (life.exitCode === null && life.signalCode === null) {
    await sleep(5);
    try {
      const store = new Database(path, { readonly: true, fileMustExist: true });
      try {
        if (store.prepare(`SELECT 1 FROM remote_batches WHERE ${condition}`).get() !== undefined) return;
      } finally {
        store.close();
      }
    } catch {
      // It is not made yet, or is busy.
    }
  }
}

/** mulberry32: the same moments for the same seed. */
function seededRandom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function placesOf(name) {
  return ['--db', join(folder, `${name}.db`), '-o', join(folder, `${name}.jsonl`)];
}

function residentKilobytes(pid) {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
