/** Where results go: looked at before the first call, and written as the name's ending says. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { parse } from 'csv-parse/sync';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AS_ORDINARY_USER, HAS_ORDINARY_USER } from '../support/fault-tools.js';
import { runInProcess } from '../support/in-process.js';
import { jsonLines } from '../support/program.js';
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.js';
import { waitFor } from '../support/wait-for.js';
import { numberedDocuments, type ResultLine, Workspace } from '../support/workspace.js';

const BAD = { id: 'bad', text: '[[simulate:bad-request]] No.' };

let workspace: Workspace;
let simulator: SimulatorProcess;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorProcess();
  workspace.writeDocuments('docs.jsonl', [...numberedDocuments(3), BAD]);
});

afterEach(async () => {
  await simulator.stop();
  workspace.remove();
});

/** In the test's own process: most of these look at files alone. */
function command(...args: readonly string[]) {
  return runInProcess(args, { folder: workspace.folder });
}

function run(...flags: readonly string[]) {
  return command('run', 'docs.jsonl', '--base-url', simulator.url, ...flags);
}

async function callsMade(): Promise<number> {
  return (await simulator.books()).calls;
}

describe('where results go is looked at before the first call', () => {
  it.each([
    ['below a file', 'docs.jsonl/answers.jsonl', 'a part of its path is not a folder'],
    ['in a folder that is not there', 'none/answers.jsonl', 'its folder does not exist'],
    ['in a descriptor that is not open', '/dev/fd/63', 'it is not open'],
    ['in a folder that nobody can write to', '/proc/answers.jsonl', 'no call was made'],
  ])('%s', async (_, output, reason) => {
    const refused = await run('-o', output);
    expect(refused).toMatchObject({ exitCode: 2 });
    expect(refused.stderr).toContain(
      `Cannot write ${output.startsWith('/') ? output : workspace.path(output)}: `,
    );
    expect(refused.stderr).toContain(reason);
    expect(refused.stderr).toContain('no call was made');
    expect(await callsMade()).toBe(0);
    expect((await command('status')).stderr).toContain('no run');
  });

  it.skipIf(!HAS_ORDINARY_USER)(
    'beside an input whose folder is read-only, by default and with -o -',
    async () => {
      const folder = workspace.path('theirs');
      mkdirSync(folder);
      workspace.writeDocuments('theirs/docs.jsonl', numberedDocuments(2));
      chmodSync(folder, 0o555);
      chmodSync(workspace.folder, 0o777);
      const start = (...flags: readonly string[]) =>
        workspace.run(['run', 'theirs/docs.jsonl', '--base-url', simulator.url, ...flags], {
          wrapper: AS_ORDINARY_USER,
        });
      for (const flags of [[], ['-o', '-']]) {
        const refused = await start(...flags);
        expect(refused.exitCode, refused.stderr).toBe(2);
        expect(refused.stderr).toContain('permission denied');
        expect(refused.stderr).toContain('-o FILE');
      }
      expect(await callsMade()).toBe(0);
      expect((await start('-o', 'answers.jsonl')).exitCode).toBe(0);
      expect(workspace.readLines('answers.jsonl')).toHaveLength(2);
      expect(readdirSync(folder)).toEqual(['docs.jsonl']);
    },
  );

  it('of resume, where the folder of the input is gone', async () => {
    mkdirSync(workspace.path('in'));
    workspace.writeDocuments('in/docs.jsonl', [
      { id: 'stop', text: '[[simulate:insufficient-quota]] Stop.' },
    ]);
    const args = ['--base-url', simulator.url];
    expect((await command('run', 'in/docs.jsonl', ...args)).exitCode).toBe(4);
    rmSync(workspace.path('in'), { recursive: true });
    const calls = await callsMade();
    await simulator.heal();
    expect(await command('resume')).toMatchObject({ exitCode: 2 });
    expect(await callsMade()).toBe(calls);
    expect(await command('resume', '-o', 'answers.jsonl')).toMatchObject({ exitCode: 0 });
  });

  it('leaves nothing behind where it only looked', async () => {
    workspace.write('docs.errors.jsonl', 'mine\n');
    expect(await run()).toMatchObject({ exitCode: 2 });
    expect(readdirSync(workspace.folder).filter((name) => name.includes('.partial'))).toEqual([]);
    expect(existsSync(workspace.path('docs.results.jsonl'))).toBe(false);
  });

  it('a folder that goes away after calls were made is never told as exit 2', async () => {
    await simulator.reconfigure({ latencyMs: 500 });
    mkdirSync(workspace.path('out'));
    const program = workspace.start([
      'run',
      'docs.jsonl',
      '--base-url',
      simulator.url,
      '-o',
      'out/answers.jsonl',
    ]);
    await waitFor('the first call', async () => (await callsMade()) > 0);
    rmSync(workspace.path('out'), { recursive: true });
    const end = await program.ended;
    expect(end.exitCode).toBe(5);
    expect(end.stderr).toContain('The answers are safe in the store');
  });

  it('an input that is a descriptor has its files in the working folder', async () => {
    const end = await workspace.run(['run', '/dev/fd/3', '--base-url', simulator.url], {
      wrapper: ['sh', '-c', 'cat docs.jsonl | { exec "$0" "$@" 3<&0; }'],
    });
    expect(end.exitCode, end.stderr).toBe(3);
    expect(workspace.readLines('3.results.jsonl')).toHaveLength(3);
    expect(workspace.readLines('3.errors.jsonl')).toHaveLength(1);
  });
});

