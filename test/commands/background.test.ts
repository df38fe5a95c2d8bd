/** Background responses as a user meets them: the whole program inside the test, against a simulator that serves them. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SimulatorOptions } from '../../src/simulator/options.js';
import { runInProcess } from '../support/in-process.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { waitFor } from '../support/wait-for.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

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
  simulator = await startSimulatorHere({ latencyMs: 30, ...options });
}

function program(...args: readonly string[]) {
  return runInProcess(args, { folder: workspace.folder, environment: { OPENAI_API_KEY: 'sk-test' } });
}

function run(...flags: readonly string[]) {
  const asked = ['--endpoint', 'responses', '--prompt', '{{text}}', '--base-url', simulator.url];
  return program('run', 'docs.jsonl', ...asked, ...flags);
}

const BACKGROUND = ['--background', '--poll-interval', '10ms'];

async function statusOf(name: string) {
  const { stdout } = await program('status', name, '--json');
  return JSON.parse(stdout) as {
    readonly status: string;
    readonly documents: Record<string, number>;
    readonly calls: { readonly made: number };
    readonly cost_usd: number;
    readonly tokens: { readonly input: number; readonly output: number };
    readonly in_doubt: { readonly calls: number; readonly calls_without_usage: number };
    readonly background_responses: readonly { readonly remote_id: string }[];
  };
}

const responses = async () => (await simulator.books()).remote.responses;

/** What of a results line does not hang on when and how it was answered. */
function lasting(file: string): object[] {
  return workspace
    .readLines<Record<string, unknown>>(file)
    .map(({ latency_ms: _, request_id: __, completed_at: ___, ...rest }) => rest);
}

