/** Ctrl-C once lets open calls finish, twice cuts them off; either way nothing is lost and no attempt is used. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunningProgram } from '../support/program.js';
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.js';
import { waitFor } from '../support/wait-for.js';
import { answerTo, numberedDocuments, Workspace } from '../support/workspace.js';

const DOCUMENTS = 40;
const CONCURRENCY = 8;

let workspace: Workspace;
let simulator: SimulatorProcess;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

/** Starts a run and waits until all its calls are open. */
async function runUntilBusy(flags: readonly string[] = [], detached = false): Promise<RunningProgram> {
  workspace.writeDocuments('docs.jsonl', numberedDocuments(DOCUMENTS));
  const program = workspace.start(
    ['run', 'docs.jsonl', '--base-url', simulator.url, '--concurrency', String(CONCURRENCY), ...flags],
    { detached },
  );
  await waitFor('open calls', async () => (await simulator.books()).openCalls === CONCURRENCY);
  return program;
}

function attemptsOfOpenTasks(): number[] {
  return workspace
    .query<{ attempts: number }>("SELECT DISTINCT attempts FROM tasks WHERE state <> 'completed'")
    .map((row) => row.attempts);
}

/** What a stop that lets open calls finish leaves behind, and that the rest is done afterwards, each once. */
async function expectCleanStop(program: RunningProgram): Promise<void> {
  const end = await program.ended;
  expect(end.exitCode, end.stderr).toBe(130);
  expect(end.stderr).toContain('llm-batch resume');
  expect(end.stderr).not.toContain('cutting off');
  const books = await simulator.books();
  expect(books).toMatchObject({ abandoned: 0, openCalls: 0 });
  expect(books.answered).toBe(books.calls);
  expect(books.calls).toBeLessThan(DOCUMENTS);
  expect(workspace.readLines('docs.results.jsonl')).toHaveLength(books.answered);
  expect(await workspace.status()).toMatchObject({
    status: 'open',
    drained_by: null,
    documents: { completed: books.answered, pending: DOCUMENTS - books.answered, in_progress: 0 },
    calls: { made: books.calls, open: 0, repeated: 0 },
  });
  expect(attemptsOfOpenTasks()).toEqual([0]);

  const resumed = await workspace.run(['resume']);
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  expect((await simulator.books()).calls).toBe(DOCUMENTS);
  expect(workspace.readLines('docs.results.jsonl').map(({ output }) => output)).toEqual(
    numberedDocuments(DOCUMENTS).map(({ text }) => answerTo(text)),
  );
}

describe('asked to stop once', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'by %s, open calls finish and are kept',
    async (signal) => {
      simulator = await startSimulatorProcess({ latencyMs: 400 });
      const program = await runUntilBusy();
      program.kill(signal);
      await expectCleanStop(program);
    },
  );

  it('six times by a terminal that is closed, it ends well each time, and no document is asked for twice', async () => {
    simulator = await startSimulatorProcess({ latencyMs: 400 });
    let program = await runUntilBusy();
    for (let hangUps = 1; hangUps <= 6; hangUps += 1) {
      const made = (await simulator.books()).calls;
      // What a terminal does: nothing can be read or written there any more, and everybody is told, some twice.
      program.child.stderr?.destroy();
      program.child.stdout?.destroy();
      program.kill('SIGHUP');
      expect(await program.ended).toMatchObject({ exitCode: 130, signal: null });
      expect(await simulator.books()).toMatchObject({
        calls: made,
        answered: made,
        abandoned: 0,
        openCalls: 0,
      });
      expect(workspace.query("SELECT count(*) AS tasks FROM tasks WHERE state = 'completed'")).toEqual([
        { tasks: made },
      ]);
      if (hangUps === 6) break;
      program = workspace.start(['resume', '--concurrency', '4']);
      await waitFor('open calls', async () => (await simulator.books()).calls === made + 4);
    }
    expect(
      workspace.query("SELECT id FROM tasks WHERE attempts + crash_count > 0 AND state <> 'completed'"),
    ).toEqual([]);

    const resumed = await workspace.run(['resume']);
    expect(resumed.exitCode, resumed.stderr).toBe(0);
    expect((await simulator.books()).calls).toBe(DOCUMENTS);
    expect((await workspace.status()).calls).toMatchObject({ made: DOCUMENTS, repeated: 0 });
    expect(workspace.readLines('docs.results.jsonl')).toHaveLength(DOCUMENTS);
  });

  it('by a signal to the whole process group, passed on once more, counts as once', async () => {
    simulator = await startSimulatorProcess({ latencyMs: 400 });
    const program = await runUntilBusy([], true);
    program.kill('SIGINT');
    // Another one, since equal signals that wait together become one in the kernel.
    program.child.kill('SIGTERM');
    await expectCleanStop(program);
  });

  it('waits for open calls no longer than --grace', async () => {
    simulator = await startSimulatorProcess({ outage: { fault: 'hang' } });
    const program = await runUntilBusy(['--grace', '500ms']);
    program.kill('SIGINT');
    const end = await program.ended;
    expect(end.exitCode, end.stderr).toBe(130);
    expect((await simulator.books()).abandoned).toBe(CONCURRENCY);
    expect((await workspace.status()).documents).toMatchObject({ pending: DOCUMENTS, in_progress: 0 });
    expect(attemptsOfOpenTasks()).toEqual([0]);
  });
});

