/** Tasks over HTTP, through the whole service: a real store, real sockets, a simulator that answers. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { EXIT_CODES, LlmBatchError } from '../../src/core/errors.js';
import { createHttpServer } from '../../src/server/http-server.js';
import { allRoutes } from '../../src/server/routes/all-routes.js';
import type { TaskService } from '../../src/server/service.js';
import { runInProcess } from '../support/in-process.js';
import { postgresUrl } from '../support/postgres.js';
import { type ServiceUnderTest, startService } from '../support/service.js';
import { type SimulatorHere, startSimulatorHere } from '../support/simulator-here.js';
import { waitFor } from '../support/wait-for.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

let workspace: Workspace;
let simulator: SimulatorHere;
let service: ServiceUnderTest | null;

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorHere();
  service = null;
});

afterEach(async () => {
  await service?.stop();
  await simulator.stop();
  workspace.remove();
});

async function serve(
  args: readonly string[] = [],
  environment: Record<string, string> = {},
): Promise<ServiceUnderTest> {
  service = await startService(workspace.folder, ['--base-url', simulator.url, ...args], {
    environment: { OPENAI_API_KEY: 'sk-test', ...environment },
  });
  return service;
}

const asking = (content: string) => ({
  request: { model: 'gpt-4o-mini', messages: [{ role: 'user', content }] },
});

describe('a task that is handed in', () => {
  it('is taken with 202, found at its Location, answered, and told as a line of results', async () => {
    const { ask, ended } = await serve();
    const accepted = await ask('POST', '/v1/tasks', asking('What is durable?'));
    expect(accepted.status).toBe(202);
    expect(accepted.json).toEqual({ id: expect.stringMatching(/^task_[0-9a-f]{32}$/), status: 'pending' });
    const { id } = accepted.json;
    expect(accepted.headers.get('location')).toBe(`/v1/tasks/${id}`);
    const result = {
      id,
      status: 'completed',
      output: expect.any(String),
      attempts: 1,
      model: expect.any(String),
    };
    expect(await ended(id)).toMatchObject({ id, status: 'completed', error: null, result });
    expect((await ask('GET', `/v1/tasks/${id}`)).headers.get('retry-after')).toBeNull();
  });

  it('may be a document with a prompt, a model, a priority and metadata, which comes back as it was', async () => {
    const { ask, ended } = await serve(['--system', 'Be brief.']);
    const metadata = '{"order": 12345678901234567890, "tags": ["a"]}';
    const body = `{"document":{"text":"Good","stars":5},"prompt":"{{stars}}: {{text}}","model":"gpt-4o","metadata":${metadata}}`;
    const { json } = await ask('POST', '/v1/tasks', body);
    await ended(json.id);
    expect((await ask('GET', `/v1/tasks/${json.id}`)).text).toContain(`"metadata":${metadata}`);
    const { stdout } = await runInProcess(['results', 'served', '-o', '-', '--include-input'], {
      folder: workspace.folder,
    });
    expect(JSON.parse(stdout).document.body).toEqual({
      model: 'gpt-4o',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: '5: Good' },
      ],
    });
  });

  it('goes to the endpoint that it names, or shows', async () => {
    const { ask, ended } = await serve();
    const embedding = await ask('POST', '/v1/tasks', {
      request: { model: 'text-embedding-3-small', input: 'durable' },
    });
    const moderation = await ask('POST', '/v1/tasks', {
      ...{ document: { text: 'durable' }, endpoint: 'moderations' },
    });
    expect(await ended(embedding.json.id)).toMatchObject({ result: { output: expect.any(Array) } });
    expect(await ended(moderation.json.id)).toMatchObject({ status: 'completed' });
  });

  it('is one task for one Idempotency-Key, also after a restart; another body is refused', async () => {
    const first = await serve(['--no-drain']);
    const key = { 'idempotency-key': 'order-17' };
    const { json } = await first.ask('POST', '/v1/tasks', asking('once'), key);
    const again = await first.ask('POST', '/v1/tasks', asking('once'), key);
    expect([again.status, again.json]).toEqual([200, json]);
    expect(await first.stop()).toBe(0);
    const { ask, ended } = await serve();
    const afterwards = await ask('POST', '/v1/tasks', asking('once'), key);
    expect([afterwards.status, afterwards.json.id]).toEqual([200, json.id]);
    const other = await ask('POST', '/v1/tasks', asking('something else'), key);
    expect([other.status, other.json.code]).toEqual([409, 'idempotency_key']);
    await ended(json.id);
    expect((await simulator.books()).calls).toBe(1);
  });

  it('fails with its own bound on attempts, can be retried, and is told as failed with the error', async () => {
    const { ask, ended } = await serve();
    const { json } = await ask('POST', '/v1/tasks', {
      ...asking('[[simulate:500]] Never.'),
      max_attempts: 1,
    });
    const { id } = json;
    expect(await ended(id)).toEqual({
      ...{ id, status: 'failed', result: null },
      error: expect.objectContaining({ kind: 'overloaded', http_status: 500 }),
    });
    expect((await simulator.books()).calls).toBe(1);
    await simulator.heal();
    expect((await ask('POST', `/v1/tasks/${id}/retry`)).status).toBe(202);
    expect(await ended(id)).toMatchObject({ status: 'completed' });
    expect((await ask('POST', `/v1/tasks/${id}/retry`)).status).toBe(409);
  });

  it('is cancelled while it waits, and told as failed then; one that has ended is not', async () => {
    const { ask } = await serve(['--no-drain']);
    const { json } = await ask('POST', '/v1/tasks', asking('never'));
    const path = `/v1/tasks/${json.id}`;
    const open = await ask('GET', path);
    expect(open.json).toEqual({ id: json.id, status: 'pending', result: null, error: null });
    expect(Number(open.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await ask('DELETE', path)).status).toBe(204);
    expect((await ask('GET', path)).json).toMatchObject({ status: 'failed', error: { kind: 'cancelled' } });
    expect((await ask('DELETE', path)).status).toBe(204);
    expect((await ask('DELETE', '/v1/tasks/task_none')).status).toBe(404);
  });

  it('stands in a run of the store like any other, for status, results and failures', async () => {
    const { ask, ended } = await serve();
    const { json } = await ask('POST', '/v1/tasks', asking('seen'));
    await ended(json.id);
    const { stdout } = await runInProcess(['status', 'served', '--json'], { folder: workspace.folder });
    expect(JSON.parse(stdout)).toMatchObject({ documents: { total: 1, completed: 1 } });
    expect((await ask('GET', '/v1/runs/served')).json).toMatchObject({
      documents: { total: 1, completed: 1 },
    });
  });
});

describe('bad input', () => {
  const folder = new Workspace();
  let taking: ServiceUnderTest;

  beforeAll(async () => {
    taking = await startService(folder.folder, ['--simulate', '--no-drain']);
  });

  afterAll(async () => {
    await taking.stop();
    folder.remove();
  });

  it.each([
    ['no JSON', '{"request":', 400, ''],
    ['no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]).toString('latin1'), 400, ''],
    ['a list', '[]', 422, ''],
    ['neither request nor document', '{}', 422, ''],
    ['both', { request: {}, document: {} }, 422, ''],
    ['an unknown field', { ...asking('x'), colour: 'red' }, 422, 'colour'],
    ['a field of a wrong type', { ...asking('x'), max_attempts: '3' }, 422, 'max_attempts'],
    ['attempts without end', { ...asking('x'), max_attempts: 1e9 }, 422, 'max_attempts'],
    ['an endpoint that is none', { ...asking('x'), endpoint: 'chats' }, 422, 'endpoint'],
    ['a request without messages', { request: { model: 'm' } }, 422, 'request.messages'],
    ['messages without a role', { request: { messages: [{ content: 'x' }] } }, 422, 'request.messages.0'],
    ['a request of another endpoint', { ...asking('x'), endpoint: 'embeddings' }, 422, 'request'],
    [
      'a stream',
      { request: { messages: [{ role: 'user', content: 'x' }], stream: true } },
      422,
      'request.stream',
    ],
    ['a document without the field', { document: { a: 1 }, prompt: '{{b}}' }, 422, 'document.b'],
    ['a prompt that is none', { document: { a: 1 }, prompt: '{{' }, 422, 'prompt'],
    ['a file of the server', { document: { a: '/etc/passwd' }, prompt: '{{image a}}' }, 422, 'document.a'],
    ['what is nested without end', `{"request":${'['.repeat(5_000)}${']'.repeat(5_000)}}`, 422, ''],
    [
      'a webhook, with no secret to sign it',
      { ...asking('x'), webhook_url: 'https://a.example' },
      422,
      'webhook_url',
    ],
  ])('%s is a problem that names its field, and nothing is taken', async (_, body, status, field) => {
    const { ask, url } = taking;
    const answer =
      typeof body === 'string'
        ? await fetch(`${url}/v1/tasks`, {
            ...{ method: 'POST', body: Buffer.from(body, 'latin1') },
            headers: { 'content-type': 'application/json' },
          })
        : await ask('POST', '/v1/tasks', body);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    const problem = 'json' in answer && typeof answer.json === 'function' ? await answer.json() : answer.json;
    expect(problem).toMatchObject({
      type: 'about:blank',
      status,
      title: expect.any(String),
      code: expect.any(String),
    });
    expect(JSON.stringify(problem)).not.toMatch(/node_modules|\bat \w+ \(/);
    if (field !== '') expect(problem.errors.map((error: { field: string }) => error.field)).toContain(field);
    expect((await ask('GET', '/v1/runs/served-simulated')).json.documents.total).toBe(0);
  });

  it.each([
    ['[]', 'The body must be an object.'],
    ['', 'The body is empty.'],
    ['{"model":5,"document":{}}', 'model must be a string.'],
    ['{"document":{},"max_attempts":0}', 'max_attempts must be at least 1.'],
    ['{"document":{},"max_attempts":1.5}', 'max_attempts must be a whole number.'],
    ['{"document":{},"endpoint":"chats"}', 'endpoint must be one of chat, '],
    ['{"document":{},"webhook_url":""}', 'webhook_url must not be empty.'],
    ['{"request":{"input":"x"}}', 'no request of the endpoint chat; name another in endpoint'],
    ['{"request":{"input":"x"},"endpoint":"completions"}', 'no request of the endpoint completions'],
  ])('%s is told in plain words', async (body, words) => {
    expect((await taking.ask('POST', '/v1/tasks', body)).json.detail).toContain(words);
  });

  it('in a query is told as such', async () => {
    const { json } = await taking.ask('GET', '/v1/runs/served-simulated/results?status=some');
    expect(json.detail).toBe('Query parameter status must be one of completed, failed, all.');
  });

  it('of another content type, too large, or for nothing that is there, has its own status', async () => {
    const { ask, url } = await serve(['--no-drain', '--max-line-bytes', '10KiB']);
    const post = (type: string, body: string, path = '/v1/tasks', more: Record<string, string> = {}) =>
      fetch(`${url}${path}`, { method: 'POST', headers: { 'content-type': type, ...more }, body });
    const form = await post('application/x-www-form-urlencoded', JSON.stringify(asking('x')));
    expect(await form.json()).toMatchObject({
      ...{ status: 415, detail: 'This route takes Content-Type application/json.' },
    });
    expect((await post('application/json', '{}', '/v1/tasks', { 'content-encoding': 'gzip' })).status).toBe(
      415,
    );
    for (const type of ['application/jsonl', 'application/json', 'text/plain']) {
      expect((await post(type, '{}', '/elsewhere/v1/tasks')).status).toBe(404);
    }
    const odd = await ask('GET', '/v1/tasks');
    expect([odd.status, odd.headers.get('allow')]).toEqual([405, 'POST']);
    expect(odd.json.detail).toBe('This address takes POST, not GET.');
    expect((await ask('PUT', '/v1/tasks/task_none', 'no JSON')).headers.get('allow')).toBe('GET, DELETE');
    expect((await ask('HEAD', '/v1/tasks/task_none')).status).toBe(405);
    expect((await ask('PUT', '/v1/nothing')).json.detail).toContain('for PUT');
    expect((await ask('GET', '/v1/tasks/')).status).toBe(404);
    expect((await post('application/json', '', '/v1/tasks/task_none/retry')).status).toBe(404);
    expect((await post('text/plain', '{}')).status).toBe(415);
    expect((await post('application/jsonl', '{}')).status).toBe(415);
    expect((await post('application/json', '{}', '/v1/runs')).status).toBe(415);
    expect((await post('application/json', JSON.stringify(asking('x'.repeat(11_000))))).status).toBe(413);
    expect((await ask('GET', '/v1/nothing')).status).toBe(404);
    expect((await ask('POST', '/v1/tasks', asking('x'), { 'idempotency-key': 'a b' })).status).toBe(400);
  });

  it('beyond the backlog is refused with 503 and Retry-After, and fits in again later', async () => {
    const { ask } = await serve(['--no-drain', '--max-backlog', '2']);
    const answers = await Promise.all(['a', 'b', 'c'].map((text) => ask('POST', '/v1/tasks', asking(text))));
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 202, 503]);
    const full = answers.find(({ status }) => status === 503);
    expect(full?.json.code).toBe('backlog_full');
    expect(Number(full?.headers.get('retry-after'))).toBeGreaterThan(0);
    const taken = answers.find(({ status }) => status === 202);
    await ask('DELETE', `/v1/tasks/${taken?.json.id}`);
    expect((await ask('POST', '/v1/tasks', asking('d'))).status).toBe(202);
  });
});

describe('a store that cannot take it now', () => {
  it('is 503 with Retry-After, in words that name nothing of this machine', async () => {
    const full = new LlmBatchError('The disk is full: /srv/secret/llm-batch.db cannot grow.', {
      ...{ code: 'STORE_FULL', exitCode: EXIT_CODES.store },
    });
    const refusing = {
      submit: () => Promise.reject(full),
      run: () => Promise.reject(new Error('at /srv/secret')),
    };
    const app = createHttpServer({
      routes: allRoutes(refusing as unknown as TaskService, {} as never, async () => ({
        contentType: '',
        text: '',
      })),
      ...{ tokens: [], mostBodyBytes: 10_000 },
      probe: () => Promise.reject(full),
      onUnexpected: () => undefined,
    });
    const asked = [
      await app.inject({ method: 'POST', url: '/v1/tasks', payload: asking('x') }),
      await app.inject('/readyz'),
      await app.inject('/v1/runs/served'),
    ];
    expect(asked.map(({ statusCode }) => statusCode)).toEqual([503, 503, 500]);
    expect(asked.slice(0, 2).map(({ headers }) => headers['retry-after'])).toEqual(['10', '10']);
    for (const { payload } of asked) expect(payload).not.toContain('secret');
    expect(asked[0]?.json()).toMatchObject({ code: 'store_full', status: 503 });
  });
});

describe('who may come in', () => {
  it('is whoever has one of the tokens; health is open to all', async () => {
    const { ask } = await serve(['--no-drain'], { LLM_BATCH_SERVE_TOKENS: 'first, second' });
    for (const token of ['first', 'second']) {
      const answer = await ask('POST', '/v1/tasks', asking('x'), { authorization: `Bearer ${token}` });
      expect(answer.status).toBe(202);
    }
    for (const authorization of ['', 'Bearer', 'Bearer third', 'Bearer first,second', 'Basic first']) {
      const answer = await ask('POST', '/v1/tasks', asking('x'), { authorization });
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    }
    expect((await ask('GET', '/healthz')).status).toBe(200);
    expect((await ask('GET', '/readyz')).status).toBe(200);
    expect((await ask('GET', '/v1/runs/served')).status).toBe(401);
  });

  it('without tokens is this machine alone: a name that leads here is not enough, nor is an open address', async () => {
    const { url } = await serve(['--no-drain']);
    const { request } = await import('node:http');
    const status = await new Promise((resolve, reject) => {
      request(`${url}/v1/runs/served`, { headers: { host: 'evil.example' } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end();
    });
    expect(status).toBe(403);
    for (const host of ['0.0.0.0', '::', '192.0.2.1']) {
      const { exitCode, stderr } = await runInProcess(['serve', '--simulate', '--host', host], {
        folder: workspace.folder,
      });
      expect(exitCode).toBe(2);
      expect(stderr).toContain('LLM_BATCH_SERVE_TOKENS');
    }
  });
});

describe('a page in a browser', () => {
  it('of somebody else puts nothing back, the own one does', async () => {
    const { ask, url } = await serve(['--no-drain']);
    const retry = async (headers: Record<string, string>) =>
      (await ask('POST', '/v1/runs/nobody/retry', undefined, headers)).status;
    for (const origin of ['https://elsewhere.example', 'http://localhost:1', 'null']) {
      expect(await retry({ origin })).toBe(403);
      expect(await retry({ origin, 'sec-fetch-site': 'cross-site' })).toBe(403);
    }
    expect(await retry({ origin: url })).toBe(404);
    expect(await retry({ origin: 'https://batch.example', 'sec-fetch-site': 'same-origin' })).toBe(404);
    expect(await retry({})).toBe(404);
  });
});

describe('a service that is stopped', () => {
  it('lets open calls finish, and takes up what is left when it starts again', async () => {
    await simulator.reconfigure({ latencyMs: 200 });
    const first = await serve(['--concurrency', '1']);
    const ids: string[] = [];
    for (const text of ['one', 'two', 'three']) {
      ids.push((await first.ask('POST', '/v1/tasks', asking(text))).json.id);
    }
    await first.ended(ids[0] ?? '');
    expect(await first.stop()).toBe(0);
    await simulator.reconfigure({ latencyMs: 0 });
    const second = await serve();
    for (const id of ids) expect(await second.ended(id)).toMatchObject({ status: 'completed' });
    expect((await simulator.books()).calls).toBe(3);
  });
});

describe('a service that sends', () => {
  it('is the only process that does, on a store in a file', async () => {
    await serve();
    const { exitCode, stderr } = await workspace.run(['worker', '--all']);
    expect(exitCode).toBe(5);
    expect(stderr).toContain(`process ${process.pid} on `);
  });
});

describe('what has lived its time', () => {
  it('is gone with 410, a run as well, but not a run by command; what nobody knows is 404', async () => {
    workspace.writeDocuments('docs.jsonl', numberedDocuments(2));
    await runInProcess(['run', 'docs.jsonl', '--simulate'], { folder: workspace.folder });
    let aheadMs = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
    const start = async () => {
      service = await startService(workspace.folder, ['--simulate', '--ttl', '1h'], { clock });
      return service;
    };
    const first = await start();
    const { id } = (await first.ask('POST', '/v1/tasks', asking('short-lived'))).json;
    const run = await first.ask('POST', '/v1/runs', '{"text":"a"}\n', {
      'content-type': 'application/jsonl',
    });
    await first.ended(id);
    const runPath = `/v1/runs/${run.json.id}`;
    await waitFor('the run', async () => (await first.ask('GET', runPath)).json.status === 'finished');
    await first.stop();

    aheadMs = 59 * 60_000;
    const second = await start();
    expect((await second.ask('GET', `/v1/tasks/${id}`)).status).toBe(200);
    await second.stop();

    aheadMs = 2 * 3_600_000;
    const { ask } = await start();
    await waitFor('the task to expire', async () => (await ask('GET', `/v1/tasks/${id}`)).status === 410);
    await waitFor('the run to expire', async () => (await ask('GET', runPath)).status === 410);
    expect((await ask('GET', `/v1/tasks/${id}`)).json.code).toBe('expired');
    expect((await ask('GET', '/v1/tasks/task_unknown')).status).toBe(404);
    expect(workspace.query('SELECT key FROM tasks')).toEqual(
      numberedDocuments(2).map(({ id }) => ({ key: id })),
    );
  });
});

describe('on PostgreSQL', () => {
  it('two services share their tasks: what one takes the other sends, knows and does not take again', async () => {
    const url = await postgresUrl();
    const environment = { OPENAI_API_KEY: 'sk-test', LLM_BATCH_SCHEMA_NAME: `served_${process.pid}` };
    const flags = ['--store', url, '--base-url', simulator.url];
    const taking = await startService(workspace.folder, [...flags, '--no-drain'], { environment });
    service = await startService(workspace.folder, flags, { environment });
    const key = { 'idempotency-key': 'order-17' };
    const { json } = await taking.ask('POST', '/v1/tasks', asking('shared'), key);
    const again = await service.ask('POST', '/v1/tasks', asking('shared'), key);
    expect([again.status, again.json]).toEqual([200, json]);
    expect(await taking.ended(json.id)).toMatchObject({ status: 'completed' });
    const run = await taking.ask('POST', '/v1/runs', '{"text":"a"}\n', {
      'content-type': 'application/jsonl',
    });
    const path = `/v1/runs/${run.json.id}`;
    await waitFor('the run', async () => (await taking.ask('GET', path)).json.status === 'finished');
    expect((await simulator.books()).calls).toBe(2);
    await taking.stop();
  });
});
