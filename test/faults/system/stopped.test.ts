/** A process that stands still for a while (SIGSTOP, as Ctrl-Z does it) and goes on. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FaultRun } from '../../support/fault-run.js';
import { type SimulatorProcess, startSimulatorProcess } from '../../support/simulator-process.js';
import { waitFor } from '../../support/wait-for.js';

let simulator: SimulatorProcess;
let run: FaultRun;

beforeEach(async () => {
  simulator = await startSimulatorProcess({ latencyMs: 500 });
});

afterEach(async () => {
  await simulator.stop();
  run.remove();
});

describe.skipIf(process.platform === 'win32')('a program that is suspended', () => {
  it('for longer than --timeout keeps the answers that came meanwhile', async () => {
    run = new FaultRun({ simulator, documents: 24, concurrency: 4, flags: ['--timeout', '2s'] });
    const program = run.start('run');
    await waitFor('open calls', async () => (await simulator.books()).openCalls === 4);
    program.kill('SIGSTOP');
    const stoppedAtMs = performance.now();
    await waitFor('the answers', async () => (await simulator.books()).openCalls === 0);
    await waitFor('more than the timeout', () => performance.now() - stoppedAtMs > 4_000);
    program.kill('SIGCONT');
    const end = await program.ended;
    expect(end.exitCode, end.stderr).toBe(0);
    expect((await simulator.books()).abandoned).toBe(0);
    expect(await run.violations(0)).toEqual([]);
  });
});