describe('asked to stop twice', () => {
  it('calls are cut off, and their documents go back with no attempt used', async () => {
    simulator = await startSimulatorProcess({ outage: { fault: 'hang' } });
    const program = await runUntilBusy();
    // Signals that come together count as one, so a single second one could come too soon.
    const asked = waitFor('the second to count', () => {
      program.kill('SIGINT');
      return program.stderr().includes('cutting off');
    });
    const end = await program.ended;
    await asked;
    expect(end.exitCode, end.stderr).toBe(130);
    expect(end.stderr).toContain('llm-batch resume');
    expect((await simulator.books()).abandoned).toBe(CONCURRENCY);
    expect(await workspace.status()).toMatchObject({
      status: 'open',
      documents: { pending: DOCUMENTS, in_progress: 0, failed: 0 },
      calls: { made: CONCURRENCY, open: 0 },
    });
    expect(attemptsOfOpenTasks()).toEqual([0]);

    await simulator.heal();
    const resumed = await workspace.run(['resume']);
    expect(resumed.exitCode, resumed.stderr).toBe(0);
    expect(workspace.readLines('docs.results.jsonl')).toHaveLength(DOCUMENTS);
  });
});

describe('asked to stop during the import', () => {
  it('calls nobody, says how to go on, and goes on', async () => {
    simulator = await startSimulatorProcess();
    const lines = numberedDocuments(200).map((document) => `${JSON.stringify(document)}\n`);
    const flags = ['--base-url', simulator.url, '--concurrency', '64', '-o', 'out.jsonl'];
    const program = workspace.start(['run', '-', ...flags], { keepStdinOpen: true });
    program.child.stdin?.write(lines.slice(0, 150).join(''));
    await waitFor('its reading', () => program.stderr().includes('reading'));
    // Nothing more comes on standard input, and nobody ends it.
    program.kill('SIGINT');
    const end = await program.ended;
    expect(end.exitCode, end.stderr).toBe(130);
    expect(end.stderr).toContain('import interrupted; nothing was called');
    expect(end.stderr).toContain('The same command goes on');
    expect((await simulator.books()).calls).toBe(0);

    const second = workspace.start(['run', '-', ...flags], { keepStdinOpen: true });
    await waitFor('its import', () => second.stderr().includes('reading'));
    second.kill('SIGINT');
    expect((await second.ended).exitCode).toBe(130);

    const again = await workspace.run(['run', '-', ...flags], { input: lines.join('') });
    expect(again.exitCode, again.stderr).toBe(0);
    expect(workspace.readLines('out.jsonl')).toHaveLength(lines.length);
    expect((await simulator.books()).calls).toBe(lines.length);
  });
});

describe('a reader of standard output that goes away', () => {
  it('stops the run, which can be resumed', async () => {
    simulator = await startSimulatorProcess({ latencyMs: 100 });
    const program = await runUntilBusy(['-o', '-']);
    await waitFor('the first answer', () => program.stdout() !== '');
    program.child.stdout?.destroy();
    const end = await program.ended;
    expect(end.exitCode, end.stderr).toBe(130);
    expect(end.stderr).toContain('llm-batch resume');

    const resumed = await workspace.run(['resume']);
    expect(resumed.exitCode, resumed.stderr).toBe(0);
    expect(workspace.readLines('docs.results.jsonl')).toHaveLength(DOCUMENTS);
    expect((await simulator.books()).calls).toBe(DOCUMENTS);
  });
});
