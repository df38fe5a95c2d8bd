/** Settings that lie in a folder, and a store that came from somebody, reach nobody whom the user has not chosen. */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { noteWrittenFile } from '../../src/runs/outputs.js';
import { openStore } from '../../src/store/open.js';
import { type CraftedRun, craftStore } from '../support/crafted-store.js';
import { type InProcessOptions, runInProcess } from '../support/in-process.js';
import { temporaryFolder } from '../support/program.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

const TOKEN = 'ghp-a-token-of-something-else';

let workspace: Workspace;
let home: ReturnType<typeof temporaryFolder>;
let server: Server;
let url: string;
/** What anybody has sent to the server: its headers and body as text. */
let heard: string[];

beforeEach(async () => {
  workspace = new Workspace();
  home = temporaryFolder();
  heard = [];
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      heard.push(`${JSON.stringify(request.headers)}\n${body}`);
      response.setHeader('content-type', 'application/json');
      response.end(
        request.method === 'GET'
          ? '{"object":"list","data":[{"id":"gpt-4o-mini"}]}'
          : '{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}',
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
  workspace.remove();
  home.remove();
});

function ran(args: readonly string[], options: Partial<InProcessOptions> = {}) {
  const environment = {
    HOME: home.path,
    GITHUB_TOKEN: TOKEN,
    OPENAI_API_KEY: 'sk-mine',
    ...options.environment,
  };
  return runInProcess(args, { folder: workspace.folder, ...options, environment });
}

describe('a configuration in the working folder', () => {
  beforeEach(() => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
  });

  function configure(settings: object): void {
    workspace.write('llm-batch.config.json', JSON.stringify(settings));
  }

  it.each([
    ['doctor', ['doctor']],
    ['run', ['run', 'docs.jsonl']],
  ])('cannot send a variable of its choice to a server of its choice by %s', async (_, args) => {
    configure({ baseUrl: url, apiKeyEnv: 'GITHUB_TOKEN' });
    const end = await ran(args);
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain(`${workspace.path('llm-batch.config.json')} is not trusted`);
    expect(end.stderr).toContain(`baseUrl "${url}", apiKeyEnv "GITHUB_TOKEN"`);
    expect(end.stderr).toContain('llm-batch trust');
    expect(end.stderr).toContain('--config llm-batch.config.json');
    expect(heard).toEqual([]);
    expect(existsSync(workspace.storePath)).toBe(false);
  });

  it.each([
    ['a lane', () => ({ lanes: [{ apiKeyEnv: 'GITHUB_TOKEN', baseUrl: url }] })],
    ['a file elsewhere', () => ({ schema: join(home.path, 'secret.json') })],
    ['a file above', () => ({ promptFile: '../secret.txt' })],
    ['a price file elsewhere', () => ({ prices: join(home.path, 'prices.json') })],
    ['a folder of images elsewhere', () => ({ imageFolder: home.path })],
    ['a store elsewhere', () => ({ db: join(home.path, 'llm-batch.db') })],
    ['a file through a link', () => ({ schema: 'linked.json' })],
  ])('cannot name %s', async (_, settings) => {
    symlinkSync(join(home.path, 'secret.json'), workspace.path('linked.json'));
    configure(settings());
    const end = await ran(['run', 'docs.jsonl'], { environment: { OPENAI_BASE_URL: url } });
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain('is not trusted');
    expect(heard).toEqual([]);
  });

  it('is used for everything else, and for files beside it', async () => {
    configure({ model: 'gpt-4.1-mini', promptFile: 'prompt.txt', db: './answers.db' });
    workspace.write('prompt.txt', 'Sum up: {{text}}');
    const end = await ran(['run', 'docs.jsonl'], { environment: { OPENAI_BASE_URL: url } });
    expect(end.exitCode, end.stderr).toBe(0);
    expect(heard[0]).toContain('gpt-4.1-mini');
    expect(heard[0]).toContain('Sum up: This is document');
    expect(existsSync(workspace.path('answers.db'))).toBe(true);
  });

  it('is no matter where flags or the environment say who is called, nor to who only looks', async () => {
    configure({ baseUrl: 'http://127.0.0.1:9/v1', apiKeyEnv: 'GITHUB_TOKEN' });
    expect((await ran(['run', 'docs.jsonl', '--simulate'])).exitCode).toBe(0);
    const flags = ['--base-url', url, '--api-key-env', 'OPENAI_API_KEY'];
    const end = await ran(['run', 'docs.jsonl', ...flags]);
    expect(end.exitCode, end.stderr).toBe(0);
    expect((await ran(['status'])).exitCode).toBe(0);
    expect(heard.join()).not.toContain(TOKEN);
  });

  it('that the user names is used as it is', async () => {
    configure({ baseUrl: url, apiKeyEnv: 'MY_KEY' });
    const options = { environment: { MY_KEY: 'my-key-of-this-server' } };
    const end = await ran(['run', 'docs.jsonl', '--config', 'llm-batch.config.json'], options);
    expect(end.exitCode, end.stderr).toBe(0);
    expect(heard[0]).toContain('Bearer my-key-of-this-server');
    expect(heard).toHaveLength(2);
  });

  it('that is named and not there is told', async () => {
    const end = await ran(['run', 'docs.jsonl', '--config', 'other.json']);
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain(`There is no settings file ${workspace.path('other.json')}`);
  });

  it('is trusted once, for as long as what it reaches stays the same', async () => {
    configure({ baseUrl: url, rpm: 500 });
    const trusted = await ran(['trust']);
    expect(trusted.stderr).toContain(`baseUrl "${url}"`);
    expect((await ran(['run', 'docs.jsonl'])).exitCode).toBe(0);
    configure({ baseUrl: url, rpm: 600 });
    expect((await ran(['resume'])).exitCode).toBe(0);
    configure({ baseUrl: url, apiKeyEnv: 'GITHUB_TOKEN', rpm: 600 });
    expect((await ran(['run', 'docs.jsonl'])).stderr).toContain('is not trusted');
    expect(heard.join()).not.toContain(TOKEN);
  });

  it('is asked for on a terminal, and a yes is remembered', async () => {
    configure({ baseUrl: url });
    const no = await ran(['run', 'docs.jsonl'], { typed: '\n' });
    expect(no.exitCode).toBe(2);
    expect(no.stderr).toContain(`baseUrl "${url}". Trust it, as it is now?`);
    const yes = await ran(['run', 'docs.jsonl'], { typed: 'y\n' });
    expect(yes.exitCode, yes.stderr).toBe(0);
    expect((await ran(['run', 'docs.jsonl'])).exitCode).toBe(0);
  });

  it('is trusted in its own place only', async () => {
    configure({ baseUrl: url });
    await ran(['trust']);
    const copy = workspace.path('copy');
    mkdirSync(copy);
    writeFileSync(join(copy, 'llm-batch.config.json'), workspace.read('llm-batch.config.json'));
    expect((await ran(['run', '../docs.jsonl'], { folder: copy })).stderr).toContain('is not trusted');
  });

  it('that is a pipe is refused rather than waited on', async () => {
    execFileSync('mkfifo', [workspace.path('llm-batch.config.json')]);
    const end = await ran(['run', 'docs.jsonl']);
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain('it is not an ordinary file');
  });

  it('cannot steer the terminal by what it is asked about', async () => {
    configure({ baseUrl: `${url}\u001b]0;title\u0007\u202e\u009b31m` });
    const end = await ran(['run', 'docs.jsonl'], { typed: 'n\n' });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
    expect(end.stderr.split('Trust it')[0]).not.toMatch(/[\u001b\u0007\u009b\u202e]/);
  });
});

