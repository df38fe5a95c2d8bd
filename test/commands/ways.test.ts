/** The same thousand documents by every way of sending: what a user gets does not hang on it, but for times, costs and ids. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { simulatedVector } from '../../src/simulator/embeddings.js';
import { runInProcess } from '../support/in-process.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

const DOCUMENTS = 1_000;
const GROUPED = ['--group-url', '/batch', '--group-min', '25'];
const REMOTE = ['--remote', '--poll-interval', '20ms'];

let workspace: Workspace;
let simulator: SimulatorHere;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorHere({
    outputTokens: { min: 3, max: 30 },
    prices: { inputMicroUsdPerToken: 2, outputMicroUsdPerToken: 10 },
    batches: { durationMs: 60 },
  });
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

function program(...args: readonly string[]) {
  return runInProcess(args, {
    folder: workspace.folder,
    environment: { OPENAI_API_KEY: 'sk-test', OPENAI_BASE_URL: simulator.url },
  });
}

/** A run of its own. @returns what of its results lines does not hang on when and how they were answered, what it cost, and its calls */
async function sent(name: string, ...flags: readonly string[]) {
  const before = await simulator.books();
  const end = await program('run', 'docs.jsonl', '--name', name, '--quiet', ...flags);
  expect(end.exitCode, end.stderr).toBe(0);
  const { calls, remote } = await simulator.books();
  let costUsd = 0;
  const lines = workspace
    .readLines<Record<string, unknown>>(`docs.${name}.results.jsonl`)
    .map(({ cost_usd, latency_ms: _, request_id: __, completed_at: ___, ...lasting }) => {
      costUsd += Number(cost_usd);
      return lasting;
    });
  return { lines, costUsd, calls: calls - before.calls, remote };
}

it('gives the same results alone, in groups, as responses and as batches, these at half the price', async () => {
  workspace.writeDocuments('docs.jsonl', numberedDocuments(DOCUMENTS));
  const asked = ['--system', 'Be brief.'];
  const alone = await sent('alone', ...asked);
  expect(alone.lines).toHaveLength(DOCUMENTS);
  const grouped = await sent('grouped', ...asked, ...GROUPED);
  expect(grouped.lines).toEqual(alone.lines);
  expect(grouped.costUsd).toBeCloseTo(alone.costUsd, 6);
  expect(grouped.calls).toBeLessThanOrEqual(DOCUMENTS / 25 + 1);

  const responses = await sent('responses', ...asked, ...GROUPED, '--endpoint', 'responses');
  expect(responses.lines).toEqual(alone.lines);
  expect(responses.costUsd).toBeCloseTo(alone.costUsd, 6);

  const batched = await sent('batched', ...asked, ...REMOTE);
  expect(batched.lines).toEqual(alone.lines);
  expect(batched.costUsd).toBeCloseTo(alone.costUsd / 2, 6);
  expect(batched.remote).toMatchObject({ linesRun: DOCUMENTS });
  // The books know dollars as fractions: what is billed is the same to the micro-dollar.
  expect(batched.remote.costUsd).toBeCloseTo(batched.costUsd, 6);
}, 180_000);

it('gives the same vectors in groups and as batches', async () => {
  const documents = numberedDocuments(DOCUMENTS);
  workspace.writeDocuments('docs.jsonl', documents);
  const asked = ['--endpoint', 'embeddings', '--model', 'text-embedding-3-small'];
  const grouped = await sent('grouped', ...asked);
  expect(grouped.lines).toMatchObject(
    documents.map(({ id, text }) => ({ id, output: simulatedVector(text) })),
  );
  const batched = await sent('batched', ...asked, ...REMOTE);
  expect(batched.lines).toEqual(grouped.lines);
});
