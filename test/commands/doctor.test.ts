/** What is wrong is found before it costs a run, with a way out and the exit code that the run would end with. */
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  openSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { answerJson, type Loopback, startServer } from '../provider/openai/loopback.js';
import { ORDINARY_USER } from '../store/sqlite/child.js';
import { runInProcess } from '../support/in-process.js';
import { startSimulatorHere } from '../support/simulator-here.js';
import { waitFor } from '../support/wait-for.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

const KEY = 'sk-live-Pq8Ls3Ye0Ux6Zd1Wf4Hg9Jk2';
const OTHER_KEY = 'sk-live-Aa1Bb2Cc3Dd4Ee5Ff6Gg7Hh8';

let workspace: Workspace;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(() => workspace.remove());

interface JsonFinding {
  readonly check: string;
  readonly level: string;
  readonly lane: string | null;
  readonly message: string;
  readonly advice: string | null;
}

interface Report {
  readonly exitCode: number | null;
  readonly findings: readonly JsonFinding[];
  find(check: string, lane?: string): JsonFinding | undefined;
}

/** Runs `doctor --json` and checks what holds for every report. */
async function doctor(
  args: readonly string[] = [],
  environment: Record<string, string> = {},
): Promise<Report> {
  const end = await runInProcess(['doctor', '--json', ...args], { folder: workspace.folder, environment });
  expect(end.stdout, end.stderr).not.toBe('');
  const report = JSON.parse(end.stdout) as { exit_code: number; findings: JsonFinding[] };
  expect(report.exit_code).toBe(end.exitCode);
  for (const { level, advice, message } of report.findings) {
    expect(message).not.toBe('');
    if (level !== 'ok') expect(advice, message).not.toBeNull();
  }
  for (const key of [KEY, OTHER_KEY]) expect(end.stdout + end.stderr).not.toContain(key.slice(0, 16));
  return {
    exitCode: end.exitCode,
    findings: report.findings,
    find: (check, lane) =>
      report.findings.find((each) => each.check === check && (lane === undefined || each.lane === lane)),
  };
}

/** A run of a few documents that is finished, in a store. */
async function finishRun(): Promise<void> {
  workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
  const end = await runInProcess(['run', 'docs.jsonl', '--simulate'], { folder: workspace.folder });
  expect(end.exitCode, end.stderr).toBe(0);
}

function alter(sql: string): void {
  const database = new Database(workspace.storePath);
  database.exec(sql);
  database.close();
}

/** A server with these models, for whoever has one of the keys. */
function startApi(
  models: readonly string[],
  keys: readonly string[] | null,
  headers = {},
): Promise<Loopback> {
  return startServer((request, response) => {
    const key = request.headers.authorization?.replace('Bearer ', '') ?? '';
    if (keys !== null && !keys.includes(key)) {
      answerJson(response, `{"error":{"message":"Incorrect API key provided: ${key}"}}`, 401);
    } else {
      answerJson(response, JSON.stringify({ data: models.map((id) => ({ id })) }), 200, headers);
    }
  });
}

describe('with nothing there yet', () => {
  it('says so, makes nothing, and names the key that is missing', async () => {
    const report = await doctor();
    expect(report.exitCode).toBe(2);
    expect(report.find('store_file')).toMatchObject({
      level: 'ok',
      message: expect.stringContaining('no store'),
    });
    expect(report.find('key')).toMatchObject({
      level: 'fault',
      message: expect.stringContaining('OPENAI_API_KEY'),
    });
    expect(existsSync(workspace.storePath)).toBe(false);
  });

  it('finds a folder that is not there', async () => {
    const gone = await doctor(['--offline', '--db', 'no/such/store.db'], { OPENAI_API_KEY: KEY });
    expect(gone.exitCode).toBe(5);
    expect(gone.find('store_file')).toMatchObject({ level: 'fault' });
  });

  it.skipIf(!ORDINARY_USER.available)('finds a folder that cannot be written', async () => {
    chmodSync(workspace.folder, 0o555);
    const wrapper =
      process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];
    const end = await workspace.run(['doctor', '--offline'], {
      environment: { OPENAI_API_KEY: KEY },
      wrapper,
    });
    expect(end.exitCode, end.stderr).toBe(5);
    expect(end.stdout).toContain('may not write');
  });
});

