/** `--dedupe` and `--reuse`, over the real program and a simulated server that counts what it is asked. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { waitFor } from '../support/wait-for.js';
import { Workspace } from '../support/workspace.js';

const SETTLED_AND_SHARED = `SELECT 1 FROM tasks WHERE state = 'completed' AND shared_from = 'run' LIMIT 1`;

let workspace: Workspace;
let simulator: SimulatorHere;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorHere({ latencyMs: 5 });
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

function run(...args: string[]) {
  return workspace.run(args, { environment: { OPENAI_BASE_URL: simulator.url } });
}

async function status(name: string): Promise<Record<string, unknown>> {
  return JSON.parse((await run('status', name, '--json')).stdout) as Record<string, unknown>;
}

async function callsMade(): Promise<number> {
  return (await simulator.books()).calls;
}

/** `count` documents, of which every third text is one of three. */
function documents(count: number, name = 'docs.jsonl'): void {
  workspace.writeDocuments(
    name,
    Array.from({ length: count }, (_, index) => ({
      id: `d${index}`,
      text: index % 3 === 0 ? `common ${(index / 3) % 3}` : `text of its own, number ${index}`,
    })),
  );
}

describe('--dedupe', () => {
  it('makes one call for equal requests, and every document gets its answer', async () => {
    documents(90);
    const { exitCode, stderr } = await run('run', 'docs.jsonl', '--dedupe');
    expect(exitCode).toBe(0);
    expect(await callsMade()).toBe(63);
    expect(stderr).toMatch(/27 wait for the answer of an equal document/);
    expect(stderr).toMatch(/27 took the answer of an equal document/);
    expect(stderr).toMatch(/^90\/90 done \(100%\)/m);
    expect(await status('docs')).toMatchObject({
      documents: { total: 90, completed: 90, pending: 0 },
      shared: { within_run: 27, from_earlier_runs: 0, waiting: 0 },
    });
    expect((await run('report', '-o', '-')).stdout).toMatch(
      /<dt>Shared answers<\/dt><dd class="value">27<\/dd>/,
    );
    const results = await workspace.results();
    expect(results).toHaveLength(90);
    const outputs = new Map<string, Set<unknown>>();
    for (const { id, output } of results) {
      const index = Number(String(id).slice(1));
      const text = index % 3 === 0 ? `common ${(index / 3) % 3}` : String(index);
      outputs.set(text, (outputs.get(text) ?? new Set()).add(output));
    }
    expect([...outputs.values()].every(({ size }) => size === 1)).toBe(true);
    expect(results[9]).toMatchObject({ id: 'd9', shared_from: 'run', cost_usd: 0, attempts: 0, usage: null });
    expect(results[0]).not.toHaveProperty('shared_from');
  });

  it('is not done unless it is asked for', async () => {
    documents(30);
    expect((await run('run', 'docs.jsonl')).exitCode).toBe(0);
    expect(await callsMade()).toBe(30);
  });

  it('streams shared answers as well as called ones', async () => {
    documents(30);
    const { stdout } = await run('run', 'docs.jsonl', '--dedupe', '-o', '-');
    const ids = stdout
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { id: string }).id);
    expect(new Set(ids).size).toBe(30);
    expect(ids).toHaveLength(30);
  });

  it('streams the answers of large documents without holding them all', async () => {
    const filling = 'x'.repeat(100_000);
    workspace.writeDocuments(
      'large.jsonl',
      Array.from({ length: 1_500 }, (_, index) => ({ id: `d${index}`, text: 'the same', filling })),
    );
    // Together they are 150 MB.
    const environment = { OPENAI_BASE_URL: simulator.url, NODE_OPTIONS: '--max-old-space-size=96' };
    const { exitCode, stdout } = await workspace.run(
      ['run', 'large.jsonl', '--prompt', '{{text}}', '--dedupe', '-o', '-'],
      { environment },
    );
    expect(exitCode).toBe(0);
    expect(stdout.split('\n')).toHaveLength(1_501);
  });

  it('can be interrupted while it hands answers out, and goes on without another call', async () => {
    const same = 6_000;
    workspace.writeDocuments(
      'same.jsonl',
      Array.from({ length: same }, (_, index) => ({ id: `d${index}`, text: 'the same' })),
    );
    const environment = { OPENAI_BASE_URL: simulator.url };
    const program = workspace.start(['run', 'same.jsonl', '--dedupe', '-o', '-'], { environment });
    // Nobody reads on, so it stands in the middle of the first page.
    program.child.stdout?.pause();
    await waitFor('the import', () => program.stderr().includes('imported'));
    await waitFor('shared answers', () => workspace.query(SETTLED_AND_SHARED).length > 0);
    program.kill('SIGINT');
    await waitFor('its reaction', () => program.stderr().includes('stopping'));
    program.child.stdout?.resume();
    const first = await program.ended;
    expect(first.exitCode).toBe(130);
    expect(first.stderr).toMatch(/llm-batch resume same/);
    const settled = first.stdout.trimEnd().split('\n').length;
    expect(settled).toBeLessThan(same);
    expect(await status('same')).toMatchObject({
      documents: { completed: settled, pending: same - settled },
    });

    expect((await run('resume')).exitCode).toBe(0);
    expect(await workspace.results()).toHaveLength(same);
    expect(await callsMade()).toBe(1);
  });

  it('shares what an edited input adds with the answers that are there', async () => {
    documents(9);
    await run('run', 'docs.jsonl', '--dedupe');
    const before = await callsMade();
    documents(30);
    expect((await run('run', 'docs.jsonl', '--dedupe')).exitCode).toBe(0);
    // Fourteen of the 21 new ones have a text of their own; all three common texts are answered already.
    expect((await callsMade()) - before).toBe(14);
  });
});

