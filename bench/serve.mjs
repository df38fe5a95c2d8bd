// Durable submissions a second over HTTP: 100 connections, each with its own idempotency key, into an empty store and into
// one with a backlog; beside them how fast a task is asked for. On SQLite, and then on PostgreSQL, each commit on the disk.
// The service runs in a process of its own.
//   node bench/serve.mjs [seconds] [backlog]
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import autocannon from 'autocannon';
import { startServer } from './postgres-server.mjs';

const seconds = Number(process.argv[2] ?? 10);
const backlog = Number(process.argv[3] ?? 100_000);
const connections = 100;

await measureService('SQLite', {});
const server = await startServer();
try {
  await measureService('PostgreSQL', {
    LLM_BATCH_STORE: server.url,
    LLM_BATCH_SCHEMA_NAME: `bench_${process.pid}`,
  });
} finally {
  await server.remove();
}

async function measureService(store, environment) {
  const folder = mkdtempSync(join(tmpdir(), 'llm-batch-bench-'));
  const cli = join(import.meta.dirname, '..', 'dist', 'cli.js');
  const service = spawn(process.execPath, [cli, 'serve', '--port', '0', '--no-drain', '--simulate'], {
    ...{ cwd: folder, env: { ...process.env, ...environment } },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [line] = await once(createInterface({ input: service.stdout }), 'line');
    const { url } = JSON.parse(line);
    await measure(`${store}: submissions, empty store`, url, submission());
    await fill(url, backlog);
    await measure(`${store}: submissions, ${backlog} waiting`, url, submission());
    const { headers } = await post(url);
    await measure(`${store}: status of a task`, `${url}${headers.get('location')}`, { method: 'GET' });
  } finally {
    service.kill('SIGTERM');
    await new Promise((resolve) => service.once('exit', resolve));
    rmSync(folder, { recursive: true, force: true });
  }
}

function once(emitter, event) {
  return new Promise((resolve) => emitter.once(event, (...args) => resolve(args)));
}

function body() {
  return JSON.stringify({
    request: { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'x'.repeat(500) }] },
  });
}

function submission() {
  let number = 0;
  const run = Math.random();
  return {
    method: 'POST',
    path: '/v1/tasks',
    setupRequest: (request) => {
      number += 1;
      return {
        ...request,
        body: body(),
        headers: { 'content-type': 'application/json', 'idempotency-key': `${run}-${number}` },
      };
    },
  };
}

function post(url) {
  return fetch(`${url}/v1/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: body(),
  });
}

async function fill(url, count) {
  const line = `${body().slice('{"request":'.length, -1)}\n`;
  for (let left = count; left > 0; left -= 10_000) {
    await fetch(`${url}/v1/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/jsonl' },
      body: line.repeat(Math.min(left, 10_000)),
    });
  }
}

async function measure(name, url, request) {
  const result = await autocannon({ url, connections, duration: seconds, requests: [request] });
  const { requests, latency, non2xx, errors } = result;
  console.log(
    `${name}: ${Math.round(requests.average)}/s, p50 ${latency.p50} ms, p99 ${latency.p99} ms, most ${latency.max} ms` +
      `${non2xx + errors === 0 ? '' : `, REFUSED OR FAILED: ${non2xx + errors}`}`,
  );
}
