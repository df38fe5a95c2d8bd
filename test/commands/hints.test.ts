/** Every hint, followed as it is printed: the commands in it are typed, the flags in it are added to what was typed. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CommandContext } from '../../src/app/context.js';
import { buildProgram } from '../../src/commands/program.js';
import { commandsAsTyped } from '../../src/ui/next-command.js';
import { runInProcess } from '../support/in-process.js';
import { jsonLines } from '../support/program.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { Workspace } from '../support/workspace.js';

const DOCS = 'my docs.jsonl';
/** What stands in a hint for something of the user's own. */
const SAMPLES: Readonly<Record<string, string>> = {
  '<input>': DOCS,
  'input.jsonl': DOCS,
  FILE: 'elsewhere.jsonl',
  NEW: 'new',
};
const VALUES: Readonly<Record<string, string>> = { '--name': 'other', '--db': 'other.db', '-o': 'out.jsonl' };
const FINE = { id: 'a', text: 'Fine.' };
const BAD = { id: 'b', text: '[[simulate:bad-request]]' };
const EMPTY = { id: 'c', text: '[[simulate:empty]]' };
const STOP = { id: 'd', text: '[[simulate:insufficient-quota]]' };

let workspace: Workspace;
let simulator: SimulatorHere;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorHere();
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

async function type(words: readonly string[], extra: Readonly<Record<string, string>> = {}) {
  const environment = { OPENAI_BASE_URL: simulator.url, ...extra };
  const { exitCode, stdout, stderr } = await runInProcess(words, { folder: workspace.folder, environment });
  return { exitCode, said: `${stdout}\n${stderr}` };
}

/** The words of a command as a shell takes them apart. */
function wordsOf(command: string): string[] {
  const shown = execFileSync('sh', ['-c', `printf '%s\\0' ${command}`], { encoding: 'utf8' });
  return shown.split('\0').slice(0, -1);
}

function commandsIn(said: string): string[] {
  const found = said.match(/(?:npx )?llm-batch [a-z][^`\n;·]*?(?=`|;|, |\. |\.?\n| · |$)/gm) ?? [];
  return [...new Set(found.map((command) => command.trim()))];
}