describe('a sound store and a server that answers', () => {
  it('pass every check, a line each, for the price of asking for the models', async () => {
    await finishRun();
    const api = await startApi(['gpt-4o-mini'], [KEY], {
      'x-ratelimit-limit-requests': '500',
      'x-ratelimit-remaining-requests': '499',
      'x-ratelimit-limit-tokens': '200000',
    });
    const args = ['--base-url', api.baseUrl];
    const report = await doctor(args, { OPENAI_API_KEY: KEY });
    expect(report.exitCode).toBe(0);
    expect(report.findings.filter((finding) => finding.level !== 'ok')).toEqual([]);
    expect(report.find('key_accepted')?.message).toContain('takes OPENAI_API_KEY');
    expect(report.find('limits')?.message).toContain('499 of 500 requests left, 200000 tokens');
    expect(api.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'GET /v1/models',
      'GET /v1/models',
    ]);

    const page = await workspace.run(['doctor', ...args], { environment: { OPENAI_API_KEY: KEY } });
    expect(page).toMatchObject({ exitCode: 0, stderr: '' });
    expect(page.stdout).toMatch(/^✓ node {12}v\d+/);
    expect(page.stdout).toMatch(/\n✓ integrity {7}.* all sound\.\n/);
    expect(page.stdout).toMatch(/\nFit to run\.\n$/);
  });

  it('are looked at without the server when asked to', async () => {
    const api = await startApi([], [KEY]);
    const report = await doctor(['--offline', '--base-url', api.baseUrl], { OPENAI_API_KEY: KEY });
    expect(report.exitCode).toBe(0);
    expect(report.find('key')?.level).toBe('ok');
    expect(report.find('endpoint')).toBeUndefined();
    expect(api.requests).toEqual([]);
  });
});

describe('a store', () => {
  const offline = (...args: readonly string[]): Promise<Report> =>
    doctor(['--offline', ...args], { OPENAI_API_KEY: KEY });

  it.each<[what: string, spoil: () => void, check: string, words: string]>([
    ['of a newer version', () => alter('PRAGMA user_version = 99'), 'schema', 'newer llm-batch'],
    ['of another program', () => alter('PRAGMA application_id = 7'), 'schema', 'not one of llm-batch'],
    [
      'that is no database',
      () => writeFileSync(workspace.storePath, 'a text file '.repeat(500)),
      'integrity',
      'is damaged',
    ],
    [
      'with counts that differ',
      () => alter('UPDATE task_counts SET tasks = tasks + 2'),
      'counts',
      'completed documents',
    ],
    ['with pages that are damaged', () => damage(), 'integrity', 'is damaged'],
  ])('%s is found', async (_, spoil, check, words) => {
    await finishRun();
    spoil();
    const report = await offline();
    expect(report.exitCode).toBe(5);
    expect(report.find(check)).toMatchObject({ level: 'fault', message: expect.stringContaining(words) });
    // What comes after is looked at all the same.
    expect(report.find('key')).toMatchObject({ level: 'ok' });
  });

  /** Spoils the pages of tables, and leaves those that say which tables there are. */
  function damage(): void {
    const file = openSync(workspace.storePath, 'r+');
    const pages = statSync(workspace.storePath).size / 4_096;
    const from = Math.floor(pages / 2);
    writeSync(file, Buffer.alloc((pages - from) * 4_096, 0xa5), 0, (pages - from) * 4_096, from * 4_096);
    closeSync(file);
  }

  it('that is a folder is found', async () => {
    const report = await offline('--db', '.');
    expect(report.exitCode).toBe(5);
  });

  it("that others can read, or that is another user's, is told", async () => {
    await finishRun();
    chmodSync(workspace.storePath, 0o644);
    expect((await offline()).find('store_file')).toMatchObject({
      level: 'warning',
      advice: expect.stringContaining('chmod 600'),
    });
    if (process.getuid?.() !== 0) return;
    chownSync(workspace.storePath, 65_534, 65_534);
    const report = await offline();
    expect(report.find('store_file')).toMatchObject({
      level: 'warning',
      message: expect.stringContaining('65534'),
    });
    expect(report.exitCode).toBe(0);
  });

  it('of another kind is refused in words', async () => {
    const report = await offline('--db', 'postgres://localhost/x');
    expect(report.exitCode).toBe(2);
    expect(JSON.stringify(report)).toContain('--store postgres://');
  });

  it('that is being drained is told with its owner, and what a dead one left with the way out', async () => {
    const simulator = await startSimulatorHere();
    try {
      workspace.writeDocuments('docs.jsonl', [
        { text: '[[simulate:hang]]' },
        { text: '[[simulate:hang]] 2' },
      ]);
      const program = workspace.start(['run', 'docs.jsonl', '--base-url', simulator.url]);
      await waitFor('the calls', async () => (await simulator.books()).openCalls === 2);
      const busy = await offline();
      expect(busy.find('owner')).toMatchObject({
        level: 'ok',
        message: expect.stringContaining(`Process ${program.child.pid} on `),
      });
      program.kill('SIGKILL');
      await program.ended;
      writeFileSync(`${workspace.storePath}.salvage.jsonl`, '{}\n');
      alter(`INSERT INTO runs (deleted, name, status, input_path, simulated, created_at_ms, settings_json)
        VALUES (1, 'old', 'open', '-', 0, 0, '{}')`);
      const left = await offline();
      expect(left.exitCode).toBe(0);
      for (const [check, words, wayOut] of [
        ['owner', '2 documents', 'resume'],
        ['salvage', '.salvage.jsonl', 'resume'],
        ['deleted_runs', '1', 'prune'],
      ] as const) {
        expect(left.find(check), check).toMatchObject({
          level: 'warning',
          message: expect.stringContaining(words),
          advice: expect.stringContaining(wayOut),
        });
      }
      // The settings are those of the run that `resume` would go on with.
      expect(left.find('settings')?.message).toContain("run 'docs'");
      expect(left.find('key')?.lane).toContain(new URL(simulator.url).host);
    } finally {
      await simulator.stop();
    }
  });
});

