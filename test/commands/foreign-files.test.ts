/** A file that a run did not write is overwritten only where the user says --force, whichever command writes it. */
import { existsSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runInProcess } from '../support/in-process.js';
import { answerTo, numberedDocuments, Workspace } from '../support/workspace.js';

const FOREIGN = 'written by somebody else\n';

let workspace: Workspace;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(() => workspace.remove());

/** Rehearsed: who answers does not matter here. */
function llmBatch(...args: readonly string[]) {
  const simulated = args[0] === 'run' ? ['--simulate'] : [];
  return runInProcess([...args, ...simulated], { folder: workspace.folder });
}

describe('a rejects file that somebody else wrote', () => {
  beforeEach(() => {
    workspace.write('docs.jsonl', '{"text":"A good line."}\n{"text":\n');
    workspace.write('docs.rejects.jsonl', FOREIGN);
  });

  it('stops the run before any call, and stays as it is', async () => {
    const { exitCode, stderr } = await llmBatch('run', 'docs.jsonl', '--skip-bad-lines');
    expect(exitCode, stderr).toBe(2);
    expect(stderr).toContain('docs.rejects.jsonl exists');
    expect(stderr).toContain('--force');
    expect(workspace.read('docs.rejects.jsonl')).toBe(FOREIGN);
    expect(existsSync(workspace.path('docs.results.jsonl'))).toBe(false);
    expect(workspace.query('SELECT 1 FROM calls')).toEqual([]);
  });

  it('is overwritten with --force', async () => {
    const { exitCode, stderr } = await llmBatch('run', 'docs.jsonl', '--skip-bad-lines', '--force');
    expect(exitCode, stderr).toBe(0);
    expect(workspace.readLines('docs.rejects.jsonl')).toMatchObject([{ line: 2, text: '{"text":' }]);
  });

  it('is nobody’s business while no line is bad', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
    expect((await llmBatch('run', 'docs.jsonl', '--skip-bad-lines')).exitCode).toBe(0);
    expect(workspace.read('docs.rejects.jsonl')).toBe(FOREIGN);
  });
});

describe('a rejects file of the run itself', () => {
  it('is replaced when the input is run again', async () => {
    workspace.write('docs.jsonl', '{"text":"A good line."}\n{"text":\n');
    expect((await llmBatch('run', 'docs.jsonl', '--skip-bad-lines')).exitCode).toBe(0);
    workspace.write('docs.jsonl', '{"text":"A good line."}\nbad\nworse\n');
    const { exitCode, stderr } = await llmBatch('run', 'docs.jsonl', '--skip-bad-lines');
    expect(exitCode, stderr).toBe(0);
    expect(workspace.readLines('docs.rejects.jsonl')).toMatchObject([{ line: 2 }, { line: 3 }]);
  });
});

describe('the files of a run', () => {
  it.each(['docs.results.jsonl', 'docs.errors.jsonl'])('are not written over a foreign %s', async (name) => {
    workspace.writeDocuments('docs.jsonl', [{ text: '[[simulate:refuse]] No.' }, { text: 'Yes.' }]);
    workspace.write(name, FOREIGN);
    const refused = await llmBatch('run', 'docs.jsonl');
    expect(refused.exitCode, refused.stderr).toBe(2);
    expect(refused.stderr).toContain(`${name} exists`);
    expect(workspace.read(name)).toBe(FOREIGN);

    const forced = await llmBatch('run', 'docs.jsonl', '--force');
    expect(forced.exitCode, forced.stderr).toBe(3);
    expect(workspace.readLines(name)).toHaveLength(1);
  });

  it('of a rehearsal belong to whoever comes next, and then to nobody else', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
    expect((await llmBatch('run', 'docs.jsonl')).exitCode).toBe(0);
    const file = ['-o', 'docs.results.jsonl'];
    const second = await llmBatch('run', 'docs.jsonl', '--name', 'second', ...file);
    expect(second.exitCode, second.stderr).toBe(0);
    const first = await llmBatch('results', 'docs-simulated', ...file);
    expect(first.exitCode, first.stderr).toBe(2);
    expect((await llmBatch('results', 'second', ...file)).exitCode).toBe(0);
  });
});

describe('results', () => {
  beforeEach(async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
    expect((await llmBatch('run', 'docs.jsonl')).exitCode).toBe(0);
    workspace.write('other.jsonl', FOREIGN);
  });

  it.each([[[]], [['--join']]])(
    '%j refuses a foreign file, and overwrites it with --force',
    async (flags) => {
      const refused = await llmBatch('results', '-o', 'other.jsonl', ...flags);
      expect(refused.exitCode, refused.stderr).toBe(2);
      expect(refused.stderr).toContain('--force');
      expect(workspace.read('other.jsonl')).toBe(FOREIGN);

      const forced = await llmBatch('results', '-o', 'other.jsonl', '--force', ...flags);
      expect(forced.exitCode, forced.stderr).toBe(0);
      expect(workspace.readLines('other.jsonl').map(({ output }) => output)).toEqual(
        numberedDocuments(2).map(({ text }) => answerTo(text)),
      );
    },
  );

  it('own a file that they wrote: the next time needs no --force', async () => {
    for (const flags of [['--force'], [], ['--include-input']]) {
      const { exitCode, stderr } = await llmBatch('results', '-o', 'other.jsonl', ...flags);
      expect(exitCode, stderr).toBe(0);
    }
    expect(workspace.readLines('other.jsonl')).toHaveLength(2);
  });
});