function flagsIn(said: string): string[] {
  return [...new Set(said.match(/(?<![\w'-])(--[a-z-]+|-o)(?![\w-])/g) ?? [])];
}

/** What answers a command that nobody has. */
const ASTRAY =
  /unknown (command|option)|is no command|There is no |has too many|The store holds no run|needs a/;

/** Types each command of what was said. @returns them */
async function follow(said: string): Promise<string[]> {
  const commands = commandsIn(said);
  for (const command of commands) {
    // The shell sees a placeholder as a redirection.
    const shellSafe = command.replace(/<input>/g, 'input.jsonl');
    const words = wordsOf(shellSafe).map((word) => SAMPLES[word] ?? word);
    const rest = words[0] === 'npx' ? words.slice(2) : words.slice(1);
    const end = await type(rest);
    expect(end.said, `${command}\n${end.said}`).not.toMatch(ASTRAY);
    expect(end.exitCode, `${command}\n${end.said}`).not.toBe(2);
    expect(end.exitCode, command).not.toBe(5);
  }
  return commands;
}

const run = (...flags: string[]) => type(['run', DOCS, '--concurrency', '1', ...flags]);

describe('the commands of a hint', () => {
  it('after documents that failed lead over the failures back to a run that goes on', async () => {
    workspace.writeDocuments(DOCS, [FINE, BAD, EMPTY]);
    const ran = await run();
    expect(await follow(ran.said)).toEqual(["llm-batch failures 'my docs'"]);
    const failures = await type(['failures', 'my docs']);
    expect(await follow(failures.said)).toEqual(["llm-batch retry 'my docs' --kind bad_output"]);
    const retried = await type(['retry', 'my docs', '--kind', 'invalid_request']);
    expect(await follow(retried.said)).toEqual(["llm-batch resume 'my docs'"]);
  });

  it('name the run that was stopped, though another one is newer, and the store that was named', async () => {
    const stored = ['--db', 'my store.db'];
    workspace.writeDocuments(DOCS, [STOP]);
    const stopped = await run(...stored);
    workspace.writeDocuments('newer.jsonl', [STOP]);
    await type(['run', 'newer.jsonl', ...stored]);
    expect(await follow(stopped.said)).toEqual(["llm-batch resume --db 'my store.db' 'my docs'"]);
    const status = await type(['status', 'my docs', '--db=my store.db']);
    expect(await follow(status.said)).toEqual(["llm-batch resume --db 'my store.db' 'my docs'"]);
    workspace.writeDocuments(DOCS, [FINE]);
    const done = await run(...stored, '-o', '-');
    expect(await follow(done.said)).toEqual(["llm-batch results --db 'my store.db' 'my docs' -o -"]);
  });

  it('lead out of what was typed wrongly', async () => {
    workspace.writeDocuments(DOCS, [FINE]);
    expect(await follow((await type([DOCS])).said)).toEqual([`llm-batch run '${DOCS}'`]);
    rmSync(workspace.path('my docs.results.jsonl'));
    expect(await follow((await type(['status', '--db', 'none.db'])).said)).toEqual([
      'llm-batch run --db none.db <input>',
    ]);
    expect(await follow((await type(['cancel', 'my docs'])).said)).toEqual([
      'llm-batch prune --older-than 30d',
    ]);
    expect(await follow((await type(['prune'])).said)).toEqual(['llm-batch list']);
    expect(await follow((await type(['results', 'my docs', '--join', '-o', 'x.parquet'])).said)).toEqual([]);
    expect((await type(['ressume'])).said).toContain('Did you mean resume?');
  });

  it('about a folder whose settings are not trusted lead to a run', async () => {
    workspace.writeDocuments(DOCS, [FINE]);
    workspace.write('llm-batch.config.json', JSON.stringify({ apiKeyEnv: 'SOME_KEY' }));
    const refused = await run();
    expect(refused).toMatchObject({ exitCode: 2 });
    expect(await follow(refused.said)).toEqual(['llm-batch trust']);
    expect(await run()).toMatchObject({ exitCode: 0 });
  });

  it('are those of npx where that started the program, and of nothing else', () => {
    const hint = 'try `llm-batch resume x` or llm-batch run <input>; /opt/llm-batch run, llm-batch.db';
    const byNpx =
      'try `npx llm-batch resume x` or npx llm-batch run <input>; /opt/llm-batch run, llm-batch.db';
    for (const environment of [{ npm_command: 'exec' }, { npm_execpath: '/usr/bin/npm-cli.js' }]) {
      expect(commandsAsTyped([], environment)(hint)).toBe(byNpx);
    }
    expect(commandsAsTyped([], {})(hint)).toBe(hint);
    expect(commandsAsTyped(['run', '--db', 'b.db'], {})('llm-batch trust; llm-batch list')).toBe(
      'llm-batch trust; llm-batch list --db b.db',
    );
  });

  it.each<[typed: readonly string[], named: string]>([
    [['--store', 'b.db'], '--store b.db'],
    [
      ['--store=postgres://ann:pa%40ss@h/d?password=pass', '--schema-name', 'ours'],
      '--store postgres://ann@h/d --schema-name ours',
    ],
    [['--store', 'postgres://ann:pa:ss@[h/d'], ''],
  ])('name the store of %j, and no password', (typed, named) => {
    const said = commandsAsTyped(['status', ...typed], {})('try llm-batch resume x');
    expect(said).toBe(`try llm-batch resume ${named === '' ? '' : `${named} `}x`);
  });

  it('after documents are left to workers name the store, whatever stands where no worker writes', async () => {
    workspace.writeDocuments(DOCS, [FINE]);
    workspace.write('my docs.results.jsonl', 'mine\n');
    const left = await run('--detach', '--store', 'ours.db');
    expect(commandsIn(left.said)).toEqual([
      "llm-batch worker --store ours.db --run 'my docs'",
      "llm-batch status --store ours.db 'my docs'",
    ]);
  });

  it('are followed as npx printed them', async () => {
    workspace.writeDocuments(DOCS, [FINE, BAD]);
    const ran = await type(['run', DOCS], { npm_command: 'exec' });
    expect(await follow(ran.said)).toEqual(["npx llm-batch failures 'my docs'"]);
    expect((await type(['run', '--help'], { npm_command: 'exec' })).said).toContain('  npx llm-batch run ');
  });
});

it.each([
  ['no header.csv', 'named.csv', ','],
  ['no header.csv.gz', 'named.csv', ','],
  ['no header.tsv', 'named.tsv', '\t'],
])('%s is told with a command that puts a header above it', async (name, named, delimiter) => {
  const rows = `good${delimiter}5\nbad${delimiter}1\n`;
  workspace.write(name, name.endsWith('.gz') ? gzipSync(rows) : rows);
  const end = await type(['run', name, '--prompt', 'Judge: {{text}}']);
  expect(end).toMatchObject({ exitCode: 2 });
  const command = /above it: (\(.*[ct]sv)$/m.exec(end.said)?.[1] ?? '';
  execFileSync('sh', ['-c', command], { cwd: workspace.folder });
  expect(workspace.read(named)).toBe(`text${delimiter}column_2\n${rows}`);
  expect(await type(['run', named, '--prompt', 'Judge: {{text}}'])).toMatchObject({ exitCode: 0 });
});

it('several tables without a header are told with the names alone', async () => {
  for (const name of ['1.csv', '2.csv']) workspace.write(name, 'good,5\nbad,1\n');
  const end = await type(['run', '*.csv', '--prompt', 'Judge: {{text}}']);
  expect(end.said).toMatch(/above it: echo text,column_2$/m);
});

it('a table without a header is told so where the field was guessed', async () => {
  workspace.write('no header.csv', 'good,5\nbad,1\n');
  expect((await type(['run', 'no header.csv', '-o', 'x.jsonl'])).said).toContain(
    "(echo text,column_2; cat 'no header.csv')",
  );
});

describe('the flags of a hint, added to what was typed,', () => {
  const changed = [{ ...FINE, text: 'Changed.' }];
  it.each<[about: string, flags: readonly string[], prepare: () => Promise<unknown>]>([
    [
      'answers that would be paid for again',
      ['--rerun-changed', '--keep', '--name'],
      async () => {
        workspace.writeDocuments(DOCS, [FINE]);
        await run();
        workspace.writeDocuments(DOCS, changed);
      },
    ],
    [
      'bad lines',
      ['--skip-bad-lines'],
      async () => workspace.write(DOCS, `${JSON.stringify(FINE)}\n{broken\n`),
    ],
    [
      'a file that is there',
      ['-o', '--force'],
      async () => {
        workspace.writeDocuments(DOCS, [FINE]);
        workspace.write('my docs.results.jsonl', 'mine\n');
      },
    ],
    [
      'a run that was cancelled',
      ['--name'],
      async () => {
        workspace.writeDocuments(DOCS, [FINE, STOP]);
        await run();
        await type(['cancel', '--yes']);
        await simulator.heal();
      },
    ],
    [
      'a key that is missing',
      ['--base-url', '--simulate'],
      async () => workspace.writeDocuments(DOCS, [FINE]),
    ],
  ])('about %s', async (about, flags, prepare) => {
    await prepare();
    const asTyped = about.startsWith('a key') ? { OPENAI_BASE_URL: '' } : {};
    const refused = await type(['run', DOCS], asTyped);
    expect(refused, refused.said).toMatchObject({ exitCode: 2 });
    expect(flagsIn(refused.said)).toEqual(flags);
    const before = (await simulator.books()).calls;
    const [flag = ''] = flags.slice(-1);
    const values: Readonly<Record<string, string>> = { ...VALUES, '--base-url': simulator.url };
    const end = await type(
      ['run', DOCS, ...[flag, values[flag] ?? ''].filter((word) => word !== '')],
      asTyped,
    );
    expect(end.exitCode, end.said).toBe(0);
    expect((await simulator.books()).calls).toBeGreaterThanOrEqual(before);
    expect(jsonLines(workspace.read(DOCS).replace('{broken\n', ''))).not.toEqual([]);
  });
});

describe('whatever the program may say', () => {
  const source = join(import.meta.dirname, '..', '..', 'src');
  const filesOf = (folder: string): string[] =>
    readdirSync(join(source, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(source, folder, name), 'utf8'));
  const { command: program } = buildProgram({ stdout: process.stdout } as unknown as CommandContext);
  const flagsOf = (verb: Command): string[] =>
    verb.options.flatMap(({ long, short }) => [long ?? '', short ?? '']);

  it('names commands and flags that there are', () => {
    const named = ['app', 'commands', 'ui', 'report']
      .flatMap(filesOf)
      .flatMap((text) =>
        [...text.matchAll(/`(?:npx )?llm-batch ([^`\\]*?)\\?`/g)].map(([, words = '']) => words),
      );
    const unknown = named.filter((words) => {
      const [name, ...rest] = words.replace(/\$\{(?:[^{}]|\{[^}]*\})*\}/g, 'X').split(' ');
      const verb = program.commands.find((each) => each.name() === name);
      if (verb === undefined) return true;
      return rest.some((word) => /^--?[a-z]/.test(word) && !flagsOf(verb).includes(word));
    });
    expect(named.length).toBeGreaterThan(30);
    // A file in place of a command, which is answered with the command; and words about a flag that no command has.
    expect(unknown.filter((words) => words !== 'docs.jsonl' && !words.includes('has no flag'))).toEqual([]);
  });

  it('names flags of some command where it names a flag alone', () => {
    const known = new Set([program, ...program.commands].flatMap(flagsOf));
    const words = [...filesOf('ui'), readFileSync(join(source, 'commands/error-words.ts'), 'utf8')].flatMap(
      (text) => [...text.matchAll(/(?<=['` (])--[a-z][a-z-]+(?=['`, .;:)=])/g)].map(([flag]) => flag),
    );
    expect(new Set(words).size).toBeGreaterThan(30);
    expect([...new Set(words)].filter((flag) => !known.has(flag))).toEqual([]);
  });
});
