/** `run --detach` brings documents in, and `worker` sends them: as a user does it, in processes of their own. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Interrupts } from '../../src/app/interrupts.js';
import { systemClock } from '../../src/core/clock.js';
import { runInProcess } from '../support/in-process.js';
import { postgresUrl } from '../support/postgres.js';
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

function detach(input: string, ...flags: string[]) {
  const args = ['run', input, '--detach', '--base-url', simulator.url, ...flags];
  return runInProcess(args, { folder: workspace.folder });
}

function worker(flags: readonly string[], environment: Record<string, string> = {}) {
  const args = ['worker', '--idle-exit', '0s', ...flags];
  return runInProcess(args, { folder: workspace.folder, environment });
}

it('sends what was detached, and leaves the files to those who want them', async () => {
  const documents = numberedDocuments(5);
  workspace.writeDocuments('docs.jsonl', documents);
  const detached = await detach('docs.jsonl');
  expect(detached.exitCode, detached.stderr).toBe(0);
  expect(detached.stderr).toContain('llm-batch worker --run docs');
  expect((await simulator.books()).calls).toBe(0);

  const worked = await worker(['--run', 'docs']);
  expect(worked.exitCode, worked.stderr).toBe(0);
  expect(worked.stderr).toContain('docs: finished · 5 answered');
  expect(await workspace.status()).toMatchObject({ status: 'finished', documents: { completed: 5 } });
  expect((await workspace.results()).map(({ output }) => output)).toEqual(
    documents.map(({ text }) => answerTo(text)),
  );
  expect(await worker(['--all'])).toMatchObject({ exitCode: 0, stderr: 'There was nothing to send.\n' });
});

it('tells every run in its log, and by its exit code that some documents failed', async () => {
  workspace.writeDocuments('good.jsonl', numberedDocuments(2));
  workspace.writeDocuments('bad.jsonl', [
    { id: 'x', text: '[[simulate:bad-request]] no' },
    ...numberedDocuments(2),
  ]);
  await detach('good.jsonl');
  await detach('bad.jsonl');
  const worked = await worker(['--all', '--log-json']);
  expect(worked.exitCode).toBe(3);
  const lines = worked.stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const ended = lines.filter(({ event }) => event === 'ended');
  expect(ended.map(({ run }) => run).sort()).toEqual(['bad', 'good']);
  expect(lines.filter(({ event }) => event === 'call_failed')).toMatchObject([{ run: 'bad', line: 1 }]);
});

describe('a run that is not to be sent from here', () => {
  it('for want of its key or of trust is told and passed over; alone it is an error', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
    workspace.writeDocuments('keyed.jsonl', numberedDocuments(2));
    await detach('docs.jsonl');
    await runInProcess(['run', 'keyed.jsonl', '--detach', '--model', 'gpt-4o-mini'], {
      folder: workspace.folder,
    });
    const worked = await worker(['--all']);
    expect(worked.exitCode, worked.stderr).toBe(4);
    expect(worked.stderr).toContain('keyed: passed over: No API key');
    expect(await workspace.status('docs')).toMatchObject({ status: 'finished' });

    const alone = await worker(['--run', 'keyed']);
    expect(alone.exitCode).toBe(2);
    expect(alone.stderr).toContain('OPENAI_API_KEY');

    workspace.writeDocuments('more.jsonl', numberedDocuments(2));
    await detach('more.jsonl');
    const elsewhere = { HOME: workspace.path('elsewhere'), XDG_STATE_HOME: workspace.path('elsewhere') };
    const untrusted = await worker(['--run', 'more'], elsewhere);
    expect(untrusted.exitCode).toBe(2);
    expect(untrusted.stderr).toContain('--trust-store');
    expect((await worker(['--run', 'more', '--trust-store'], elsewhere)).exitCode).toBe(0);
  });
});

it('wants to know which runs, and nothing beside --detach that only a sender can do', async () => {
  workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
  await detach('docs.jsonl');
  for (const flags of [[], ['--all', '--run', 'docs']]) {
    expect(await worker(flags)).toMatchObject({ exitCode: 2 });
  }
  expect((await worker(['--all', '--concurrency', 'many'])).stderr).toContain('--concurrency');
  expect((await detach('docs.jsonl', '--limit', '1')).stderr).toContain('--limit');
});

it('on a SQLite store is one process, which the next is told of, with the way out', async () => {
  workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
  workspace.writeDocuments('other.jsonl', numberedDocuments(1));
  await detach('docs.jsonl');
  const first = workspace.start(['worker', '--all', '--trust-store']);
  await waitFor('the answer', async () => (await workspace.status()).documents['completed'] === 1);
  for (const args of [
    ['worker', '--all'],
    ['run', 'other.jsonl', '--base-url', simulator.url],
  ]) {
    const second = await runInProcess(args, { folder: workspace.folder });
    expect(second.exitCode).toBe(5);
    expect(second.stderr).toContain(`process ${first.child.pid} on `);
    expect(second.stderr).toContain('a worker of all runs');
    expect(second.stderr).toContain('--db');
    expect(second.stderr).toContain('--store postgres://');
  }
  first.kill('SIGTERM');
  expect((await first.ended).exitCode).toBe(130);
  expect(await workspace.status()).toMatchObject({ drained_by: null, status: 'finished' });
});

it('shows Prometheus what it does, on this machine or to those who have a token', async () => {
  workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
  await detach('docs.jsonl');
  const refused = await worker(['--all', '--metrics', '0.0.0.0:0']);
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr).toContain('LLM_BATCH_SERVE_TOKENS');
  expect(refused.stderr).toContain('or give --metrics a port alone');
  const taken = await worker(['--all', '--metrics', new URL(simulator.url).port]);
  expect(taken.exitCode).toBe(2);
  expect(taken.stderr).toContain('The worker cannot listen on 127.0.0.1');
  expect(taken.stderr).toContain('--metrics HOST:PORT');
  expect((await worker(['--all', '--metrics', 'here'])).stderr).toContain('got "here"');

  let said = '';
  const interrupts = new Interrupts(systemClock);
  const working = runInProcess(['worker', '--all', '--metrics', '0'], {
    folder: workspace.folder,
    interrupts,
    onStderr: (text) => {
      said += text;
    },
  });
  await waitFor('the answers', () => said.includes('3 answered'));
  const url = /Figures for Prometheus at (\S+)\./.exec(said)?.[1] ?? '';
  const figures = await (await fetch(url)).text();
  interrupts.raise('SIGTERM');
  await working;
  expect(figures).toContain('llm_batch_tasks_settled_total{outcome="completed"} 3');
});

it('on PostgreSQL is one of several processes, which send each document once', async () => {
  workspace.writeDocuments('docs.jsonl', numberedDocuments(40));
  const store = ['--store', await postgresUrl(), '--schema-name', `workers_${process.pid}`];
  const detached = await detach('docs.jsonl', '--rpm', '10000', ...store);
  expect(detached.exitCode, detached.stderr).toBe(0);
  const ends = await Promise.all(
    [1, 2, 3].map(() => worker(['--run', 'docs', '--concurrency', '4', ...store])),
  );
  for (const { exitCode, stderr } of ends) expect(exitCode, stderr).toBe(0);
  const books = await simulator.books();
  expect({ calls: books.calls, repeated: books.repeatedCalls }).toEqual({ calls: 40, repeated: 0 });
  const results = await runInProcess(['results', 'docs', '-o', '-', ...store], { folder: workspace.folder });
  expect(results.stdout.trim().split('\n')).toHaveLength(40);
});