describe('a server', () => {
  it.each<[what: string, status: number, body: string, check: string, level: string]>([
    ['that keeps no list of models', 404, '{"error":{"message":"not here"}}', 'model', 'warning'],
    ['that shows a web page', 200, '<!doctype html><title>Welcome</title>', 'endpoint', 'fault'],
    ['that is overloaded', 503, '{"error":{"message":"busy"}}', 'key_accepted', 'warning'],
    [
      'whose account is empty',
      429,
      '{"error":{"code":"insufficient_quota","message":"no"}}',
      'key_accepted',
      'fault',
    ],
    ['that does not take the key', 401, `{"error":{"message":"bad key ${KEY}"}}`, 'key_accepted', 'fault'],
  ])('%s is told', async (_, status, body, check, level) => {
    const server = await startServer((_request, response) => answerJson(response, body, status));
    const report = await doctor(['--base-url', server.baseUrl], { OPENAI_API_KEY: KEY });
    expect(report.find(check)).toMatchObject({ level });
    expect(report.exitCode).toBe(level === 'fault' ? 4 : 0);
  });

  it('that has its API one version below is told with the address that was meant', async () => {
    const server = await startServer((request, response) =>
      request.url.startsWith('/v1/')
        ? answerJson(response, '{"data":[{"id":"gpt-4o-mini"}]}')
        : answerJson(response, '{}', 404),
    );
    const root = server.baseUrl.slice(0, -'/v1'.length);
    const report = await doctor(['--base-url', root], { OPENAI_API_KEY: KEY });
    expect(report.find('endpoint')).toMatchObject({
      level: 'fault',
      message: expect.stringContaining(`did you mean ${server.baseUrl}?`),
      advice: `Say --base-url ${server.baseUrl}`,
    });
  });

  it('is told with its proxy, which stands in the environment', async () => {
    const report = await doctor(['--base-url', 'http://llm.example/v1', '--offline'], {
      OPENAI_API_KEY: KEY,
      HTTP_PROXY: 'http://me:hunter2hunter2@proxy.example:3128',
    });
    expect(report.find('proxy')?.message).toContain('through http://proxy.example:3128 (HTTP_PROXY)');
    expect(JSON.stringify(report.findings)).not.toContain('hunter2');
  });

  it('that is not there is told', async () => {
    const report = await doctor(['--base-url', 'http://127.0.0.1:9/v1'], { OPENAI_API_KEY: KEY });
    expect(report.exitCode).toBe(4);
    expect(report.find('endpoint')).toMatchObject({
      level: 'fault',
      advice: expect.stringContaining('--base-url'),
    });
  });

  it.each<[model: string, level: string, words: string]>([
    ['gpt-4o', 'ok', 'gpt-4o is known'],
    ['llama3.2', 'ok', 'known'],
    ['openai/gpt-4o:nitro', 'ok', 'known'],
    ['gpt-4o-mimi', 'fault', 'none of the 4 models'],
  ])('is asked for model %s', async (model, level, words) => {
    const api = await startApi(['gpt-4o', 'gpt-4o-mini', 'llama3.2:latest', 'openai/gpt-4o'], null);
    const report = await doctor(['--base-url', api.baseUrl, '--model', model], { OPENAI_API_KEY: KEY });
    expect(report.find('model')).toMatchObject({ level, message: expect.stringContaining(words) });
    if (level === 'fault') expect(report.find('model')?.advice).toContain('gpt-4o-mini');
    // Whoever tells anybody has not looked at the key.
    expect(report.find('key_accepted')?.message).toContain('Not known');
  });

  it('that has one model, and another name than was asked for, is told by that name', async () => {
    const api = await startApi(['llama3.2'], null);
    const report = await doctor(['--base-url', api.baseUrl, '--model', 'gpt-4o'], { OPENAI_API_KEY: KEY });
    expect(report.find('model')).toMatchObject({
      message: 'gpt-4o is not the one model that the server lists.',
      advice: 'Check --model; the server has llama3.2.',
    });
  });

  it('of several lanes is looked at by each key, and one that is refused is told by name', async () => {
    const api = await startApi(['gpt-4o-mini'], [KEY]);
    const environment = { GOOD: KEY, BAD: OTHER_KEY };
    const report = await doctor(['--base-url', api.baseUrl, '--api-key-env', 'GOOD,BAD'], environment);
    const host = `127.0.0.1:${api.port}`;
    expect(report.exitCode).toBe(4);
    expect(report.find('key_accepted', `GOOD@${host}`)).toMatchObject({ level: 'ok' });
    expect(report.find('key_accepted', `BAD@${host}`)).toMatchObject({ level: 'fault' });
    const page = await runInProcess(
      ['doctor', '--base-url', api.baseUrl, '--api-key-env', 'GOOD,BAD', '--offline'],
      { folder: workspace.folder, environment },
    );
    expect(page.stdout).toContain(`GOOD@${host}: GOOD is set.`);
  });
});

