// 120,000 documents by remote batches: time and peak memory, how they were handed in, and what is left to do by hand: nothing.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ourRun, writeDocuments } from './runs.mjs';
import { startSimulator } from './simulator.mjs';

const DOCUMENTS = Number(process.env.DOCUMENTS ?? 120_000);
const LOOK_EVERY_MS = 20;

const folder = mkdtempSync(join(tmpdir(), 'llm-batch-remote-'));
const simulator = await startSimulator();
try {
  const text =
    'The battery lasts two days and the screen is bright, but the strap broke after a week. '.repeat(10);
  const input = writeDocuments(folder, DOCUMENTS, (index) => `${index} ${text}`);
  const sizes = `${DOCUMENTS} documents, ${(statSync(input).size / 1e6).toFixed(0)} MB`;
  const flags = ['--prompt', '{{text}}', '--remote', '--poll-interval', '500ms', '--log-json'];
  const run = ourRun({ url: simulator.url, input, folder, name: 'remote' }, ...flags);
  const startedAt = performance.now();
  const child = spawn(process.execPath, run, { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', (data) => {
    log += data;
  });
  let peakKilobytes = 0;
  const looking = setInterval(() => {
    peakKilobytes = Math.max(peakKilobytes, residentKilobytes(child.pid));
  }, LOOK_EVERY_MS);
  const exitCode = await new Promise((resolve) => child.on('close', resolve));
  clearInterval(looking);
  const seconds = (performance.now() - startedAt) / 1_000;
  const shards = log.split('\n').filter((line) => line.includes('"remote_submitted"')).length;
  console.log(`${sizes}: exit ${exitCode} after ${seconds.toFixed(0)} s, ${shards} batches`);
  console.log(`peak memory ${(peakKilobytes / 1024).toFixed(0)} MB (target 250)`);
} finally {
  simulator.stop();
  rmSync(folder, { recursive: true, force: true });
}

function residentKilobytes(pid) {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
