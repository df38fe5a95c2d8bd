// Calls a second at 50 open calls of 40 ms each, of which 1,250 are possible, and processor time per call, beside the loop
// a user would write. What the server saw counts, in its full seconds between the first and the last.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { round } from './round.mjs';
import { medianOf, ourRun, plainLoop, timed, writeDocuments } from './runs.mjs';
import { startSimulator } from './simulator.mjs';

const CALLS = Number(process.env.CALLS ?? 15_000);
const ROUNDS = Number(process.env.ROUNDS ?? 3);
const CONCURRENCY = Number(process.env.OPEN_CALLS ?? 50);
const LATENCY_MS = 40;
const POSSIBLE = (CONCURRENCY * 1_000) / LATENCY_MS;

const folder = mkdtempSync(join(tmpdir(), 'llm-batch-bench-'));
try {
  const input = writeDocuments(folder, CALLS, (index) => `${index} is a number`);
  const flags = ['--prompt', 'Classify: {{text}}', '--concurrency', String(CONCURRENCY)];
  const shares = [];
  for (let turn = 0; turn < ROUNDS; turn += 1) {
    const plain = await measured((url) => plainLoop({ url, input, folder, concurrency: CONCURRENCY }));
    const name = `turn-${turn}`;
    const ours = await measured((url) => ourRun({ url, input, folder, name }, ...flags));
    shares.push(ours.callsPerSecond / POSSIBLE);
    console.log(`round ${turn + 1}: loop ${inWords(plain)} · llm-batch ${inWords(ours)}`);
  }
  console.log(
    `${CONCURRENCY} open calls of ${LATENCY_MS} ms: median ${percent(medianOf(shares))} of ${POSSIBLE} calls/s (target 97 %)`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function inWords({ callsPerSecond, cpuSeconds }) {
  const share = percent(callsPerSecond / POSSIBLE);
  return `${round(callsPerSecond, 0)} calls/s (${share}), ${round((cpuSeconds / CALLS) * 1_000, 3)} ms/call`;
}

function percent(share) {
  return `${round(share * 100, 1)} %`;
}

/** A server of its own for each turn, so that its books begin empty. */
async function measured(argumentsFor) {
  const simulator = await startSimulator('--latency', `${LATENCY_MS}ms`);
  try {
    const { cpuSeconds } = timed(argumentsFor(simulator.url));
    const books = await fetch(new URL('/simulator/books', simulator.url)).then((response) => response.json());
    const whole = books.timeline.slice(1, -1);
    const callsPerSecond = whole.reduce((sum, { calls }) => sum + calls, 0) / whole.length;
    return { callsPerSecond, cpuSeconds };
  } finally {
    simulator.stop();
  }
}
