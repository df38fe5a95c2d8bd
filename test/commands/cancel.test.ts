/** A cancelled run is over for good: nothing of it is sent, and nothing that was paid for is lost. */
import { existsSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { openStore } from '../../src/store/open.js';
import { callEnd, completed } from '../contract/store/builders.js';
import { runInProcess } from '../support/in-process.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { waitFor } from '../support/wait-for.js';
import { answerTo, numberedDocuments, Workspace } from '../support/workspace.js';

let workspace: Workspace;
let simulator: SimulatorHere;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorHere();
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

function inProcess(...args: readonly string[]) {
  return runInProcess(args, { folder: workspace.folder });
}

const ANSWERED = numberedDocuments(3);
const STUCK = [1, 2].map((number) => ({ id: `stuck-${number}`, text: `[[simulate:hang]] ${number}` }));

/** A run with three answers and two calls that stay open; its process is alive. */
async function startRun() {
  workspace.writeDocuments('docs.jsonl', [...ANSWERED, ...STUCK]);
  const program = workspace.start(['run', 'docs.jsonl', '--base-url', simulator.url]);
  await waitFor('the answers', async () => {
    if ((await simulator.books()).openCalls < STUCK.length) return false;
    return (await workspace.status()).documents['completed'] === ANSWERED.length;
  });
  return program;
}

describe('cancel', () => {
  it('ends a run that its process has left, and every way back to it says so', async () => {
    const program = await startRun();
    const refused = await inProcess('cancel', '--yes');
    expect(refused.exitCode).toBe(5);
    expect(refused.stderr).toContain(`process ${program.child.pid} on `);
    program.kill('SIGKILL');
    await program.ended;
    await simulator.heal();

    const unsure = await workspace.run(['cancel', 'docs']);
    expect(unsure.exitCode).toBe(2);
    expect(unsure.stderr).toContain('--yes');
    expect((await workspace.status()).status).toBe('open');

    const cancelled = await workspace.run(['cancel', '--yes']);
    expect(cancelled.exitCode, cancelled.stderr).toBe(0);
    expect(cancelled.stderr).toContain('2 documents will not be sent, 3 answered and kept');
    expect(cancelled.stdout).toBe('');

    expect(await workspace.status()).toMatchObject({
      status: 'cancelled',
      documents: { total: 5, completed: 3, cancelled: 2, pending: 0, in_progress: 0 },
      calls: { open: 0 },
    });
    expect((await inProcess('status')).stdout).toMatch(/^docs · cancelled just now\n/);
    expect((await workspace.results()).map(({ output }) => output)).toEqual(
      ANSWERED.map(({ text }) => answerTo(text)),
    );

    const { calls } = await simulator.books();
    const run = ['run', 'docs.jsonl', '--base-url', simulator.url];
    for (const [command, wayOut] of [
      [['resume', 'docs'], '--name'],
      [['retry', 'docs'], '--name'],
      [run, '--name docs-2'],
      [[...run, '--name', 'docs'], '--name docs-2'],
    ] as const) {
      const end = await inProcess(...command);
      expect(end.exitCode, command.join(' ')).toBe(2);
      expect(end.stderr).toContain("'docs'");
      expect(end.stderr).toContain('cancelled for good');
      expect(end.stderr).toContain(wayOut);
    }
    expect((await simulator.books()).calls).toBe(calls);

    const anew = await inProcess(...run, '--name', 'docs-2', '-o', 'anew.jsonl');
    expect(anew.exitCode, anew.stderr).toBe(0);
    expect(workspace.readLines('anew.jsonl')).toHaveLength(5);
    // From now on the input has a run that is alive.
    expect((await inProcess(...run)).exitCode).toBe(0);
    expect((await workspace.status('docs')).status).toBe('cancelled');
  });

  it('keeps answers that an earlier process could not store', async () => {
    const program = await startRun();
    program.kill('SIGKILL');
    await program.ended;
    const [late] = workspace.query<{ id: number; attempt_token: string; call: number }>(
      `SELECT tasks.id, tasks.attempt_token, call_id AS call FROM tasks JOIN call_tasks ON task_id = tasks.id
       WHERE state = 'in_progress' ORDER BY line LIMIT 1`,
    );
    if (late === undefined) throw new Error('no call was open');
    const outcome = completed({ taskId: late.id, attemptToken: late.attempt_token }, callEnd(late.call));
    writeFileSync(`${workspace.storePath}.salvage.jsonl`, `${JSON.stringify(outcome)}\n`);

    const { stderr } = await inProcess('cancel', '--yes');
    expect(stderr).toContain('1 document will not be sent, 4 answered and kept');
    expect((await workspace.results()).map(({ output }) => output)).toContain('fine');
    expect(existsSync(`${workspace.storePath}.salvage.jsonl`)).toBe(false);
  });

  it('ends a run whose import was cut off', async () => {
    const store = await openStore(workspace.storePath, { mode: 'write', clock: systemClock });
    const settings = { connection: {} };
    await store.createRun({ name: 'half', inputPath: '-', simulated: false, settings, createdAtMs: 1 });
    await store.close();
    expect((await inProcess('cancel', '--yes')).exitCode).toBe(0);
    const again = await inProcess('cancel', '--yes');
    expect(again).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('cancelled already') });
  });

  it('has nothing to do for a finished run, and makes no store where there is none', async () => {
    const nowhere = await inProcess('cancel', '--yes');
    expect(nowhere.exitCode).toBe(5);
    expect(existsSync(workspace.storePath)).toBe(false);

    workspace.writeDocuments('docs.jsonl', ANSWERED);
    await inProcess('run', 'docs.jsonl', '--base-url', simulator.url);
    const finished = await inProcess('cancel', '--yes');
    expect(finished.exitCode).toBe(2);
    expect(finished.stderr).toContain('finished');
    expect((await workspace.status()).status).toBe('finished');
    expect((await inProcess('cancel', 'nope', '--yes')).exitCode).toBe(2);
  });
});