describe('.env in the working folder', () => {
  beforeEach(() => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
  });
  const environment = { OPENAI_API_KEY: '' };

  it('cannot say where the key is sent', async () => {
    workspace.write('.env', `OPENAI_BASE_URL=${url}\n`);
    const end = await ran(['run', 'docs.jsonl']);
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain(`${workspace.path('.env')} is not trusted, and holds OPENAI_BASE_URL`);
    expect(heard).toEqual([]);
  });

  it('gives what the environment lacks, once it is trusted, and none of it is stored', async () => {
    workspace.write('.env', `# mine\nexport OPENAI_API_KEY="sk-from-file"\nOPENAI_BASE_URL=${url} # here\n`);
    expect((await ran(['run', 'docs.jsonl'], { environment })).stderr).toContain('is not trusted');
    const yes = await ran(['run', 'docs.jsonl'], { environment, typed: 'y\n' });
    expect(yes.exitCode, yes.stderr).toBe(0);
    expect((await ran(['resume'], { environment })).exitCode).toBe(0);
    expect(heard[0]).toContain('Bearer sk-from-file');
    const left = readdirSync(home.path, { recursive: true, encoding: 'utf8' }).map((name) =>
      join(home.path, name),
    );
    const texts = [workspace.storePath, ...left]
      .filter((path) => statSync(path).isFile())
      .map((path) => readFileSync(path, 'latin1'));
    expect(texts.join()).not.toContain('sk-from-file');
  });

  it('is read last: the environment goes before it', async () => {
    workspace.write('.env', `OPENAI_API_KEY=sk-from-file\nOPENAI_BASE_URL=${url}\n`);
    await ran(['trust']);
    const end = await ran(['run', 'docs.jsonl']);
    expect(end.exitCode, end.stderr).toBe(0);
    expect(heard[0]).toContain('Bearer sk-mine');
  });

  it('or another file is taken as it is where the user names it', async () => {
    workspace.write(
      'keys.env',
      `OPENAI_API_KEY='sk-from-file'\nTEAM_KEY=pk-of-the-team\nOPENAI_BASE_URL=${url}\n`,
    );
    const header = ['--header', 'X-Team-Key: $TEAM_KEY'];
    const end = await ran(['run', 'docs.jsonl', '--env-file', 'keys.env', ...header], { environment });
    expect(end.exitCode, end.stderr).toBe(0);
    expect(heard[0]).toContain('Bearer sk-from-file');
    expect(heard[0]).toContain('"x-team-key":"pk-of-the-team"');
    expect(readFileSync(workspace.storePath, 'latin1')).not.toMatch(/sk-from-file|pk-of-the-team/);
    const missing = await ran(['run', 'docs.jsonl', '--env-file', 'none.env']);
    expect(missing.stderr).toContain(`There is no file ${workspace.path('none.env')} (--env-file)`);
  });

  it.each([
    ['a folder', (path: string) => mkdirSync(path)],
    ['a pipe', (path: string) => execFileSync('mkfifo', [path])],
  ])('that is %s is no matter', async (_, make) => {
    make(workspace.path('.env'));
    const end = await ran(['run', 'docs.jsonl', '--base-url', url]);
    expect(end.exitCode, end.stderr).toBe(0);
  });

  it('of another program is no matter', async () => {
    workspace.write('.env', 'DATABASE_URL=postgres://localhost\nSECRET_KEY=1\n');
    const end = await ran(['run', 'docs.jsonl', '--base-url', url]);
    expect(end.exitCode, end.stderr).toBe(0);
  });
});

