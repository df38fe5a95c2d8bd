/** A real terminal that is closed under the program: whoever wrote there writes into nothing, and Node ends it badly. */
import { existsSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HAS_SCRIPT } from '../../support/fault-tools.js';
import { type SimulatorProcess, startSimulatorProcess } from '../../support/simulator-process.js';
import { waitFor } from '../../support/wait-for.js';
import { numberedDocuments, Workspace } from '../../support/workspace.js';

/** The terminal's shell hears of its end and says nothing to the program, so that its last word can be read. */
const SHELL = `exec script -qc "trap '' HUP; $*; echo \\$? > exit-code" /dev/null`;
const CONCURRENCY = 4;
const DOCUMENTS = 24;

let simulator: SimulatorProcess;
let workspace: Workspace;

beforeEach(async () => {
  simulator = await startSimulatorProcess({ latencyMs: 300 });
  workspace = new Workspace();
  workspace.writeDocuments('docs.jsonl', numberedDocuments(DOCUMENTS));
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

async function closeTerminal(): Promise<number> {
  const program = workspace.start(
    ['run', 'docs.jsonl', '--base-url', simulator.url, '--concurrency', String(CONCURRENCY)],
    { wrapper: ['sh', '-c', SHELL, 'sh'] },
  );
  await waitFor('open calls', async () => (await simulator.books()).openCalls === CONCURRENCY);
  const owner = (await workspace.status()).drained_by;
  program.kill('SIGKILL');
  await program.ended;
  return owner?.pid ?? 0;
}

async function expectEachOnce(): Promise<void> {
  expect((await simulator.books()).calls).toBe(DOCUMENTS);
  expect(workspace.readLines('docs.results.jsonl')).toHaveLength(DOCUMENTS);
}

async function exitCode(): Promise<string> {
  await waitFor('the end', () => existsSync(workspace.path('exit-code')) && lastWord() !== '');
  return lastWord();
}

function lastWord(): string {
  return workspace.read('exit-code').trim();
}

describe.skipIf(!HAS_SCRIPT)('a terminal that is closed (needs script)', () => {
  it('under a program that is not told of it, leaves the run alone', async () => {
    await closeTerminal();
    expect(await exitCode()).toBe('0');
    await expectEachOnce();
  });

  it('and hangs up, stops the run in good order', async () => {
    process.kill(await closeTerminal(), 'SIGHUP');
    expect(await exitCode()).toBe('130');
    expect((await simulator.books()).abandoned).toBe(0);
    const resumed = await workspace.run(['resume']);
    expect(resumed.exitCode, resumed.stderr).toBe(0);
    await expectEachOnce();
  });
});
