/** Every way to fail, against a server that does fail, ends as the table of failures says. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startSimulator } from '../../src/simulator/simulator.js';
import { hurriedClock } from '../support/hurried-clock.js';
import { runInProcess } from '../support/in-process.js';
import { jsonLines } from '../support/program.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { numberedDocuments, type StatusReport, Workspace } from '../support/workspace.js';

const FIXTURES = join(import.meta.dirname, '..', '..', 'fixtures');

interface ScriptedDocument {
  readonly id: string;
  readonly text: string;
  readonly expect: { readonly state: string; readonly kind: string | null; readonly attempts: number };
}

type Ends = Record<string, ScriptedDocument['expect']>;

interface SettledLine {
  readonly id: string;
  readonly status: string;
  readonly attempts: number;
  readonly error?: { readonly kind: string };
}

let workspace: Workspace;
let simulator: SimulatorHere | undefined;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(async () => {
  await simulator?.stop();
  workspace.remove();
});

function scripted(name: string): ScriptedDocument[] {
  return jsonLines<ScriptedDocument>(readFileSync(join(FIXTURES, name), 'utf8'));
}

/** Where most of the others are in trouble too, a failure is less than an attempt: one that was answered in the end used some. */
function expectationsOf(documents: readonly ScriptedDocument[], found: Ends): Ends {
  return Object.fromEntries(
    documents.map(({ id, expect: expected }) => {
      const attempts = found[id]?.attempts ?? 0;
      const isFewer = expected.state === 'completed' && attempts > 0 && attempts < expected.attempts;
      return [id, isFewer ? { ...expected, attempts } : expected];
    }),
  );
}

function endsOf(lines: readonly SettledLine[]): Ends {
  return Object.fromEntries(
    lines.map(({ id, status, attempts, error }) => [
      id,
      { state: status, kind: error?.kind ?? null, attempts },
    ]),
  );
}

function attemptsOfOpenTasks(): number[] {
  return workspace
    .query<{ attempts: number }>("SELECT DISTINCT attempts FROM tasks WHERE state IN ('ready', 'delayed')")
    .map((row) => row.attempts);
}

describe('a document', () => {
  // Seconds of back-off and of pauses pass in an instant; a time-out must still leave real sockets the time they need.
  it.each([
    ['failures.jsonl', 25, []],
    ['failures-timeout.jsonl', 10, ['--timeout', '10s', '--max-wait', '20s']],
  ])('of %s ends in the state, the kind and the attempts of the table', async (name, times, flags) => {
    const clock = hurriedClock(times);
    const server = await startSimulator({}, { clock });
    const inProcess = { folder: workspace.folder, clock };
    const documents = scripted(name);
    workspace.writeDocuments('docs.jsonl', documents);
    const { exitCode, stderr } = await runInProcess(
      ['run', 'docs.jsonl', '--base-url', server.url, ...flags],
      inProcess,
    );
    await server.close();
    expect(exitCode, stderr).toBe(3);
    const ends = [
      ...workspace.readLines<SettledLine>('docs.results.jsonl'),
      ...workspace.readLines<SettledLine>('docs.errors.jsonl'),
    ];
    expect(endsOf(ends)).toEqual(expectationsOf(documents, endsOf(ends)));

    const books = server.books();
    const { stdout } = await runInProcess(['status', '--json'], inProcess);
    const { calls, documents: counts, failed_by_kind } = JSON.parse(stdout) as StatusReport;
    expect(calls).toMatchObject({ made: books.calls, open: 0, repeated: 0 });
    expect(counts).toMatchObject({ total: documents.length, pending: 0, in_progress: 0 });
    expect(Object.values(failed_by_kind).reduce((sum, count) => sum + count, 0)).toBe(counts['failed']);
    expect(books.violations).toEqual({ overLimit: 0, beforeRetryAfter: 0, followedRedirect: 0 });
    expect(books.defect).toBeNull();
  });

  it('that fails at once does so in the program as it is installed too', async () => {
    simulator = await startSimulatorHere();
    const documents = scripted('failures.jsonl').filter((document) => document.expect.attempts === 1);
    workspace.writeDocuments('docs.jsonl', documents);
    const end = await workspace.run(['run', 'docs.jsonl', '--base-url', simulator.url]);
    expect(end.exitCode, end.stderr).toBe(3);
    expect(end.stdout).toBe('');
    const written = [
      ...workspace.readLines<SettledLine>('docs.results.jsonl'),
      ...workspace.readLines<SettledLine>('docs.errors.jsonl'),
    ];
    expect(endsOf(written)).toEqual(expectationsOf(documents, endsOf(written)));
    expect((await simulator.books()).calls).toBe((await workspace.status()).calls.made);
  });
});