describe('a store that came from somebody', () => {
  const craft = (crafted: CraftedRun) => craftStore(workspace, crafted);

  function alter(sql: string): void {
    const database = new Database(workspace.storePath);
    database.exec(sql);
    database.close();
  }

  it.each([
    ['resume', 2],
    ['doctor', 2],
  ])('cannot send a variable of its choice to a server of its choice by %s', async (verb, exitCode) => {
    await craft({ baseUrl: url, apiKeyEnv: ['GITHUB_TOKEN'] });
    const end = await ran([verb]);
    expect(end.exitCode).toBe(exitCode);
    expect(end.stderr + end.stdout).toContain(`${url} with the key in GITHUB_TOKEN`);
    expect(end.stderr + end.stdout).toContain('--trust-store');
    expect(heard).toEqual([]);
  });

  it('cannot have another variable sent along in a header', async () => {
    await craft({ baseUrl: url, apiKeyEnv: ['OPENAI_API_KEY'] });
    alter(`UPDATE runs SET settings_json = json_set(settings_json, '$.connection.headers',
           json('{"X-Team": "$GITHUB_TOKEN"}'))`);
    const end = await ran(['resume'], { environment: { OPENAI_BASE_URL: url } });
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain(`${url} with the key in OPENAI_API_KEY, GITHUB_TOKEN`);
    expect(heard).toEqual([]);
  });

  it('cannot send another variable to a server that is used, nor the usual one to another server', async () => {
    workspace.writeDocuments('mine.jsonl', numberedDocuments(1));
    await ran(['run', 'mine.jsonl', '--base-url', url, '--db', 'mine.db']);
    heard = [];
    await craft({ baseUrl: url, apiKeyEnv: ['GITHUB_TOKEN'] });
    expect((await ran(['resume'])).exitCode).toBe(2);
    expect((await ran(['resume'], { environment: { OPENAI_BASE_URL: url } })).exitCode).toBe(2);
    expect((await ran(['resume', '--api-key-env', 'GITHUB_TOKEN'])).exitCode).toBe(2);
    expect((await ran(['resume', '--api-key-env', 'OPENAI_API_KEY'])).exitCode).toBe(0);
    expect(heard.join()).not.toContain(TOKEN);
    expect(heard).toHaveLength(2);
  });

  it('is taken at its word with --trust-store, at a yes, and where the call names the same', async () => {
    await craft({ baseUrl: url, apiKeyEnv: ['GITHUB_TOKEN'] });
    const named = { environment: { OPENAI_BASE_URL: url, LLM_BATCH_API_KEY_ENV: 'GITHUB_TOKEN' } };
    expect((await ran(['doctor'], named)).stdout).not.toContain('--trust-store');
    expect((await ran(['doctor', '--trust-store'])).stdout).not.toContain('not used on this machine');
    const no = await ran(['resume'], { typed: 'n\n' });
    expect(no.stderr).toContain('Did you mean to use it? [y/N]');
    expect(no.exitCode).toBe(2);
    const yes = await ran(['resume'], { typed: 'y\n' });
    expect(yes.exitCode, yes.stderr).toBe(0);
  });

  it('goes on without a question where it leads to nobody new, from another machine too', async () => {
    await craft({ inputPath: '/somewhere/else/docs.jsonl', imageFolder: '/somewhere/else' });
    expect((await ran(['doctor', '--offline'])).stdout).not.toContain('--trust-store');
    const end = await ran(['resume', '-o', 'out.jsonl', '--base-url', url]);
    expect(end.exitCode, end.stderr).toBe(0);
  });

  it('cannot have pictures or prices read elsewhere', async () => {
    await craft({
      promptTemplate: '{{image text}}',
      imageFolder: home.path,
      pricesFile: join(home.path, 'p'),
    });
    const end = await ran(['resume'], { environment: { OPENAI_BASE_URL: url } });
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain(`not used on this machine: ${home.path}, ${join(home.path, 'p')}.`);
  });

  it.each([
    ['resume', ['resume', '--trust-store']],
    ['results', ['results']],
    ['results --join', ['results', '--join']],
    ['report', ['report']],
  ])('cannot have files written elsewhere by %s', async (_, args) => {
    const elsewhere = join(home.path, 'victim');
    mkdirSync(elsewhere);
    await craft({
      baseUrl: url,
      output: join(elsewhere, '.profile'),
      inputPath: join(elsewhere, 'docs.jsonl'),
    });
    const end = await ran(args);
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toContain(`The store says to write ${elsewhere}`);
    expect(end.stderr).toContain(`-o ${elsewhere}`);
    expect(readdirSync(elsewhere)).toEqual([]);
    expect(heard).toEqual([]);
  });

  it.each([
    ['resume', ['resume', '--trust-store']],
    ['results', ['results']],
    ['results --join', ['results', '--join']],
  ])('cannot have a file replaced that the run did not write, by %s', async (_, args) => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
    const victims = ['docs.results.jsonl', 'docs.joined.jsonl', 'mine.txt'];
    for (const name of victims) workspace.write(name, 'mine');
    const paths = victims.map((name) => workspace.path(name));
    const outputs = [...paths, ...paths.map((path) => ({ path, inode: 1, size: 4, modifiedAtMs: 1 }))];
    for (const output of [null, workspace.path('mine.txt')]) {
      rmSync(workspace.storePath, { force: true });
      await craft({ baseUrl: url, output });
      alter(`UPDATE runs SET output_paths_json = '${JSON.stringify(outputs)}'`);
      const end = await ran(args);
      expect(end.stderr).toContain('exists and was not written by this run');
      expect(end.exitCode).toBe(2);
    }
    for (const name of victims) expect(workspace.read(name)).toBe('mine');
    expect(heard).toEqual([]);
  });

  it('cannot have a rehearsal write a file', async () => {
    const logFile = join(home.path, '.profile');
    await craft({ simulator: { logFile, latencyMs: 1 } });
    expect((await ran(['resume'])).exitCode).toBe(0);
    expect(existsSync(logFile)).toBe(false);
  });

  it.each([
    ['connection', { connection: null }],
    ['connection.apiKeyEnv[0]', { connection: { baseUrl: null, apiKeyEnv: [{}], lanes: null } }],
    [
      'connection.lanes[0].apiKeyEnv',
      { connection: { baseUrl: null, apiKeyEnv: ['A'], lanes: [{ name: 'a', apiKeyEnv: 1 }] } },
    ],
    ['pacing.timeoutMs', { pacing: { concurrency: 'auto', maxAttempts: 1, timeoutMs: 'soon' } }],
    ['answers.check', { answers: { check: { kind: 'schema', schema: 'none' }, repair: false } }],
    ['pricesFile', { pricesFile: ['/etc/passwd'] }],
  ])('whose settings are odd in %s is told by every command that uses them', async (place, more) => {
    await craft({ more });
    for (const verb of ['resume', 'status', 'results']) {
      const end = await ran([verb]);
      expect(end.exitCode, verb).toBe(5);
      expect(end.stderr).toContain(`run 'docs' are not as this program writes them: ${place}.`);
    }
  });

  it('writes elsewhere where that is said by -o', async () => {
    await craft({ baseUrl: url, output: '/nowhere/at/all' });
    const out = join(home.path, 'out.jsonl');
    expect((await ran(['resume', '--trust-store', '-o', out])).exitCode).toBe(0);
    expect(readFileSync(out, 'utf8')).toContain('"output":"yes"');
    // From now on it is a place that this user has written to.
    expect((await ran(['results'])).exitCode).toBe(0);
  });
});

