/** Where answers go may fail as well: a reader leaves, a disk is full, somebody else's file stands in the way. */
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FaultRun } from '../../support/fault-run.js';
import { type SimulatorProcess, startSimulatorProcess } from '../../support/simulator-process.js';
import { waitFor } from '../../support/wait-for.js';

const CONCURRENCY = 4;
const DOCUMENTS = 60;

let simulator: SimulatorProcess;
let run: FaultRun;

beforeAll(async () => {
  simulator = await startSimulatorProcess({ latencyMs: 50 });
});

afterAll(() => simulator.stop());

beforeEach(() => {
  run = new FaultRun({ simulator, documents: DOCUMENTS, concurrency: CONCURRENCY });
});

afterEach(() => run.remove());

async function expectRestFollows(): Promise<void> {
  const resumed = await run.finish();
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  expect(await run.violations(0)).toEqual([]);
}

describe.skipIf(process.platform === 'win32')('standard output', () => {
  it('whose reader leaves (head -1) stops the run in good order', async () => {
    // The pipe's end is that of `head`, so what the program ended with is written beside it.
    const shell = `{ "$@"; echo $? > exit-code; } | head -1`;
    const end = await run.live('run', { wrapper: ['sh', '-c', shell, 'sh'] });
    expect(end.stdout.trimEnd().split('\n')).toHaveLength(1);
    expect(run.workspace.read('exit-code').trim(), end.stderr).toBe('130');
    expect(await run.calls()).toBeLessThan(DOCUMENTS);
    expect(run.stored().calls.open).toBe(0);
    await expectRestFollows();
  });

  it.skipIf(!existsSync('/dev/full'))('that is full stops the run in good order', async () => {
    const end = await run.live('run', { wrapper: ['sh', '-c', 'exec "$@" > /dev/full', 'sh'] });
    expect(end.exitCode, end.stderr).toBe(5);
    expect(end.stderr).toContain('Cannot write standard output: the disk is full');
    expect(end.stderr).toContain('the answers are safe in the store');
    expect(await run.calls()).toBeLessThan(DOCUMENTS);
    expect(run.stored().calls.open).toBe(0);
    await expectRestFollows();
  });
});

describe('a results file of somebody else', () => {
  const FOREIGN = 'Not written by any run.\n';
  const silent = { prints: false };

  it('that is there before is left alone, and nobody is called', async () => {
    run.workspace.write('docs.results.jsonl', FOREIGN);
    const end = await run.live('run', silent);
    expect(end.exitCode, end.stderr).toBe(2);
    expect(end.stderr).toContain('docs.results.jsonl exists and was not written by this run');
    expect(run.workspace.read('docs.results.jsonl')).toBe(FOREIGN);
    expect(await run.calls()).toBe(0);
  });

  it('that turns up during the run is left alone, then and later', async () => {
    const program = run.start('run', silent);
    await waitFor('some calls', async () => (await run.calls()) > CONCURRENCY);
    run.workspace.write('docs.results.jsonl', FOREIGN);
    const end = await program.ended;
    expect(end.exitCode, end.stderr).toBe(5);
    expect(end.stderr).toContain('docs.results.jsonl exists and was not written by this run');
    expect(end.stderr).toContain('The answers are safe in the store');
    const again = await run.live('resume', silent);
    expect(again.exitCode, again.stderr).toBe(2);
    expect(run.workspace.read('docs.results.jsonl')).toBe(FOREIGN);

    const elsewhere = await run.workspace.run(['results', '-o', 'mine.jsonl']);
    expect(elsewhere.exitCode, elsewhere.stderr).toBe(0);
    expect(run.workspace.readLines('mine.jsonl')).toHaveLength(DOCUMENTS);
    expect(await run.violations(0)).toEqual([]);
  });
});

describe.skipIf(!existsSync('/proc/self/fd'))('a command that waits (needs /proc)', () => {
  it('ends at Ctrl-C when there is nothing to bring to an end', async () => {
    expect((await run.live('run')).exitCode).toBe(0);
    const other = new Database(run.workspace.storePath);
    other.exec('BEGIN IMMEDIATE');
    const program = run.workspace.start(['retry']);
    const openFiles = `/proc/${program.child.pid}/fd`;
    await waitFor('the command to wait for the store', () =>
      readdirSync(openFiles).some((name) => linkOf(join(openFiles, name)) === run.workspace.storePath),
    );
    program.kill('SIGINT');
    const end = await program.ended;
    other.close();
    expect(end.exitCode ?? end.signal, end.stderr).toBe(130);
  });

  function linkOf(path: string): string {
    try {
      return readlinkSync(path);
    } catch {
      return ''; // Closed meanwhile.
    }
  }
});
