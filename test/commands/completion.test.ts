/** The completion scripts in the shells they are for, where those are installed. */
import { spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { delimiter } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findProgram } from '../support/browser.js';
import { runInProcess } from '../support/in-process.js';
import { CLI_PATH } from '../support/program.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

const SHELLS = {
  bash: findProgram(['bash']),
  zsh: findProgram(['zsh']),
  fish: findProgram(['fish']),
};
type Shell = keyof typeof SHELLS;

/** Would run a command if it were ever expanded. */
const HOSTILE_NAME = 'odd $(touch was-run) `touch was-run`';

function where(shell: Shell): string {
  return SHELLS[shell] === null ? `${shell} (skipped: ${shell} is not installed)` : shell;
}

let workspace: Workspace;

beforeAll(async () => {
  workspace = new Workspace();
  workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
  workspace.write('two words.jsonl', '');
  workspace.write('llm-batch', `#!/bin/sh\nexec '${process.execPath}' '${CLI_PATH}' "$@"\n`);
  chmodSync(workspace.path('llm-batch'), 0o755);
  const run = async (...args: string[]) => {
    const end = await runInProcess(args, { folder: workspace.folder });
    expect(end).toMatchObject({ exitCode: 0 });
    return end;
  };
  await run('run', 'docs.jsonl', '--simulate', '--name', 'reviews');
  await run('run', 'docs.jsonl', '--simulate', '--name', HOSTILE_NAME);
  await run(
    'run',
    'docs.jsonl',
    '--simulate',
    '--name',
    'elsewhere',
    '--db',
    'other.db',
    '-o',
    'other.jsonl',
  );
  for (const shell of Object.keys(SHELLS)) {
    workspace.write(`completion.${shell}`, (await run('completion', shell)).stdout);
  }
});

afterAll(() => workspace.remove());

function execute(shell: Shell, script: string): { stdout: string; stderr: string; status: number | null } {
  const args = shell === 'bash' ? ['--norc', '-c'] : shell === 'zsh' ? ['-f', '-c'] : ['--no-config', '-c'];
  return spawnSync(SHELLS[shell] ?? shell, [...args, script], {
    cwd: workspace.folder,
    env: {
      PATH: `${workspace.folder}${delimiter}${process.env['PATH']}`,
      HOME: workspace.folder,
      LC_ALL: 'C.UTF-8',
    },
    encoding: 'utf8',
  });
}

describe.skipIf(SHELLS.bash === null)(`completion in ${where('bash')}`, () => {
  /** What bash offers for a line, taken apart into words as bash itself does. */
  function offers(...words: readonly string[]): string[] {
    const list = words.map((word) => `'${word}'`).join(' ');
    const { stdout, stderr } = execute(
      'bash',
      `source completion.bash
       handler=$(complete -p llm-batch | sed 's/.*-F \\([^ ]*\\).*/\\1/')
       COMP_WORDS=(llm-batch ${list}); COMP_CWORD=${words.length}
       "$handler" llm-batch "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD-1]}"
       printf '%s\\n' "\${COMPREPLY[@]}"`,
    );
    expect(stderr).toBe('');
    return stdout.split('\n').filter((line) => line !== '');
  }

  it('offers the commands first', () => {
    expect(offers('')).toEqual(expect.arrayContaining(['run', 'resume', 'report', 'completion', '--help']));
    expect(offers('res')).toEqual(['resume', 'results']);
    expect(offers('')).not.toContain('run-names');
  });

  it('offers the flags of the command', () => {
    expect(offers('run', 'docs.jsonl', '--max-c')).toEqual(['--max-cost']);
    expect(offers('status', '--w')).toEqual(['--watch']);
    expect(offers('status', '--prompt')).toEqual([]);
  });

  it('offers the choices of a flag, in one word with it or in two', () => {
    expect(offers('results', '--format', '')).toEqual(expect.arrayContaining(['jsonl', 'csv', 'openai']));
    expect(offers('results', '--format', '=')).toEqual(offers('results', '--format', ''));
    expect(offers('results', '--format', '=', 'c')).toEqual(['csv']);
    expect(offers('retry', '--kind', 'time')).toEqual(['timeout']);
    expect(offers('completion', '')).toEqual(['bash', 'zsh', 'fish']);
  });

  it('offers files where a file is meant, and nothing where nobody can know', () => {
    expect(offers('run', 'two')).toEqual(['two words.jsonl']);
    expect(offers('report', '-o', 'docs.j')).toEqual(['docs.jsonl']);
    expect(offers('run', 'docs.jsonl', '--rpm', '')).toEqual([]);
  });

  it('offers the names of runs, quoted and never run', () => {
    expect(offers('status', 'rev')).toEqual(['reviews']);
    const [odd = ''] = offers('status', 'odd');
    expect(execute('bash', `printf %s ${odd}`).stdout).toBe(HOSTILE_NAME);
    // Named after the run, its own files hold the words.
    expect(execute('bash', 'ls').stdout.split('\n')).not.toContain('was-run');
  });

  it('offers the runs of the store that the line names, and is silent where there is none', () => {
    expect(offers('status', '--db', 'other.db', '')).toEqual(['elsewhere']);
    expect(offers('status', '--db', '=', 'other.db', '')).toEqual(['elsewhere']);
    expect(offers('status', '--db', 'none.db', '')).toEqual([]);
  });
});

describe.skipIf(SHELLS.zsh === null)(`completion in ${where('zsh')}`, () => {
  it('is a script without mistakes that registers itself', () => {
    expect(execute('zsh', 'zsh -n completion.zsh')).toMatchObject({ status: 0, stderr: '' });
    const { stdout, stderr } = execute(
      'zsh',
      'autoload -Uz compinit; compinit -u -D; source completion.zsh; print $_comps[llm-batch]',
    );
    expect({ stdout, stderr }).toEqual({ stdout: '_llm_batch\n', stderr: '' });
  });
});

describe.skipIf(SHELLS.fish === null)(`completion in ${where('fish')}`, () => {
  /** Without the descriptions. */
  function offers(line: string): string[] {
    const { stdout, stderr } = execute('fish', `source completion.fish; complete -C '${line}'`);
    expect(stderr).toBe('');
    return stdout
      .split('\n')
      .map((offer) => offer.split('\t')[0] ?? '')
      .filter((offer) => offer !== '');
  }

  it('offers commands, flags, choices and runs', () => {
    expect(execute('fish', 'fish -n completion.fish')).toMatchObject({ status: 0, stderr: '' });
    expect(offers('llm-batch res')).toEqual(['results', 'resume']);
    expect(offers('llm-batch status --w')).toEqual(['--watch']);
    expect(offers('llm-batch results --format ')).toEqual(expect.arrayContaining(['csv', 'jsonl', 'openai']));
    expect(offers('llm-batch status rev')).toEqual(['reviews']);
    expect(offers('llm-batch status --db other.db el')).toEqual(['elsewhere']);
    expect(offers('llm-batch run docs.j')).toEqual(['docs.jsonl']);
  });
});