describe('a folder with a link or a pipe where results go', () => {
  it.each(['docs.results.jsonl', 'docs.errors.jsonl', 'docs.rejects.jsonl'])(
    'is not written through, and not waited on, at %s',
    async (name) => {
      workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
      const victim = join(home.path, 'made');
      symlinkSync(victim, workspace.path(name));
      const linked = await ran(['run', 'docs.jsonl', '--base-url', url]);
      expect(linked.exitCode).toBe(2);
      expect(linked.stderr).toContain(`${workspace.path(name)} is a link that leads out of its folder`);
      rmSync(workspace.path(name));
      execFileSync('mkfifo', [workspace.path(name)]);
      const piped = await ran(['run', 'docs.jsonl', '--base-url', url]);
      expect(piped.exitCode).toBe(2);
      expect(piped.stderr).toContain('is a pipe');
      expect(existsSync(victim)).toBe(false);
      expect(heard).toEqual([]);
    },
  );

  it('is written through where -o names it', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
    symlinkSync(join(home.path, 'made'), workspace.path('out.jsonl'));
    const end = await ran(['run', 'docs.jsonl', '--base-url', url, '-o', 'out.jsonl']);
    expect(end.exitCode, end.stderr).toBe(0);
    expect(existsSync(join(home.path, 'made'))).toBe(true);
    expect((await ran(['resume'])).exitCode).toBe(0);
  });
});