describe('the exit code', () => {
  it('is that of the store before that of the key before that of the server', async () => {
    await finishRun();
    alter('UPDATE task_counts SET tasks = tasks + 2');
    expect((await doctor()).exitCode).toBe(5);
  });

  it.each([
    [['--base-url', 'nonsense'], 'settings'],
    [['--api-key-env', 'sk-live-Pq8Ls3Ye0Ux6'], 'key'],
    [['nope'], 'settings'],
  ])('of settings that no run would start with is 2: %j', async (args, check) => {
    await finishRun();
    const report = await doctor(args, { OPENAI_API_KEY: KEY });
    expect(report.exitCode).toBe(2);
    expect(report.find(check)).toMatchObject({ level: 'fault' });
  });

  it('of a key that no header can carry is 2', async () => {
    const report = await doctor(['--base-url', 'http://127.0.0.1:9/v1'], { OPENAI_API_KEY: `${KEY} x` });
    expect(report.exitCode).toBe(2);
    expect(report.find('settings', 'OPENAI_API_KEY@127.0.0.1:9')).toMatchObject({ level: 'fault' });
  });
});

it('finds the simulator fit to rehearse against, with the default model', async () => {
  const simulator = await startSimulatorHere();
  try {
    const end = await workspace.run(['doctor', '--base-url', simulator.url]);
    expect(end.exitCode, end.stdout).toBe(0);
    expect(end.stdout).toContain('Fit to run.');
  } finally {
    await simulator.stop();
  }
});