describe('run --background', () => {
  it('gives the same results file as calls do, but for times and request ids, at the same cost, and leaves nothing at the server', async () => {
    await serve({ prices: { inputMicroUsdPerToken: 2, outputMicroUsdPerToken: 10 } });
    workspace.writeDocuments('docs.jsonl', numberedDocuments(40));
    expect((await run('--name', 'calls', '-o', 'calls.jsonl', '--quiet')).exitCode).toBe(0);
    const before = await simulator.books();
    const end = await run('--name', 'background', '-o', 'background.jsonl', ...BACKGROUND);
    expect(end.exitCode, end.stderr).toBe(0);
    expect(lasting('background.jsonl')).toEqual(lasting('calls.jsonl'));
    const { promptTokens, remote } = await simulator.books();
    expect(remote.responses.map(({ status, isDeleted }) => [status, isDeleted])).toEqual(
      Array(40).fill(['completed', true]),
    );
    const status = await statusOf('background');
    expect(status.calls.made).toBe(40);
    expect(status.tokens.input).toBe(promptTokens - before.promptTokens);
    expect(status.cost_usd).toBeCloseTo(
      remote.responses.reduce((sum, { costUsd }) => sum + costUsd, 0),
      9,
    );
    expect(status.background_responses).toEqual([]);
  });

  it('shows beforehand the request that it sends', async () => {
    await serve();
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
    const flags = ['--endpoint', 'responses', '--prompt', '{{text}}', '--background', '--json'];
    const { stdout } = await program('estimate', 'docs.jsonl', ...flags);
    expect(JSON.parse(stdout).first_request.body).toMatchObject({ background: true, store: true });
    expect((await run('--background', '--dry-run')).stdout).toContain('"background": true');
  });

  it('keeps what is at the server with --keep-remote', async () => {
    await serve();
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    expect((await run(...BACKGROUND, '--keep-remote')).exitCode).toBe(0);
    expect((await responses()).map(({ isDeleted }) => isDeleted)).toEqual([false, false, false]);
  });

  it('asks again for one that the server has lost, and for one that failed there', async () => {
    await serve({ background: { expireAfterMs: 0 } });
    workspace.writeDocuments('docs.jsonl', [
      ...numberedDocuments(1),
      { id: 'fails', text: '[[simulate:error-in-200-then-ok 1]]' },
    ]);
    const life = run(...BACKGROUND, '--max-attempts', '9');
    await waitFor('a third creation', async () => (await responses()).length >= 3);
    await simulator.reconfigure({ background: null });
    const end = await life;
    expect(end.exitCode, end.stderr).toBe(0);
    const status = await statusOf('docs');
    expect(status.documents).toMatchObject({ completed: 2, failed: 0 });
    expect(status.in_doubt.calls, 'the lost ones may have been billed').toBeGreaterThan(0);
  });

  it('cancels what is at the server with the run, removes it there, and keeps what was answered', async () => {
    await serve({ latencyMs: 3_600_000 });
    workspace.writeDocuments('docs.jsonl', [
      { id: 'done', text: '[[simulate:slow 1]]' },
      ...numberedDocuments(4),
    ]);
    const life = workspace.start([
      ...[
        'run',
        'docs.jsonl',
        '--endpoint',
        'responses',
        '--prompt',
        '{{text}}',
        '--base-url',
        simulator.url,
      ],
      ...BACKGROUND,
    ]);
    await waitFor('an answer that is stored', async () => {
      const all = await responses();
      return all.length === 5 && all.some(({ isDeleted }) => isDeleted);
    });
    life.kill('SIGINT');
    const { stderr, exitCode } = await life.ended;
    expect(exitCode, stderr).toBe(130);
    expect(stderr).toContain(
      '4 background responses go on at the provider; `llm-batch resume docs` fetches the answers',
    );
    expect((await program('status', 'docs')).stdout).toMatch(
      /remote +4 background responses at the provider/,
    );
    expect((await statusOf('docs')).background_responses).toHaveLength(4);

    const end = await program('cancel', 'docs', '--yes');
    expect(end.exitCode, end.stderr).toBe(0);
    expect((await responses()).map(({ status, isDeleted }) => [status, isDeleted])).toEqual([
      ['completed', true],
      ...Array(4).fill(['cancelled', true]),
    ]);
    const status = await statusOf('docs');
    expect(status).toMatchObject({ status: 'cancelled', background_responses: [] });
    expect(status.documents).toMatchObject({ completed: 1, cancelled: 4 });
  });

  it('says in one sentence that a server knows nothing of it, and stops', async () => {
    await serve({ background: { isOffered: false } });
    workspace.writeDocuments('docs.jsonl', numberedDocuments(60));
    const end = await run(...BACKGROUND);
    expect(end.exitCode).toBe(4);
    expect(end.stderr).toContain('The server makes no responses in the background');
    expect(end.stderr).toContain('run it again without --background');
    expect((await statusOf('docs')).documents).toMatchObject({ failed: 0, pending: 60 });
  });

  it('is no way that a run has to be sent by again, whichever server it keeps', async () => {
    await serve();
    workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
    expect(await run(...BACKGROUND)).toMatchObject({ exitCode: 0 });
    const asked = ['run', 'docs.jsonl', '--endpoint', 'responses', '--prompt', '{{text}}'];
    expect(await program(...asked, '--remote')).toMatchObject({ exitCode: 0 });
  });

  it('waits out a server that will not be asked, and does not ask twice for what was paid for', async () => {
    await serve({
      routeFaults: [
        { route: 'response', fault: '429', after: 2, times: 2 },
        { route: 'response', fault: '503', after: 6 },
        { route: 'response', fault: 'cut', after: 8 },
        { route: 'response', fault: 'reset', after: 9 },
        { route: 'delete-response', fault: '500' },
      ],
    });
    workspace.writeDocuments('docs.jsonl', numberedDocuments(4));
    const end = await run(...BACKGROUND);
    expect(end.exitCode, end.stderr).toBe(0);
    expect((await responses()).map(({ isDeleted }) => isDeleted)).toEqual([true, true, true, true]);
    expect((await statusOf('docs')).calls.made).toBe(4);
  });

  it.each([
    [['--endpoint', 'chat'], 'the run goes to chat'],
    [['--endpoint', 'responses', '--remote'], 'two ways to send'],
    [['--endpoint', 'responses', '--group-url', '/batch'], 'calls of one document'],
  ])('refuses %j', async (flags, words) => {
    await serve();
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
    for (const verb of ['run', 'estimate', 'check']) {
      const end = await program(verb, 'docs.jsonl', '--prompt', '{{text}}', '--background', ...flags);
      expect([end.exitCode, end.stderr.includes(words)], end.stderr).toEqual([2, true]);
    }
  });
});
