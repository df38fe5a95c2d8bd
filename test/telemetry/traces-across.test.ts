/** One trace goes through the service and a worker, which are processes of their own over one PostgreSQL. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { postgresUrl } from '../support/postgres.js';
import type { RunningProgram } from '../support/program.js';
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.js';
import { waitFor } from '../support/wait-for.js';
import { Workspace } from '../support/workspace.js';

interface Span {
  readonly process: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Absent or empty where it has none. */
  readonly parentSpanId?: string;
  readonly name: string;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
}

/** As OTLP writes it over HTTP with JSON. */
interface ExportedTraces {
  readonly resourceSpans: readonly {
    readonly resource: {
      readonly attributes: readonly {
        readonly key: string;
        readonly value: { readonly stringValue?: string };
      }[];
    };
    readonly scopeSpans: readonly { readonly spans: readonly Omit<Span, 'process'>[] }[];
  }[];
}

const SCHEMA = `traced_${process.pid}`;

let workspace: Workspace;
let simulator: SimulatorProcess;
let storeUrl: string;
let listener: Server;
let listenerUrl: string;
let programs: RunningProgram[];
/** Of both processes. */
let spans: Span[];
/** Trace contexts of the webhooks that came. */
let webhooks: string[];

beforeEach(async () => {
  workspace = new Workspace();
  simulator = await startSimulatorProcess();
  storeUrl = await postgresUrl();
  [programs, spans, webhooks] = [[], [], []];
  listener = createServer((request, response) => {
    let body = '';
    request.on('data', (part: Buffer) => {
      body += part.toString();
    });
    request.on('end', () => {
      if (request.url === '/hook') webhooks.push(String(request.headers['traceparent']));
      else spans.push(...spansIn(JSON.parse(body) as ExportedTraces));
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  await new Promise<void>((resolve) => {
    listener.listen(0, '127.0.0.1', resolve);
  });
  listenerUrl = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
});

afterEach(async () => {
  await end();
  listener.close();
  listener.closeAllConnections();
  await simulator.stop();
  const client = new pg.Client({ connectionString: storeUrl });
  await client.connect();
  await client.query(`DROP SCHEMA IF EXISTS ${SCHEMA} CASCADE`);
  await client.end();
  workspace.remove();
});

function spansIn({ resourceSpans }: ExportedTraces): Span[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const name = resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? '';
    return scopeSpans.flatMap((scope) => scope.spans.map((span) => ({ ...span, process: name })));
  });
}

function start(name: string, args: readonly string[]): RunningProgram {
  const program = workspace.start(args, {
    environment: {
      ...{ LLM_BATCH_STORE: storeUrl, LLM_BATCH_SCHEMA_NAME: SCHEMA, OTEL_SERVICE_NAME: name },
      OTEL_EXPORTER_OTLP_ENDPOINT: listenerUrl,
      LLM_BATCH_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
    },
  });
  programs.push(program);
  return program;
}

/** With all that they have to tell. */
async function end(): Promise<void> {
  for (const program of programs) program.kill('SIGTERM');
  await Promise.all(programs.map(({ ended }) => ended));
}

/** @returns where the service listens, beside a worker that sends what it takes */
async function startBoth(): Promise<string> {
  const host = new URL(listenerUrl).host;
  const flags = ['--no-drain', '--port', '0', '--allow-webhook-host', host, '--base-url', simulator.url];
  const service = start('service', ['serve', ...flags, '--model', 'small']);
  const line = await waitFor('the service to listen', () => /^.+\n/.exec(service.stdout())?.[0]);
  start('worker', ['worker', '--all', '--trust-store']);
  return (JSON.parse(line) as { url: string }).url;
}

it('has all spans of a task under one trace id, from its submission to its webhook, and no parent is missing', async () => {
  const url = await startBoth();
  const messages = [{ role: 'user', content: 'Hello' }];
  await fetch(`${url}/v1/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ request: { messages }, webhook_url: `${listenerUrl}/hook` }),
  });
  await waitFor('the webhook', () => webhooks.length > 0);
  await end();
  expect(spans.map((span) => `${span.process}: ${span.name}`).sort()).toEqual([
    'service: POST /v1/tasks',
    'service: POST webhook',
    'worker: chat small',
    'worker: queue',
  ]);
  const submission = spans.find(({ name }) => name === 'POST /v1/tasks');
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([submission?.traceId]));
  expect(submission?.parentSpanId ?? '').toBe('');
  for (const { spanId, parentSpanId, name } of spans) {
    if (spanId !== submission?.spanId) expect(parentSpanId, name).toBe(submission?.spanId);
  }
  const webhook = spans.find(({ name }) => name === 'POST webhook');
  expect(webhooks).toEqual([`00-${webhook?.traceId}-${webhook?.spanId}-01`]);
});

it('links the calls of a run that was handed in whole to its submission, and each is a trace of its own', async () => {
  const url = await startBoth();
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  const response = await fetch(`${url}/v1/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/jsonl', traceparent: `00-${traceId}-b7ad6b7169203331-01` },
    body: '{"text":"one"}\n{"text":"two"}\n',
  });
  const { id } = (await response.json()) as { id: string };
  await waitFor('the run to finish', async () => {
    const run = (await (await fetch(`${url}/v1/runs/${id}`)).json()) as { status: string };
    return run.status === 'finished';
  });
  await end();
  const submission = spans.find(({ name }) => name === 'POST /v1/runs');
  expect(submission).toMatchObject({ traceId, parentSpanId: 'b7ad6b7169203331' });
  const calls = spans.filter(({ name }) => name === 'chat small');
  expect(calls.map(({ links }) => links?.map((link) => [link.traceId, link.spanId]))).toEqual(
    Array(2).fill([[traceId, submission?.spanId]]),
  );
  expect(new Set([traceId, ...calls.map((call) => call.traceId)]).size).toBe(3);
});
