// Calls a second at 50 open calls of 40 ms each, of which 1,250 are possible, beside the loop a user would write. What
// the server saw counts, in its full seconds between the first and the last.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { round } from './round.mjs';
import { CLI, startSimulator } from './simulator.mjs';

const CALLS = Number(process.env.CALLS ?? 15_000);
const ROUNDS = Number(process.env.ROUNDS ?? 3);
const CONCURRENCY = Number(process.env.OPEN_CALLS ?? 50);
const LATENCY_MS = 40;
const POSSIBLE = (CONCURRENCY * 1_000) / LATENCY_MS;

const folder = mkdtempSync(join(tmpdir(), 'llm-batch-bench-'));
try {
  const input = join(folder, 'input.jsonl');
  const lines = Array.from({ length: CALLS }, (_, index) =>
    JSON.stringify({ id: `d${index}`, text: `${index} is a number` }),
  );
  writeFileSync(input, `${lines.join('\n')}\n`);
  const loop = fileURLToPath(new URL('plain-loop.mjs', import.meta.url));
  const shares = [];
  for (let turn = 0; turn < ROUNDS; turn += 1) {
    const results = join(folder, `results-${turn}.jsonl`);
    const plain = await callsPerSecond((url) => [
      loop,
      url,
      input,
      join(folder, 'loop.jsonl'),
      String(CONCURRENCY),
    ]);
    const ours = await callsPerSecond((url) => [
      CLI,
      'run',
      input,
      '--prompt',
      'Classify: {{text}}',
      '--base-url',
      url,
      '--concurrency',
      String(CONCURRENCY),
      '--db',
      join(folder, `store-${turn}.db`),
      '-o',
      results,
      '--quiet',
    ]);
    shares.push(ours / POSSIBLE);
    console.log(
      `round ${turn + 1}: loop ${round(plain, 0)} calls/s (${percent(plain / POSSIBLE)}) · llm-batch ${round(ours, 0)} calls/s (${percent(ours / POSSIBLE)})`,
    );
  }
  shares.sort((a, b) => a - b);
  console.log(
    `${CONCURRENCY} open calls of ${LATENCY_MS} ms: median ${percent(shares[Math.floor(shares.length / 2)])} of ${POSSIBLE} calls/s (target 97 %)`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function percent(share) {
  return `${round(share * 100, 1)} %`;
}

/** A server of its own for each turn, so that its books begin empty. */
async function callsPerSecond(argumentsFor) {
  const simulator = await startSimulator('--latency', `${LATENCY_MS}ms`);
  try {
    const { status, stderr } = spawnSync(process.execPath, argumentsFor(simulator.url), { encoding: 'utf8' });
    if (status !== 0) throw new Error(`exit ${status}: ${stderr}`);
    const books = await fetch(new URL('/simulator/books', simulator.url)).then((response) => response.json());
    const whole = books.timeline.slice(1, -1);
    return whole.reduce((sum, { calls }) => sum + calls, 0) / whole.length;
  } finally {
    simulator.stop();
  }
}
