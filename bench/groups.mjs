// Documents in groups: 40 ms a call and 0.2 ms a document. A table of group size x connections, adaptive groups beside
// it, and single calls on a sample; then a large run through groups that adapt.

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { round } from './round.mjs';
import { medianOf, ourRun, writeDocuments } from './runs.mjs';
import { CLI, startSimulator } from './simulator.mjs';

const DOCUMENTS = Number(process.env.DOCUMENTS ?? 20_000);
const LARGE = Number(process.env.LARGE ?? 100_000);
/** Each size in turns, so that a drifting machine hits all of them. */
const ROUNDS = Number(process.env.ROUNDS ?? 3);
/** Fewest and most documents of a call. */
const FIXED = [10, 25, 50, 100].map((size) => [size, size]);
const ADAPTIVE = [10, 100];
const CONNECTIONS = [4, 16, 30];
/** Single calls are measured on a twentieth. */
const SAMPLE = Math.ceil(DOCUMENTS / 20);

let measurements = 0;
const folder = mkdtempSync(join(tmpdir(), 'llm-batch-bench-'));
const simulator = await startSimulator('--latency', '40ms', '--options', '{"latencyMsPerDocument":0.2}');
try {
  const inputOf = (count) => {
    mkdirSync(join(folder, String(count)), { recursive: true });
    return writeDocuments(join(folder, String(count)), count, (index) => `${index} is a number`);
  };
  const input = inputOf(DOCUMENTS);
  console.log(
    `${DOCUMENTS} documents, import and results included: documents/s (mean and p99 of a call), the middle of ${ROUNDS} rounds`,
  );
  for (const connections of CONNECTIONS) {
    const rounds = Array.from({ length: ROUNDS }, () =>
      [...FIXED, ADAPTIVE].map((sizes) => measure(input, DOCUMENTS, connections, ...sizes)),
    );
    const measured = [...FIXED, ADAPTIVE].map((_, index) =>
      medianBySpeed(rounds.map((round) => round[index])),
    );
    const fixed = measured.slice(0, -1);
    const adaptive = measured.at(-1);
    const share = medianOf(rounds.map((each) => each.at(-1).perSecond / bestOf(each.slice(0, -1))));
    const cells = fixed.map((each, index) => `${FIXED[index][0]}: ${words(each)}`).join(' · ');
    console.log(
      `${connections} connections · ${cells} · adaptive: ${words(adaptive)}, ${round(share * 100, 0)} % of the best of its round (target 90)`,
    );
  }
  const single = measure(inputOf(SAMPLE), SAMPLE, 16, 1, 1);
  const large = measure(inputOf(LARGE), LARGE, 16, 10, 100);
  console.log(
    `${LARGE} documents over 16 connections, adaptive: ${words(large)} (target 5,000) · singly: ${words(single)} · ${round(large.perSecond / single.perSecond, 1)} times as fast (target 10)`,
  );
} finally {
  simulator.stop();
  rmSync(folder, { recursive: true, force: true });
}

function bestOf(measured) {
  return Math.max(...measured.map(({ perSecond }) => perSecond));
}

function medianBySpeed(measured) {
  const perSecond = medianOf(measured.map((each) => each.perSecond));
  return measured.find((each) => each.perSecond === perSecond);
}

function words({ perSecond, latency }) {
  return `${round(perSecond, 0)}/s (${round(latency.mean, 0)} ms, ${round(latency.p99, 0)} ms)`;
}

function measure(input, documents, connections, fewest, most) {
  measurements += 1;
  const name = `run-${measurements}-${documents}-${connections}-${fewest}-${most}`;
  const flags = ['--endpoint', 'embeddings', '--concurrency', String(connections)];
  const sizes = ['--group-min', String(fewest), '--group-max', String(most)];
  const run = ourRun({ url: simulator.url, input, folder, name }, ...flags, ...sizes);
  const startedAt = performance.now();
  output(run);
  const seconds = (performance.now() - startedAt) / 1_000;
  const status = JSON.parse(output([CLI, 'status', '--db', join(folder, `${name}.db`), '--json']));
  return { perSecond: documents / seconds, latency: status.latency_ms };
}

function output(args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`exit ${status}: ${stderr}`);
  return stdout;
}
