/** `-o -`: whoever reads it has every answer of the run, each once, however often the run was stopped. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { jsonLines } from '../support/program.js';
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.js';
import { numberedDocuments, type ResultLine, Workspace } from '../support/workspace.js';

const ALL = numberedDocuments(30);

let workspace: Workspace;
let simulator: SimulatorProcess;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorProcess();
  workspace.writeDocuments('docs.jsonl', ALL);
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

const settings = () => ['--base-url', simulator.url, '--concurrency', '2'];

function run(...flags: readonly string[]) {
  return workspace.run(['run', 'docs.jsonl', '--param', 'max_tokens=20', ...settings(), ...flags]);
}

/** A budget stops it after some of the documents; a shell redirects what it prints. */
function runInto(redirection: string, ...flags: readonly string[]) {
  const args = ['run', 'docs.jsonl', '--param', 'max_tokens=20', ...settings(), '-o', '-', ...flags];
  return workspace.run(args, { wrapper: ['sh', '-c', `exec "$0" "$@" ${redirection}`] });
}

/** Sorted by number; a document that is printed twice stands twice. */
function idsIn(text: string): string[] {
  return jsonLines<ResultLine>(text)
    .map(({ id }) => id)
    .sort((a, b) => Number(a.slice(4)) - Number(b.slice(4)));
}

const ALL_IDS = ALL.map(({ id }) => id);

describe('-o -', () => {
  it('prints every answer of the run once, what is stored first, after two stops too', async () => {
    const first = await run('-o', '-', '--max-tokens-total', '300');
    expect(first.exitCode, first.stderr).toBe(4);
    const second = await run('-o', '-', '--max-tokens-total', '600');
    expect(second.exitCode).toBe(4);
    const [few, more] = [idsIn(first.stdout), idsIn(second.stdout)];
    expect(few.length).toBeGreaterThan(0);
    expect(more.length).toBeGreaterThan(few.length);
    expect(more.length).toBeLessThan(ALL.length);
    expect(new Set(more).size).toBe(more.length);
    // In input order, ahead of what comes.
    const stored = jsonLines<ResultLine>(second.stdout).slice(0, few.length);
    expect(stored.map(({ id }) => id)).toEqual(few);

    const third = await run('-o', '-');
    expect(third.exitCode).toBe(0);
    expect(idsIn(third.stdout)).toEqual(ALL_IDS);
    // Of a run that is finished it prints them all again.
    const fourth = await run('-o', '-');
    expect(idsIn(fourth.stdout)).toEqual(ALL_IDS);
    expect((await simulator.books()).calls).toBe(ALL.length);
  });

  it('of resume prints every answer too', async () => {
    expect((await run('-o', '-', '--max-tokens-total', '300')).exitCode).toBe(4);
    const { exitCode, stdout } = await workspace.run(['resume', '-o', '-', '--max-tokens-total', '9000']);
    expect(exitCode).toBe(0);
    expect(idsIn(stdout)).toEqual(ALL_IDS);
  });

  it('with --only-new prints what this command brings, so that three outputs make one', async () => {
    const first = await run('-o', '-', '--max-tokens-total', '300');
    const second = await run('-o', '-', '--only-new', '--max-tokens-total', '600');
    const third = await workspace.run(['resume', '-o', '-', '--only-new', '--max-tokens-total', '9000']);
    expect(third.exitCode, third.stderr).toBe(0);
    expect(idsIn(second.stdout).length).toBeGreaterThan(0);
    expect(idsIn(first.stdout + second.stdout + third.stdout)).toEqual(ALL_IDS);
  });

  it('prints answers once that are taken from an earlier run, before the first call', async () => {
    expect((await run()).exitCode).toBe(0);
    const one = { id: 'doc-31', text: 'Nobody has asked this before.' };
    workspace.writeDocuments('docs.jsonl', [...ALL, one]);
    const { stdout } = await run('-o', '-', '--name', 'again', '--reuse');
    expect(idsIn(stdout)).toEqual([...ALL_IDS, one.id]);
    expect((await simulator.books()).calls).toBe(ALL.length + 1);
  });

  it('prints answers once that documents of the run share', async () => {
    const twins = ALL.flatMap(({ id, text }) => [
      { id, text },
      { id: `${id}0000`, text },
    ]);
    workspace.writeDocuments('docs.jsonl', twins);
    await run('-o', '-', '--dedupe', '--max-tokens-total', '300');
    const { stdout } = await run('-o', '-', '--dedupe');
    expect(idsIn(stdout)).toHaveLength(twins.length);
    expect(new Set(idsIn(stdout)).size).toBe(twins.length);
  });

  it('has no --only-new where results go to a file', async () => {
    const { exitCode, stderr } = await run('-o', 'answers.jsonl', '--only-new');
    expect(exitCode).toBe(2);
    expect(stderr).toContain('--only-new is for standard output');
    expect((await simulator.books()).calls).toBe(0);
  });
});

describe('-o - into a file', () => {
  it('that is written anew holds every answer', async () => {
    expect((await runInto('> out.jsonl', '--max-tokens-total', '300')).exitCode).toBe(4);
    expect((await runInto('> out.jsonl')).exitCode).toBe(0);
    expect(idsIn(workspace.read('out.jsonl'))).toEqual(ALL_IDS);
  });

  const CUT = '{"id":"doc-1","line":1,"out';

  it.each([
    ['is appended to', 'exec "$0" "$@" >> out.jsonl'],
    ['another program has begun', `{ printf %s '${CUT}'; "$0" "$@"; } > out.jsonl`],
  ])('that %s goes on behind a cut line with a line of its own', async (_, command) => {
    workspace.write('out.jsonl', CUT);
    const end = await workspace.run(['run', 'docs.jsonl', ...settings(), '-o', '-'], {
      wrapper: ['sh', '-c', command],
    });
    expect(end.exitCode, end.stderr).toBe(0);
    const [half, ...lines] = workspace.read('out.jsonl').split('\n');
    expect(half).toBe(CUT);
    expect(idsIn(lines.join('\n'))).toEqual(ALL_IDS);
  });

  it('that ends with a whole line gets no empty one', async () => {
    workspace.write('out.jsonl', '{"id":"doc-0"}\n');
    expect((await runInto('>> out.jsonl')).exitCode).toBe(0);
    expect(workspace.read('out.jsonl')).not.toContain('\n\n');
    expect(idsIn(workspace.read('out.jsonl'))).toEqual(['doc-0', ...ALL_IDS]);
  });
});
