/** Whole runs over HTTP: all of one is taken or nothing, with memory that does not grow with it. */
import { request } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runInProcess } from '../support/in-process.js';
import { jsonLines } from '../support/program.js';
import { type Answer, type ServiceUnderTest, startService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';
import { Workspace } from '../support/workspace.js';

let workspace: Workspace;
let service: ServiceUnderTest;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(async () => {
  await service.stop();
  workspace.remove();
});

async function serve(...args: readonly string[]): Promise<ServiceUnderTest> {
  service = await startService(workspace.folder, ['--simulate', ...args]);
  return service;
}

const JSONL = { 'content-type': 'application/jsonl' };

function post(body: string, headers: Record<string, string> = {}, query = ''): Promise<Answer> {
  return service.ask('POST', `/v1/runs${query}`, body, { ...JSONL, ...headers });
}

function lines(count: number): string {
  return Array.from({ length: count }, (_, index) => `{"id":"doc-${index}","text":"Text ${index}"}\n`).join(
    '',
  );
}

async function finished(id: string): Promise<Record<string, unknown>> {
  return waitFor('the run to finish', async () => {
    const { json } = await service.ask('GET', `/v1/runs/${id}`);
    return json.status === 'finished' && json;
  });
}

describe('a run that is handed in', () => {
  it('is taken whole, drained, and its results are told as lines in their order', async () => {
    const { ask } = await serve('--concurrency', '100');
    const answer = await post(lines(60), {}, `?${new URLSearchParams({ prompt: 'Say: {{text}}' })}`);
    expect(answer.status).toBe(202);
    const { id } = answer.json;
    expect(answer.headers.get('location')).toBe(`/v1/runs/${id}`);
    expect(await finished(id)).toMatchObject({
      documents: { total: 60, completed: 60, failed: 0 },
      cost_usd: 0,
    });
    const results = await ask('GET', `/v1/runs/${id}/results?status=completed`);
    expect(results.headers.get('content-type')).toContain('application/jsonl');
    expect(jsonLines(results.text).map((line) => line['id'])).toEqual(
      Array.from({ length: 60 }, (_, index) => `doc-${index}`),
    );
    expect((await ask('GET', `/v1/runs/${id}/results?status=failed`)).text).toBe('');
    expect((await ask('DELETE', `/v1/runs/${id}`)).status).toBe(409);
  });

  it('is one run for one Idempotency-Key; another body, or another prompt, is refused', async () => {
    await serve('--no-drain');
    const key = { 'idempotency-key': 'upload-1' };
    const first = await post(lines(3), key);
    const again = await post(lines(3), key);
    expect([again.status, again.json]).toEqual([200, first.json]);
    expect((await post(lines(4), key)).status).toBe(409);
    expect((await post(lines(3), key, '?prompt=%7B%7Btext%7D%7D')).status).toBe(409);
    expect(workspace.query("SELECT name FROM runs WHERE deleted = 0 AND name LIKE 'run%'")).toHaveLength(1);
  });

  it('with bad lines is refused whole, each line named, and leaves nothing', async () => {
    await serve('--no-drain');
    const answer = await post(`${lines(1_200)}not JSON\n{"id":"x","messages":[]}\n`);
    expect([answer.status, answer.json.code]).toEqual([422, 'bad_lines']);
    expect(answer.json.errors).toEqual([
      { field: 'line 1201', message: expect.stringContaining('not JSON') },
      { field: 'line 1202: messages', message: expect.any(String) },
    ]);
    expect((await post('')).status).toBe(422);
    expect((await post(lines(1), {}, '?prompt=no+field')).status).toBe(422);
    expect((await post(lines(1), {}, '?colour=red')).status).toBe(422);
    expect(workspace.query('SELECT name FROM runs')).toEqual([{ name: 'served-simulated' }]);
  });

  it('whose sender goes away in the middle leaves nothing', async () => {
    const { url } = await serve('--no-drain');
    const sending = request(`${url}/v1/runs`, { method: 'POST', headers: JSONL });
    const ended = new Promise((resolve) => sending.on('error', resolve));
    sending.write(lines(2_500));
    await waitFor('a page of it', () => workspace.query('SELECT 1 FROM tasks LIMIT 1').length > 0);
    sending.destroy();
    await ended;
    await waitFor('all of it to be gone', () => workspace.query('SELECT 1 FROM runs').length === 1);
    expect(workspace.query('SELECT 1 FROM tasks UNION ALL SELECT 1 FROM documents')).toEqual([]);
  });

  it('whose process died in the middle is gone when the service starts again', async () => {
    await serve('--no-drain');
    await post(lines(3));
    await service.stop();
    workspace.change("UPDATE runs SET status = 'importing' WHERE name LIKE 'run%'");
    await serve('--no-drain');
    expect(workspace.query('SELECT name FROM runs')).toEqual([{ name: 'served-simulated' }]);
    expect(workspace.query('SELECT 1 FROM tasks')).toEqual([]);
  });

  it('whose sender goes on and on is cut off when the service has been asked to stop for its grace', async () => {
    const { url, stop } = await serve('--no-drain', '--grace', '100ms');
    const sending = request(`${url}/v1/runs`, { method: 'POST', headers: JSONL });
    const ended = new Promise((resolve) => sending.on('error', resolve));
    sending.write(lines(2_500));
    await waitFor('a page of it', () => workspace.query('SELECT 1 FROM tasks LIMIT 1').length > 0);
    expect(await stop()).toBe(0);
    await ended;
  });

  it('that would overfill the backlog is refused with 503 and leaves nothing', async () => {
    await serve('--no-drain', '--max-backlog', '1500');
    expect((await post(lines(1_000))).status).toBe(202);
    const answer = await post(lines(1_000));
    expect([answer.status, answer.json.code]).toEqual([503, 'backlog_full']);
    expect(workspace.query('SELECT count(*) AS tasks FROM tasks')).toEqual([{ tasks: 1_000 }]);
  });

  it('is cancelled as a whole', async () => {
    const { ask } = await serve('--no-drain');
    const { json } = await post(lines(3));
    expect((await ask('DELETE', `/v1/runs/${json.id}`)).status).toBe(204);
    const run = (await ask('GET', `/v1/runs/${json.id}`)).json;
    expect(run).toMatchObject({ status: 'cancelled', documents: { cancelled: 3 } });
    expect((await ask('GET', '/v1/runs/run_none')).status).toBe(404);
  });
});

describe('submit', () => {
  it('hands a file in, waits for its results, and prints them', async () => {
    const { url } = await serve('--concurrency', '100');
    workspace.write('docs.jsonl', lines(20));
    const submit = (...args: string[]) =>
      runInProcess(['submit', ...args, '--server', url], { folder: workspace.folder });
    const { exitCode, stdout, stderr } = await submit('docs.jsonl', '--wait', '-p', 'Say: {{text}}');
    expect(exitCode, stderr).toBe(0);
    expect(jsonLines(stdout)).toHaveLength(20);

    const left = await submit('docs.jsonl', '--idempotency-key', 'k');
    expect((await submit('docs.jsonl', '--idempotency-key', 'k')).stdout).toBe(left.stdout);
    workspace.write('bad.jsonl', 'nonsense\n');
    const bad = await submit('bad.jsonl');
    expect(bad.exitCode).toBe(2);
    expect(bad.stderr).toContain('line 1');
    expect((await submit('missing.jsonl')).exitCode).toBe(2);
    for (const path of ['missing.jsonl', 'docs.jsonl/inside']) {
      expect((await submit(path)).stderr).toContain('There is no input file');
    }
    expect((await submit('.')).stderr).toContain('The input . is a folder.');
    await service.stop();
    const nobody = await submit('docs.jsonl');
    expect(nobody.exitCode).toBe(2);
    expect(nobody.stderr).toContain('llm-batch serve');
  });

  it('asks for a file where somebody sits at the keyboard and would wait for nothing', async () => {
    const { exitCode, stderr } = await runInProcess(['submit'], { folder: workspace.folder, typed: '' });
    expect(exitCode).toBe(2);
    expect(stderr).toContain('Name a file');
  });

  it.each([
    ['nowhere', 'its server is no http or https URL'],
    ['ftp://service.example', 'its server is no http or https URL'],
    ['http://someone:swordfish@127.0.0.1:1', 'its server holds a user name or a password'],
    ['http://127.0.0.1:1', 'its token is empty, or holds what no header can carry'],
  ])('refuses the address %s, or its token, and repeats no secret', async (server, words) => {
    const { exitCode, stderr } = await runInProcess(['submit', '-', '--server', server], {
      folder: workspace.folder,
      environment: { LLM_BATCH_SERVER_TOKEN: 'swordfish\nfish' },
    });
    expect(exitCode).toBe(2);
    expect(stderr).toContain(words);
    expect(stderr).not.toContain('swordfish');
  });
});
