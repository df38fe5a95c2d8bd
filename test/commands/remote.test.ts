/** Remote batches as a user meets them: the whole program inside the test, against a simulator that works batches off. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SimulatorOptions } from '../../src/simulator/options.js';
import { runInProcess } from '../support/in-process.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

const MODELS = ['gpt-4o-mini', 'gpt-4o', 'gpt-4.1-mini'];

let workspace: Workspace;
let simulator: SimulatorHere;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

async function serve(options: SimulatorOptions = {}): Promise<void> {
  simulator = await startSimulatorHere({ ...options, batches: { durationMs: 60, ...options.batches } });
}

/** Requests of three models, which makes three batches. */
function writeRequests(count: number): void {
  const requests = numberedDocuments(count).map(({ id, text }, index) => ({
    ...{ id, model: MODELS[index % MODELS.length], messages: [{ role: 'user', content: text }] },
  }));
  workspace.writeDocuments('docs.jsonl', requests);
}

function program(...args: readonly string[]) {
  return runInProcess(args, { folder: workspace.folder, environment: { OPENAI_API_KEY: 'sk-test' } });
}

function run(...flags: readonly string[]) {
  return program('run', 'docs.jsonl', '--base-url', simulator.url, ...flags);
}

const REMOTE = ['--remote', '--poll-interval', '20ms'];

async function statusOf(name: string) {
  const { stdout } = await program('status', name, '--json');
  return JSON.parse(stdout) as {
    readonly status: string;
    readonly documents: Record<string, number>;
    readonly calls: { readonly made: number };
    readonly cost_usd: number;
    readonly tokens: { readonly input: number; readonly output: number };
    readonly remote_batches: readonly {
      readonly state: string;
      readonly model: string;
      readonly requests: number;
    }[];
  };
}

describe('run --remote', () => {
  it('makes a batch for each model, and knows its bill as the server does', async () => {
    await serve({ prices: { inputMicroUsdPerToken: 2, outputMicroUsdPerToken: 10 } });
    writeRequests(90);
    const end = await run('--name', 'batches', ...REMOTE);
    expect(end.exitCode, end.stderr).toBe(0);
    expect(end.stderr).toMatch(/remote batch 1 is with \S+: 30 requests as \S+/);
    expect(end.stderr).toMatch(/remote batch \d completed: 30 answered/);
    const { remote } = await simulator.books();
    const status = await statusOf('batches');
    expect(remote.batches).toHaveLength(3);
    expect(status.remote_batches.map(({ state, requests }) => [state, requests])).toEqual(
      Array(3).fill(['settled', 30]),
    );
    expect(status.tokens).toMatchObject({ input: remote.promptTokens, output: remote.completionTokens });
    expect(status.calls.made).toBe(remote.linesRun);
    expect(status.cost_usd).toBeCloseTo(remote.costUsd, 9);
  });

  it('fetches later what it did not wait for, and says where things stand meanwhile', async () => {
    await serve({ batches: { durationMs: 2_000 } });
    writeRequests(30);
    const handedIn = await run(...REMOTE, '--no-wait');
    expect(handedIn.exitCode, handedIn.stderr).toBe(0);
    expect(handedIn.stderr).toContain('3 remote batches with 30 documents go on at the provider');
    expect((await statusOf('docs')).documents).toMatchObject({ in_progress: 30, completed: 0 });
    expect((await program('status', 'docs')).stdout).toMatch(
      /remote +1 with \S+: (validating|in progress) · \d+ of 10 requests/,
    );
    const early = await program('resume', '--no-wait');
    expect(early.exitCode, early.stderr).toBe(0);
    expect((await simulator.books()).remote.batches).toHaveLength(3);
    const last = await program('resume');
    expect(last.exitCode, last.stderr).toBe(0);
    expect((await statusOf('docs')).documents).toMatchObject({ completed: 30 });
    expect((await simulator.books()).remote.linesRun).toBe(30);
  });

  it('does not create a batch twice when the answer to its creation is lost', async () => {
    await serve({ routeFaults: [{ route: 'create', fault: 'drop', times: 2 }] });
    writeRequests(9);
    const end = await run(...REMOTE);
    expect(end.exitCode, end.stderr).toBe(0);
    const { remote } = await simulator.books();
    expect(remote.batches).toHaveLength(3);
    expect(remote.linesRun).toBe(9);
  });

  it('cancels what is at the provider with the run, and keeps what was answered', async () => {
    await serve({ batches: { durationMs: 3_600_000 } });
    writeRequests(9);
    expect((await run(...REMOTE, '--no-wait')).exitCode).toBe(0);
    const end = await program('cancel', 'docs', '--yes');
    expect(end.exitCode, end.stderr).toBe(0);
    const { remote } = await simulator.books();
    expect(remote.batches.map(({ status }) => status)).toEqual(Array(3).fill('cancelled'));
    const status = await statusOf('docs');
    expect(status.status).toBe('cancelled');
    expect(status.documents).toMatchObject({ completed: remote.linesRun, cancelled: 9 - remote.linesRun });
  });

  it('is refused where waiting is switched off for calls', async () => {
    await serve();
    writeRequests(3);
    const end = await run('--no-wait');
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain('add --remote');
  });
});
