/** One process drains a store. A second is told who it is; when it has died, the next takes over at once. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.js';
import { waitFor } from '../support/wait-for.js';
import { answerTo, numberedDocuments, Workspace } from '../support/workspace.js';

let workspace: Workspace;
let simulator: SimulatorProcess;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorProcess();
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

it('refuses a second process by name of the first, and lets it in at once when the first is dead', async () => {
  const quick = numberedDocuments(3);
  const stuck = [1, 2].map((number) => ({ id: `stuck-${number}`, text: `[[simulate:hang]] ${number}` }));
  workspace.writeDocuments('docs.jsonl', [...quick, ...stuck]);
  workspace.writeDocuments('other.jsonl', numberedDocuments(1));
  const flags = ['--base-url', simulator.url];
  const first = workspace.start(['run', 'docs.jsonl', ...flags]);
  const pid = first.child.pid ?? 0;
  await waitFor('the quick answers', async () => {
    if ((await simulator.books()).openCalls < stuck.length) return false;
    return (await workspace.status()).documents['completed'] === quick.length;
  });

  for (const command of [
    ['run', 'docs.jsonl', ...flags],
    ['resume'],
    ['run', 'other.jsonl', ...flags],
    ['retry'],
  ]) {
    const refused = await workspace.run(command);
    expect(refused.exitCode, command.join(' ')).toBe(5);
    expect(refused.stderr).toContain(`process ${pid} on `);
    expect(refused.stderr).toContain('run "docs"');
    expect(refused.stdout).toBe('');
  }
  // The refused ones have left nothing behind.
  expect((await workspace.run(['status', 'other'])).exitCode).toBe(2);

  // Those who only look are let in.
  expect(await workspace.status()).toMatchObject({
    run: 'docs',
    drained_by: { pid },
    documents: { completed: 3, in_progress: 2 },
  });
  expect((await workspace.run(['status'])).exitCode).toBe(0);
  expect((await workspace.run(['failures'])).exitCode).toBe(0);
  expect((await workspace.results()).map(({ output }) => output)).toEqual(
    quick.map(({ text }) => answerTo(text)),
  );

  first.kill('SIGKILL');
  await first.ended;
  expect((await workspace.status()).drained_by).toBeNull();
  await simulator.heal();
  const second = await workspace.run(['resume']);
  expect(second.exitCode, second.stderr).toBe(0);
  expect(workspace.readLines('docs.results.jsonl')).toHaveLength(5);
  expect((await simulator.books()).repeatedCalls).toBe(stuck.length);
});
