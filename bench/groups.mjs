// 20,000 short documents through embeddings at 40 ms a call: in groups of 100, and singly, in turns.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { round } from './round.mjs';
import { ourRun, writeDocuments } from './runs.mjs';
import { startSimulator } from './simulator.mjs';

const DOCUMENTS = Number(process.env.DOCUMENTS ?? 20_000);
const ROUNDS = Number(process.env.ROUNDS ?? 1);

const folder = mkdtempSync(join(tmpdir(), 'llm-batch-bench-'));
const simulator = await startSimulator('--latency', '40ms');
try {
  const input = writeDocuments(folder, DOCUMENTS, (index) => `${index} is a number`);
  for (let turn = 0; turn < ROUNDS; turn += 1) {
    const grouped = secondsOf(input, 100, `grouped-${turn}`);
    const single = secondsOf(input, 1, `single-${turn}`);
    console.log(
      `round ${turn + 1}: groups of 100 ${round(grouped)} s · singly ${round(single)} s · ${round(single / grouped, 1)} times as fast (target 10), import and results included`,
    );
  }
} finally {
  simulator.stop();
  rmSync(folder, { recursive: true, force: true });
}

function secondsOf(input, groupMax, name) {
  const startedAt = performance.now();
  const flags = ['--endpoint', 'embeddings', '--group-max', String(groupMax)];
  const run = ourRun({ url: simulator.url, input, folder, name }, ...flags);
  const { status, stderr } = spawnSync(process.execPath, run, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`exit ${status}: ${stderr}`);
  return (performance.now() - startedAt) / 1_000;
}