describe("a name's ending gives the format", () => {
  const IDS = ['doc-1', 'doc-2', 'doc-3'];

  /** The ids of a file in any format. */
  async function idsIn(name: string): Promise<string[]> {
    if (name.endsWith('.parquet')) {
      const file = await asyncBufferFromFile(workspace.path(name));
      return (await parquetReadObjects({ file })).map((row) => String(row['id']));
    }
    const bytes = readFileSync(workspace.path(name));
    const text = (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
    if (!/\.[ct]sv/.test(name)) return jsonLines<ResultLine>(text).map(({ id }) => id);
    const delimiter = name.includes('.tsv') ? '\t' : ',';
    return parse(text, { columns: true, delimiter }).map((row) => String((row as { id: string }).id));
  }

  it.each([
    ...['ans.csv', 'ans.tsv', 'ans.parquet', 'ans.jsonl.gz', 'ans.csv.gz', 'ans.tsv.gz'],
    ...['ans.ndjson', 'ans.gz', 'ans.results.csv', 'ans'],
  ])('in run and in results: %s', async (name) => {
    expect(await run('-o', name)).toMatchObject({ exitCode: 3 });
    expect(await idsIn(name)).toEqual(IDS);
    // What failed is told in lines, by the same name.
    expect(workspace.readLines('ans.errors.jsonl').map(({ id }) => id)).toEqual(['bad']);

    rmSync(workspace.path(name));
    expect(await command('results', '-o', name)).toMatchObject({ exitCode: 0 });
    expect(await idsIn(name)).toEqual(IDS);
    // The run's own file, in the run's own format.
    rmSync(workspace.path(name));
    expect((await command('results')).stderr).toContain(name);
    expect(await idsIn(name)).toEqual(IDS);
  });

  it('in resume: of the -o that the run was started with, and of a new one', async () => {
    const stop = { id: 'doc-3', text: '[[simulate:insufficient-quota]] Stop here.' };
    workspace.writeDocuments('docs.jsonl', [...numberedDocuments(2), stop]);
    expect(await run('-o', 'ans.csv', '--concurrency', '1')).toMatchObject({ exitCode: 4 });
    expect(await idsIn('ans.csv')).toEqual(['doc-1', 'doc-2']);
    await simulator.heal();
    expect(await command('resume')).toMatchObject({ exitCode: 0 });
    expect(await idsIn('ans.csv')).toEqual(IDS);
    expect(await command('resume', 'docs', '-o', 'ans.jsonl.gz')).toMatchObject({ exitCode: 0 });
    expect(await idsIn('ans.jsonl.gz')).toEqual(IDS);
  });

  it('and --format may not contradict it', async () => {
    await run();
    for (const [format, name] of [
      ['csv', 'ans.parquet'],
      ['openai', 'ans.csv'],
      ['csv', 'ans.tsv.gz'],
      ['jsonl', 'ans.csv'],
    ]) {
      const { exitCode, stderr } = await command('results', '--format', format ?? '', '-o', name ?? '');
      expect(exitCode).toBe(2);
      expect(stderr).toContain(`The ending of ${name} says`);
      expect(existsSync(workspace.path(name ?? ''))).toBe(false);
    }
    expect(await command('results', '--format', 'openai', '-o', 'ans.jsonl.gz')).toMatchObject({
      exitCode: 0,
    });
    expect(await command('results', '--format', 'csv', '-o', 'ans.txt')).toMatchObject({ exitCode: 0 });
    expect(workspace.read('ans.txt')).toMatch(/^id,line,status/);
  });

  it('and Parquet is not compressed twice', async () => {
    const { exitCode, stderr } = await run('-o', 'ans.parquet.gz');
    expect(exitCode).toBe(2);
    expect(stderr).toContain('name it ans.parquet');
    expect(await callsMade()).toBe(0);
  });

  it('of an errors file too: what failed alone, in another format', async () => {
    await run();
    await command('results', '--only', 'failed', '--format', 'csv');
    expect(await idsIn('docs.errors.csv')).toEqual(['bad']);
    expect(workspace.readLines('docs.errors.jsonl')).toHaveLength(1);
  });
});

describe('a run with a name of its own', () => {
  it('has files of its own beside the input, for resume and results too', async () => {
    await run();
    const before = workspace.read('docs.results.jsonl');
    expect(await run('--name', 'v2', '--prompt', 'Shorten: {{text}}')).toMatchObject({ exitCode: 3 });
    expect(workspace.readLines('docs.v2.results.jsonl')).toHaveLength(3);
    expect(workspace.readLines('docs.v2.errors.jsonl')).toHaveLength(1);
    expect(workspace.read('docs.results.jsonl')).toBe(before);

    rmSync(workspace.path('docs.v2.results.jsonl'));
    expect(await command('resume', 'v2')).toMatchObject({ exitCode: 3 });
    expect(workspace.readLines('docs.v2.results.jsonl')).toHaveLength(3);
    await command('results', 'v2', '--format', 'csv');
    expect(existsSync(workspace.path('docs.v2.results.csv'))).toBe(true);
    expect(workspace.read('docs.results.jsonl')).toBe(before);
  });

  it('takes a file over from the run that wrote it before', async () => {
    await run('-o', 'answers.jsonl');
    await run('--name', 'v2', '--prompt', 'Shorten: {{text}}', '-o', 'answers.jsonl', '--force');
    const filesOf = async (name: string): Promise<string[]> => {
      const { files } = JSON.parse((await command('status', name, '--json')).stdout);
      return files.map((path: string) => basename(path));
    };
    expect(await filesOf('docs')).not.toContain('answers.jsonl');
    expect(await filesOf('v2')).toContain('answers.jsonl');
  });

  it('that can be no file name has one that resembles it', async () => {
    expect(await run('--name', 'a/b: 2')).toMatchObject({ exitCode: 3 });
    expect(workspace.readLines('docs.a_b_ 2.results.jsonl')).toHaveLength(3);
  });
});

describe('a folder that was moved', () => {
  const STOP = { id: 'doc-3', text: '[[simulate:insufficient-quota]] Stop here.' };

  function inFolder(name: string, ...args: readonly string[]) {
    return runInProcess(args, { folder: workspace.path(name) });
  }

  it('goes on where it is now: its input, its files, and what its settings name', async () => {
    mkdirSync(workspace.path('before/out'), { recursive: true });
    workspace.writeDocuments('before/docs.jsonl', [...numberedDocuments(2), STOP]);
    const args = ['run', 'docs.jsonl', '--base-url', simulator.url, '--concurrency', '1'];
    const output = ['-o', 'out/answers.csv'];
    expect(await inFolder('before', ...args, ...output)).toMatchObject({ exitCode: 4 });
    renameSync(workspace.path('before'), workspace.path('after'));
    // Somebody else's file where the first one was.
    mkdirSync(workspace.path('before/out'), { recursive: true });

    await simulator.heal();
    expect(await inFolder('after', 'resume')).toMatchObject({ exitCode: 0 });
    expect(workspace.read('after/out/answers.csv')).toContain('doc-3');
    expect(readdirSync(workspace.path('before/out'))).toEqual([]);

    const calls = await callsMade();
    const again = await inFolder('after', ...args, ...output);
    expect(again.stderr).toContain('docs: 3 unchanged');
    expect(again).toMatchObject({ exitCode: 0 });
    expect(await callsMade()).toBe(calls);
  });

  it('takes no path with it that leads elsewhere', async () => {
    mkdirSync(workspace.path('before'));
    mkdirSync(workspace.path('data'));
    workspace.writeDocuments('data/docs.jsonl', numberedDocuments(1));
    await inFolder('before', 'run', '../data/docs.jsonl', '--base-url', simulator.url);
    renameSync(workspace.path('before'), workspace.path('after'));
    rmSync(workspace.path('data/docs.results.jsonl'));
    expect(await inFolder('after', 'results')).toMatchObject({ exitCode: 0 });
    expect(workspace.readLines('data/docs.results.jsonl')).toHaveLength(1);
  });
});
