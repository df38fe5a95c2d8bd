// Processor time per call, against the loop a user would write, in turns so that a drifting machine hits both.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { round } from './round.mjs';
import { medianOf, ourRun, plainLoop, timed, writeDocuments } from './runs.mjs';
import { startSimulator } from './simulator.mjs';

const CALLS = Number(process.env.CALLS ?? 20_000);
const ROUNDS = Number(process.env.ROUNDS ?? 3);
const CONCURRENCY = 64;

const folder = mkdtempSync(join(tmpdir(), 'llm-batch-bench-'));
const simulator = await startSimulator();
try {
  const filler =
    'The battery lasts two days and the screen is bright, but the strap broke after a week. '.repeat(3);
  const input = writeDocuments(folder, CALLS, (index) => `${index} ${filler}`);
  const { url } = simulator;
  const ratios = [];
  for (let turn = 0; turn < ROUNDS; turn += 1) {
    const loop = timed(plainLoop({ url, input, folder, concurrency: CONCURRENCY }));
    const name = `turn-${turn}`;
    const flags = ['--prompt', 'Classify: {{text}}', '--concurrency', String(CONCURRENCY)];
    const ours = timed(ourRun({ url, input, folder, name }, ...flags));
    const written = readFileSync(join(folder, `${name}.jsonl`), 'utf8')
      .trimEnd()
      .split('\n').length;
    ratios.push(ours.cpuSeconds / loop.cpuSeconds);
    console.log(
      `round ${turn + 1}: loop ${perCall(loop)} ms/call (${round(CALLS / loop.wallSeconds, 0)} calls/s) · llm-batch ${perCall(ours)} ms/call (${round(CALLS / ours.wallSeconds, 0)} calls/s, ${written} results) · ratio ${round(ours.cpuSeconds / loop.cpuSeconds)}`,
    );
  }
  console.log(
    `processor time per call, llm-batch / plain loop: median ${round(medianOf(ratios))} (target 0.6)`,
  );
} finally {
  simulator.stop();
  rmSync(folder, { recursive: true, force: true });
}

function perCall({ cpuSeconds }) {
  return round((cpuSeconds / CALLS) * 1_000, 3);
}
