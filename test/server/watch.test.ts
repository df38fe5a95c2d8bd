/** What those see who look on: the page and its events, figures for Prometheus, traces from submission to webhook. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runInProcess } from '../support/in-process.js';
import { type ServiceUnderTest, startService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

let workspace: Workspace;
let service: ServiceUnderTest | null = null;
let listener: Server | null = null;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(async () => {
  await service?.stop();
  service = null;
  listener?.close();
  listener?.closeAllConnections();
  listener = null;
  workspace.remove();
});

async function start(args: readonly string[] = [], environment: Record<string, string> = {}) {
  service = await startService(workspace.folder, ['--simulate', ...args], { environment });
  return service;
}

interface Post {
  readonly path: string;
  readonly text: string;
  readonly traceparent: unknown;
}

/** Keeps what is posted to it. */
async function listen(): Promise<{ url: string; posts: Post[] }> {
  const posts: Post[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (part: Buffer) => {
      text += part.toString();
    });
    request.on('end', () => {
      posts.push({ path: request.url ?? '', text, traceparent: request.headers['traceparent'] });
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  listener = server;
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, posts };
}

function task(text: string, fields: object = {}): object {
  return { request: { messages: [{ role: 'user', content: text }] }, ...fields };
}

describe('the page of the service', () => {
  it('is open to everybody and holds no figure, and what feeds it wants a token', async () => {
    const { ask } = await start([], { LLM_BATCH_SERVE_TOKENS: 'secret-token' });
    const page = await ask('GET', '/');
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('x-frame-options')).toBe('DENY');
    expect(page.text).toContain('connect-src &#39;self&#39;');
    for (const path of ['/v1/runs', '/v1/events', '/metrics']) {
      expect((await ask('GET', path)).status).toBe(401);
    }
    const authorization = 'Bearer secret-token';
    expect((await ask('GET', '/v1/runs', undefined, { authorization })).status).toBe(200);
  });

  it('is told of each change until it goes away, and does not hold up the end of the service', async () => {
    const { ask, url, stop } = await start();
    const abort = new AbortController();
    const events = await fetch(`${url}/v1/events`, { signal: abort.signal });
    expect(events.headers.get('content-type')).toBe('text/event-stream');
    let heard = '';
    const reading = (async () => {
      for await (const part of events.body ?? []) heard += Buffer.from(part as Uint8Array).toString();
    })();
    await waitFor('the first event', () => heard.includes('data: '));
    const { json } = await ask('POST', '/v1/tasks', task('Hello'));
    expect(json.status).toBe('pending');
    await waitFor('the answer to be told', () => heard.includes('"completed":1'));
    const [last] = heard.trim().split('\n\n').reverse();
    expect(JSON.parse(last?.slice('data: '.length) ?? '')).toMatchObject({
      runs: [{ id: 'served-simulated', documents: { total: 1, completed: 1 }, failed_by_kind: {} }],
      left_out: 0,
    });
    await stop();
    service = null;
    await reading;
  });

  it('puts the failed documents of a run back, once there are some', async () => {
    const { ask, ended } = await start();
    const { json } = await ask('POST', '/v1/tasks', task('[[simulate:bad-request]]'));
    expect(await ended(json.id)).toMatchObject({ status: 'failed' });
    expect((await ask('POST', '/v1/runs/served-simulated/retry')).status).toBe(202);
    await ended(json.id);
    expect((await ask('POST', '/v1/runs/nobody/retry')).status).toBe(404);
  });

  it('leads to every run that it shows, by a long name too', async () => {
    const name = 'n'.repeat(200);
    workspace.writeDocuments('docs.jsonl', numberedDocuments(1));
    await runInProcess(['run', 'docs.jsonl', '--simulate', '--name', name], { folder: workspace.folder });
    const { ask } = await start(['--no-drain']);
    expect((await ask('GET', '/v1/runs')).text).toContain(`"id":"${name}"`);
    expect((await ask('GET', `/v1/runs/${name}`)).json).toMatchObject({ id: name, status: 'finished' });
  });
});

it('gives Prometheus the backlog, the calls, and the time from submission to answer', async () => {
  const { ask, ended } = await start();
  const { json } = await ask('POST', '/v1/tasks', task('Hello'));
  await ended(json.id);
  const { text, headers } = await ask('GET', '/metrics');
  expect(headers.get('content-type')).toContain('text/plain');
  expect(text).toMatch(/llm_batch_calls_total\{lane="\w+",outcome="answered"\} 1/);
  expect(text).toContain('llm_batch_time_to_answer_seconds_count 1');
  expect(text).toContain('llm_batch_tasks_settled_total{outcome="completed"} 1');
  const { text: busy } = await ask('GET', '/metrics');
  expect(busy).not.toContain('llm_batch_backlog_tasks{');
});

it('has one trace for a task, from its submission to its webhook', async () => {
  const { url, posts } = await listen();
  const trace = '0af7651916cd43dd8448eb211c80319c';
  // OpenTelemetry reads the environment of the process.
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = url;
  try {
    const { ask, stop } = await start(['--allow-webhook-host', new URL(url).host], {
      LLM_BATCH_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
    });
    const traceparent = `00-${trace}-b7ad6b7169203331-01`;
    await ask('POST', '/v1/tasks', task('Hello', { webhook_url: `${url}/hook` }), { traceparent });
    await waitFor('the webhook', () => posts.some(({ path }) => path === '/hook'));
    await stop();
    service = null;
  } finally {
    delete process.env['OTEL_EXPORTER_OTLP_ENDPOINT'];
  }
  expect(posts.find(({ path }) => path === '/hook')?.traceparent).toContain(`00-${trace}-`);
  const spans = posts
    .filter(({ path }) => path === '/v1/traces')
    .flatMap(({ text }) => [...text.matchAll(/"traceId":"(\w+)".*?"name":"([^"]+)"/g)]);
  expect(spans.map(([, id, name]) => [id, name]).sort()).toEqual(
    ['POST /v1/tasks', 'POST webhook', 'chat gpt-4o-mini', 'queue'].map((name) => [trace, name]),
  );
});