describe('a failure of the whole run', () => {
  const model = ['--model', 'gpt-4o-mini'];

  it('an account that runs empty stops it with no attempt used, and resume finishes it', async () => {
    simulator = await startSimulatorHere({ latencyMs: 5, insufficientQuotaAfter: 20 });
    workspace.writeDocuments('docs.jsonl', numberedDocuments(40));
    const flags = ['--base-url', simulator.url, '--concurrency', '4'];
    const stopped = await workspace.run(['run', 'docs.jsonl', ...flags]);
    expect(stopped.exitCode, stopped.stderr).toBe(4);
    expect(stopped.stderr).toContain('quota_exhausted: This account has no credit left');
    expect(stopped.stderr).toContain('llm-batch resume');
    expect(await workspace.status()).toMatchObject({
      status: 'open',
      documents: { completed: 20, failed: 0, pending: 20, in_progress: 0 },
    });
    expect((await workspace.status()).halt_reason).toContain('quota_exhausted');
    expect(attemptsOfOpenTasks()).toEqual([0]);
    expect(workspace.readLines('docs.results.jsonl')).toHaveLength(20);
    const asked = (await simulator.books()).calls;
    expect(asked).toBeLessThanOrEqual(20 + 4);

    await simulator.heal();
    const resumed = await workspace.run(['resume']);
    expect(resumed.exitCode, resumed.stderr).toBe(0);
    expect(workspace.readLines('docs.results.jsonl').map(({ line }) => line)).toEqual(
      Array.from({ length: 40 }, (_, index) => index + 1),
    );
    const books = await simulator.books();
    expect(books).toMatchObject({ calls: asked + 20, accepted: 40, repeatedAccepted: 0 });
    expect((await workspace.status()).halt_reason).toBeNull();
  });

  it('a wrong key stops it and is mended by another', async () => {
    simulator = await startSimulatorHere({ keys: [{ key: 'sk-the-right-one-0123456789' }] });
    workspace.writeDocuments('docs.jsonl', numberedDocuments(10));
    const flags = ['--base-url', simulator.url, ...model];
    const stopped = await workspace.run(['run', 'docs.jsonl', ...flags], {
      environment: { OPENAI_API_KEY: 'sk-the-wrong-one-0123456789' },
    });
    expect(stopped.exitCode, stopped.stderr).toBe(4);
    expect(stopped.stderr).toContain('auth: ');
    expect(stopped.stderr).toContain('OPENAI_API_KEY');
    expect(attemptsOfOpenTasks()).toEqual([0]);

    const resumed = await workspace.run(['resume'], {
      environment: { OPENAI_API_KEY: 'sk-the-right-one-0123456789' },
    });
    expect(resumed.exitCode, resumed.stderr).toBe(0);
    expect(await workspace.status()).toMatchObject({ documents: { completed: 10 } });
  });

  it('an unknown model stops it and is mended by running the input again with another', async () => {
    simulator = await startSimulatorHere({ models: ['gpt-4o-mini'] });
    workspace.writeDocuments('docs.jsonl', numberedDocuments(10));
    const run = ['run', 'docs.jsonl', '--base-url', simulator.url, '--model'];
    const stopped = await workspace.run([...run, 'gpt-4o-minni']);
    expect(stopped.exitCode, stopped.stderr).toBe(4);
    expect(stopped.stderr).toContain('not_found: The model `gpt-4o-minni` does not exist');
    expect(stopped.stderr).toContain('--model');
    expect(attemptsOfOpenTasks()).toEqual([0]);

    const again = await workspace.run([...run, 'gpt-4o-mini']);
    expect(again.exitCode, again.stderr).toBe(0);
    expect(await workspace.status()).toMatchObject({ documents: { total: 10, completed: 10 } });
  });

  it('a wrong address stops it and is mended by --base-url', async () => {
    simulator = await startSimulatorHere();
    workspace.writeDocuments('docs.jsonl', numberedDocuments(10));
    const wrong = simulator.url.replace('/v1', '/api');
    const stopped = await workspace.run(['run', 'docs.jsonl', '--base-url', wrong]);
    expect(stopped.exitCode, stopped.stderr).toBe(4);
    expect(stopped.stderr).toContain('not_found: Invalid URL (POST /api/chat/completions)');
    expect(stopped.stderr).toContain('--base-url');
    expect(attemptsOfOpenTasks()).toEqual([0]);

    const resumed = await workspace.run(['resume', '--base-url', simulator.url]);
    expect(resumed.exitCode, resumed.stderr).toBe(0);
    expect(await workspace.status()).toMatchObject({ documents: { completed: 10 } });
  });

  it.each([
    ['payment-required', 'quota_exhausted'],
    ['forbidden', 'auth'],
    ['redirect', 'not_found'],
  ])('%s stops it as %s', async (behaviour, kind) => {
    simulator = await startSimulatorHere({ outage: { fault: behaviour } });
    workspace.writeDocuments('docs.jsonl', numberedDocuments(10));
    const { exitCode, stderr } = await runInProcess(['run', 'docs.jsonl', '--base-url', simulator.url], {
      folder: workspace.folder,
    });
    expect(exitCode, stderr).toBe(4);
    expect(stderr).toContain(`${kind}: `);
    expect(attemptsOfOpenTasks()).toEqual([0]);
    expect((await simulator.books()).violations.followedRedirect).toBe(0);

    await simulator.heal();
    expect((await runInProcess(['resume'], { folder: workspace.folder })).exitCode).toBe(0);
    expect(await workspace.status()).toMatchObject({ documents: { completed: 10 } });
  });
});