describe('a run of one\u2019s own', () => {
  it('asks nothing when it goes on, wherever its input, its results and its prices are', async () => {
    const data = temporaryFolder();
    try {
      writeFileSync(join(data.path, 'docs.jsonl'), '{"id":"a","text":"A document."}\n');
      writeFileSync(join(data.path, 'prices.json'), '{"models":{}}');
      const input = join(data.path, 'docs.jsonl');
      const flags = [
        '--base-url',
        url,
        '--api-key-env',
        'MY_KEY',
        '--prices',
        join(data.path, 'prices.json'),
      ];
      const started = await ran(['run', input, ...flags, '--name', 'one']);
      expect(started.exitCode, started.stderr).toBe(0);
      const out = join(data.path, 'elsewhere.jsonl');
      expect((await ran(['run', input, ...flags, '--name', 'two', '-o', out])).exitCode).toBe(0);
      for (const args of [
        ['resume', 'one'],
        ['resume', 'two'],
        ['results', 'one', '--format', 'csv'],
        ['report', 'two'],
      ]) {
        const end = await ran(args);
        expect(end.exitCode, end.stderr).toBe(0);
      }
    } finally {
      data.remove();
    }
  });

  it('that is killed before its new results have their name still owns the old ones', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
    await ran(['run', 'docs.jsonl', '--base-url', url]);
    const store = await openStore(workspace.storePath, { mode: 'write', clock: systemClock });
    const [run] = await store.listRuns();
    const next = { path: workspace.path('docs.results.jsonl'), inode: 1, size: 2, modifiedAtMs: 3 };
    for (const size of [2, 3]) await noteWrittenFile(store, run?.id ?? 0, { ...next, size });
    const { writtenFiles = [] } = (await store.listRuns())[0] ?? {};
    await store.close();
    expect(writtenFiles).toHaveLength(2);
    expect(writtenFiles[1]).toEqual({ ...next, size: 3 });
    expect((await ran(['results'])).exitCode).toBe(0);
  });

  it('of which nothing could be noted says so', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
    writeFileSync(join(home.path, '.local'), 'no folder');
    const end = await ran(['run', 'docs.jsonl', '--base-url', url]);
    expect(end.exitCode, end.stderr).toBe(0);
    expect(end.stderr).toContain('could not be noted');
    expect((await ran(['resume'])).stderr).toContain('--trust-store');
  });

  it('is noted for its user alone, and without a key', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
    await ran(['run', 'docs.jsonl', '--base-url', url]);
    const folder = join(home.path, '.local', 'state', 'llm-batch', 'trusted');
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    const [name = ''] = readdirSync(folder);
    expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(folder, name), 'utf8')).toBe(`server ${url}\n`);
  });
});