describe('--reuse', () => {
  it('takes the answers of an earlier run to the same requests, and pays for the rest alone', async () => {
    documents(30, 'first.jsonl');
    await run('run', 'first.jsonl', '--dedupe');
    const before = await callsMade();
    documents(36, 'second.jsonl');
    const { exitCode, stderr } = await run('run', 'second.jsonl', '--reuse');
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/32 answered by earlier runs/);
    expect((await callsMade()) - before).toBe(4);
    expect(await status('second')).toMatchObject({ shared: { from_earlier_runs: 32 } });
    expect(await workspace.results('second')).toHaveLength(36);
  });

  it('takes nothing that another model, another prompt or another server has said', async () => {
    documents(9, 'first.jsonl');
    documents(9, 'second.jsonl');
    await run('run', 'first.jsonl');
    const before = await callsMade();
    await run(
      'run',
      'second.jsonl',
      '--reuse',
      '--model',
      'gpt-4.1-mini',
      '--name',
      'model',
      '-o',
      'model.jsonl',
    );
    await run(
      'run',
      'second.jsonl',
      '--reuse',
      '--prompt',
      'Shout: {{text}}',
      '--name',
      'prompt',
      '-o',
      'prompt.jsonl',
    );
    expect((await callsMade()) - before).toBe(18);
    const other = await startSimulatorHere({ latencyMs: 5 });
    await workspace.run(['run', 'second.jsonl', '--reuse', '--name', 'server', '-o', 'server.jsonl'], {
      environment: { OPENAI_BASE_URL: other.url },
    });
    expect((await other.books()).calls).toBe(9);
    await other.stop();
  });

  it('takes nothing of a run that has answers of several servers', async () => {
    documents(9, 'first.jsonl');
    documents(12, 'second.jsonl');
    await run('run', 'first.jsonl');
    const other = await startSimulatorHere({ latencyMs: 5 });
    const environment = { OPENAI_BASE_URL: other.url };
    documents(12, 'first.jsonl');
    await workspace.run(['run', 'first.jsonl'], { environment });
    expect((await other.books()).calls).toBe(3);
    await workspace.run(['run', 'second.jsonl', '--reuse'], { environment });
    expect((await other.books()).calls).toBe(15);
    await other.stop();
  });

  it('never takes an answer that was made up', async () => {
    documents(9, 'first.jsonl');
    documents(9, 'second.jsonl');
    await run('run', 'first.jsonl', '--simulate');
    await run('run', 'second.jsonl', '--reuse');
    expect(await callsMade()).toBe(9);
  });
});
