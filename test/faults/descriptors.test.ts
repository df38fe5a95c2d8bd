/** Fewer open files than calls: connections follow the limit, and every document is answered. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

const DOCUMENTS = 4_000;

let workspace: Workspace;
let simulator: SimulatorProcess;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorProcess({ latencyMs: 20 });
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

it.skipIf(process.platform === 'win32')(
  'under 120 descriptors and 300 calls at once every document is answered by one call, and the limit is told',
  async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(DOCUMENTS));
    const flags = ['--base-url', simulator.url, '--concurrency', '300'];
    const end = await workspace.run(['run', 'docs.jsonl', ...flags], {
      wrapper: ['sh', '-c', 'ulimit -n 120; exec "$@"', 'sh'],
    });
    expect(end.exitCode, end.stderr).toBe(0);
    expect(end.stderr).toMatch(/lets the program open 72 connections at once \(`ulimit -n`\)/);
    expect(await simulator.books()).toMatchObject({ calls: DOCUMENTS, answered: DOCUMENTS });
    expect(workspace.readLines('docs.results.jsonl')).toHaveLength(DOCUMENTS);
  },
);
