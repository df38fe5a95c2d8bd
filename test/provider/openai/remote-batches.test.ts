import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { createOpenAIProvider } from '../../../src/provider/openai/client.js';
import type { SendOptions } from '../../../src/provider/provider.js';
import type { RemoteBatch, RemoteBatches, RemoteReply } from '../../../src/provider/remote-batches.js';
import type { SimulatorOptions } from '../../../src/simulator/options.js';
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.js';
import { waitFor } from '../../support/wait-for.js';
import {
  answerJson,
  completionText,
  manualClock,
  openProvider,
  SECRET,
  type SeenRequest,
  send,
  startRawServer,
  startServer,
} from './loopback.js';

const BODY = '{"model":"m","messages":[{"role":"user","content":"hi"}]}';
const METADATA = { run: 'r', shard: '0' };

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'llm-batch-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

function options(more: Partial<SendOptions> = {}): SendOptions {
  return { timeoutMs: 30_000, signal: new AbortController().signal, ...more };
}

/** -1 where there is none. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? -1;
}

function remoteAt(baseUrl: string): RemoteBatches {
  return openProvider(baseUrl).remoteBatches;
}

async function simulate(
  more: SimulatorOptions = {},
): Promise<{ simulator: Simulator; remote: RemoteBatches }> {
  const simulator = await startSimulator({ batches: { durationMs: 0 }, ...more }, { clock: systemClock });
  onTestFinished(() => simulator.close());
  return { simulator, remote: remoteAt(simulator.url) };
}

/** @throws when it failed */
function done<Value>(reply: RemoteReply<Value>): Value {
  if (!reply.ok) throw new Error(`failed: ${JSON.stringify(reply)}`);
  return reply.value;
}

function inputFile(count: number, more: (index: number) => string = () => ''): string {
  const path = join(folder(), 'in.jsonl');
  const lines = Array.from({ length: count }, (_line, index) => {
    const body = { model: 'm', messages: [{ role: 'user', content: `Document ${index}${more(index)}` }] };
    return JSON.stringify({ custom_id: `id-${index}`, method: 'POST', url: '/v1/chat/completions', body });
  });
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

async function create(remote: RemoteBatches, path = inputFile(2)): Promise<RemoteReply<RemoteBatch>> {
  const inputFileId = done(await remote.upload(path, options()));
  return remote.create({ inputFileId, endpoint: 'chat', metadata: METADATA }, options());
}

function ended(remote: RemoteBatches, id: string): Promise<RemoteBatch> {
  return waitFor('the batch to end', async () => {
    const batch = done(await remote.retrieve(id, options()));
    return /^(completed|failed|expired|cancelled)$/.test(batch.state) ? batch : null;
  });
}

const asked = { endpoint: 'chat', bodyJson: BODY, parts: 1 } as const;
const { readLine } = openRemoteForLines();
const whole = (text: string) => ({ text, isUtf8: true });
function openRemoteForLines(): RemoteBatches {
  // Lines are read without a network.
  return createOpenAIProvider({
    baseUrl: 'http://127.0.0.1:9/v1',
    apiKey: SECRET,
    maxConnections: 1,
    clock: systemClock,
  }).remoteBatches;
}

describe('a batch at a server', () => {
  it('goes there as a file and comes back as one, each line judged as a direct answer is', async () => {
    const { simulator, remote } = await simulate();
    const path = inputFile(3, (index) => (index === 2 ? ' [[simulate:too-long]]' : ''));
    const created = done(await create(remote, path));
    expect(created).toMatchObject({ state: 'validating', metadata: METADATA, failure: null });
    expect(Math.abs((created.createdAtMs ?? 0) - Date.now())).toBeLessThan(60_000);
    const batch = await ended(remote, created.id);
    expect(batch).toMatchObject({ state: 'completed', counts: { total: 3, completed: 2, failed: 1 } });

    const target = join(folder(), 'out.jsonl');
    done(await remote.download(batch.outputFileId ?? '', target, options()));
    expect(readdirSync(join(target, '..'))).toEqual(['out.jsonl']);
    const [first = ''] = readFileSync(target, 'utf8').split('\n');
    const provider = openProvider(simulator.url);
    const bodyJson = '{"model":"m","messages":[{"role":"user","content":"Document 0"}]}';
    const direct = await provider.send({ ...asked, bodyJson }, options());
    const line = remote.readLine(whole(first), () => ({ ...asked, bodyJson }));
    if (!direct.ok || !('reply' in line) || !line.reply.ok) throw new Error('both are answered');
    const { outputJson } = direct.parts[0] as { outputJson: string };
    expect(line.customId).toBe('id-0');
    expect(line.reply).toMatchObject({ parts: [{ outputJson }], model: direct.model, usage: direct.usage });

    done(await remote.download(batch.errorFileId ?? '', target, options()));
    expect(remote.readLine(whole(readFileSync(target, 'utf8').trim()), () => asked)).toMatchObject({
      customId: 'id-2',
      reply: { ok: false, failure: { kind: 'too_large', httpStatus: 400, code: 'context_length_exceeded' } },
    });
    done(await remote.deleteFile(batch.outputFileId ?? '', options()));
    expect(await remote.download(batch.outputFileId ?? '', target, options())).toMatchObject({
      ok: false,
      failure: { kind: 'not_found', httpStatus: 404 },
    });
    expect(simulator.books().remote).toMatchObject({ filesUploaded: 1, filesDeleted: 1, filesFetched: 2 });
    expect(simulator.books().defect).toBeNull();
  });

  it('that nobody heard of is found by its metadata, pages down the list', async () => {
    const { simulator, remote } = await simulate();
    simulator.reconfigure({ routeFaults: [{ route: 'create', fault: 'drop' }] });
    const lost = await create(remote);
    expect(lost).toMatchObject({ ok: false, failure: { kind: 'network' } });
    expect(lost).not.toMatchObject({ failure: { isUnsent: true } });
    const inputFileId = done(await remote.upload(inputFile(1), options()));
    for (let index = 0; index < 105; index += 1) {
      done(await remote.create({ inputFileId, endpoint: 'chat', metadata: { run: 'r' } }, options()));
    }
    const found = done(await remote.find(METADATA, Date.now() - 60_000, options()));
    expect(found?.metadata).toEqual(METADATA);
    // What is older than asked for is not looked at.
    expect(done(await remote.find({ run: 'other' }, 0, options()))).toBeNull();
    expect(simulator.books().remote.batches.filter(({ metadata }) => 'shard' in metadata)).toHaveLength(1);
  });

  it('whose file is wrong, or for which there is no room, tells so in the words of all failures', async () => {
    const { simulator, remote } = await simulate({ models: ['other'] });
    const { id } = done(await create(remote));
    expect(await ended(remote, id)).toMatchObject({
      state: 'failed',
      isQueueFull: false,
      failure: {
        kind: 'not_found',
        code: 'model_not_found',
        message: expect.stringMatching(/^Line 1: .*\(and 1 more\)$/),
      },
    });
    simulator.reconfigure({ models: null, batches: { durationMs: 0, queueTokens: 1 } });
    expect(await ended(remote, done(await create(remote)).id)).toMatchObject({
      isQueueFull: true,
      failure: { kind: 'rate_limited', code: 'token_limit_exceeded' },
    });
    simulator.reconfigure({ batches: { durationMs: 0, queueTokens: 1, queueFullAt: 'creation' } });
    expect(await create(remote)).toMatchObject({
      ok: false,
      failure: { kind: 'rate_limited', code: 'token_limit_exceeded' },
    });
  });

  it('is cancelled, and what was not run says so', async () => {
    const { remote } = await simulate({ batches: { durationMs: 600_000 } });
    const { id } = done(await create(remote));
    expect(done(await remote.cancel(id, options())).state).toBe('cancelling');
    const batch = await ended(remote, id);
    const target = join(folder(), 'errors.jsonl');
    done(await remote.download(batch.errorFileId ?? '', target, options()));
    expect(remote.readLine(whole(readFileSync(target, 'utf8').split('\n')[0] ?? ''), () => asked)).toEqual({
      customId: 'id-0',
      unrun: 'batch_cancelled',
    });
  });
});

describe('what breaks off', () => {
  it.each(['429', '500', 'reset'] as const)(
    'an upload that meets %s is a failure, and no file',
    async (fault) => {
      const { simulator, remote } = await simulate({ routeFaults: [{ route: 'upload', fault }] });
      // Larger than what the system's buffers hold: it is still on its way when the server says no.
      const path = inputFile(40_000, () => 'x'.repeat(300));
      const kind = { 429: 'rate_limited', 500: 'overloaded', reset: 'network' }[fault];
      expect(await remote.upload(path, options())).toMatchObject({ ok: false, failure: { kind } });
      expect(simulator.books().remote.filesUploaded).toBe(0);
      done(await remote.upload(path, options()));
      expect(simulator.books().remote).toMatchObject({
        filesUploaded: 1,
        bytesUploaded: readFileSync(path).length,
      });
    },
  );

  it('a download that is cut leaves no file, whether it is the first or replaces another', async () => {
    const { simulator, remote } = await simulate();
    const batch = await ended(remote, done(await create(remote, inputFile(2_000))).id);
    simulator.reconfigure({ routeFaults: [{ route: 'content', fault: 'cut', times: 2 }] });
    const target = join(folder(), 'out.jsonl');
    const fetchIt = () => remote.download(batch.outputFileId ?? '', target, options());
    expect(await fetchIt()).toMatchObject({ ok: false, failure: { kind: 'network' } });
    expect(readdirSync(join(target, '..'))).toEqual([]);
    writeFileSync(target, 'earlier');
    expect((await fetchIt()).ok).toBe(false);
    expect(readFileSync(target, 'utf8')).toBe('earlier');
    done(await fetchIt());
    expect(readFileSync(target, 'utf8').trim().split('\n')).toHaveLength(2_000);
  });

  it('a download that falls silent ends after the time, one that goes on slowly does not', async () => {
    let nowMs = 0;
    const clock = { ...manualClock(), monotonicMs: () => nowMs };
    let socket: Socket | null = null;
    const server = await startRawServer((opened) => {
      socket = opened;
      opened.write('HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nx');
    });
    const remote = openProvider(server.baseUrl, { clock }).remoteBatches;
    const target = join(folder(), 'out.jsonl');
    const received = (bytes: number) => waitFor('the bytes', () => sizeOf(`${target}.unfinished`) === bytes);

    const slow = remote.download('f', target, options({ timeoutMs: 600 }));
    await received(1);
    nowMs = 500;
    socket = await waitFor('a socket', () => socket);
    socket.write('x');
    await received(2);
    nowMs = 700;
    clock.fire();
    await waitFor('the next look at the time', () => clock.pending() === 1);
    socket.end('x');
    done(await slow);
    expect(readFileSync(target, 'utf8')).toBe('xxx');

    const silent = remote.download('f', target, options({ timeoutMs: 600 }));
    await received(1);
    nowMs += 600;
    clock.fire();
    expect(await silent).toMatchObject({ ok: false, failure: { kind: 'timeout' } });
  });

  it('our own signal ends an upload and a download, and nothing is left behind', async () => {
    const { remote } = await simulate({
      routeFaults: [
        { route: 'upload', fault: 'hang' },
        { route: 'content', fault: 'hang' },
      ],
    });
    const path = folder();
    for (const start of [
      (signal: AbortSignal) => remote.upload(inputFile(10), options({ signal })),
      (signal: AbortSignal) => remote.download('f', join(path, 'out'), options({ signal })),
    ]) {
      const controller = new AbortController();
      const reply = start(controller.signal);
      setTimeout(() => controller.abort(), 50);
      expect(await reply).toEqual({ ok: false, aborted: true });
    }
    expect(readdirSync(path)).toEqual([]);
  });

  it('a file that is packed on its way is unpacked; one that is packed badly is none', async () => {
    const packed = gzipSync('one\ntwo\n'.repeat(50_000));
    const server = await startServer((request, response) => {
      const bytes = request.url.includes('bad') ? packed.subarray(0, 100) : packed;
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bytes);
    });
    const remote = remoteAt(server.baseUrl);
    const target = join(folder(), 'out.jsonl');
    done(await remote.download('good', target, options()));
    expect(readFileSync(target, 'utf8')).toHaveLength(400_000);
    expect(await remote.download('bad', join(folder(), 'bad'), options())).toMatchObject({
      ok: false,
      failure: { kind: 'network', code: 'BAD_CONTENT_ENCODING' },
    });
  });

  it('what this machine cannot read or write is an error, and no failure of the server', async () => {
    const { remote } = await simulate();
    const code = 'BATCH_FILE';
    await expect(remote.upload(join(folder(), 'none'), options())).rejects.toMatchObject({ code });
    const batch = await ended(remote, done(await create(remote)).id);
    const target = join(folder(), 'no', 'folder');
    await expect(remote.download(batch.outputFileId ?? '', target, options())).rejects.toMatchObject({
      code,
    });
  });

  it('a server that nobody reaches has seen nothing', async () => {
    const remote = remoteAt('http://127.0.0.1:9/v1');
    const unsent = { ok: false, failure: { kind: 'network', isUnsent: true } };
    expect(await remote.upload(inputFile(1), options())).toMatchObject(unsent);
    expect(
      await remote.create({ inputFileId: 'f', endpoint: 'chat', metadata: {} }, options()),
    ).toMatchObject(unsent);
  });
});

describe('what other servers say of batches', () => {
  async function batchOf(body: unknown, seen: SeenRequest[] = []): Promise<RemoteReply<RemoteBatch>> {
    const server = await startServer((request, response) => {
      seen.push(request);
      answerJson(response, JSON.stringify(body));
    });
    return remoteAt(server.baseUrl).retrieve('b/../1', options());
  }

  it.each([
    [
      'capitals and a date (Together)',
      { id: 'b', status: 'IN_PROGRESS', created_at: '2026-01-01T00:00:00Z' },
      { state: 'in_progress', createdAtMs: Date.UTC(2026, 0, 1), counts: null },
    ],
    [
      'a bare list of errors on a completed batch (Groq)',
      { id: 'b', status: 'completed', errors: [{ code: 'x', message: 'y' }] },
      { state: 'completed', failure: null },
    ],
    [
      'a bare list of errors (Groq)',
      { id: 'b', status: 'failed', errors: [{ code: 'token_limit_exceeded', message: 'y' }] },
      { isQueueFull: true, failure: { kind: 'rate_limited' } },
    ],
    [
      'an error that is a text (Together)',
      { id: 'b', status: 'FAILED', error: 'The file is bad' },
      { failure: { kind: 'invalid_request', message: 'The file is bad' } },
    ],
    ['no reason', { id: 'b', status: 'failed', errors: null }, { state: 'failed', failure: null }],
    [
      'no money',
      { id: 'b', status: 'failed', errors: { data: [{ code: 'billing_hard_limit_reached', message: 'z' }] } },
      { failure: { kind: 'quota_exhausted' } },
    ],
    [
      'a word that nobody knows',
      { id: 'b', status: 'pondering', metadata: { a: 'b', c: 4 } },
      { state: 'unknown', metadata: { a: 'b' } },
    ],
    [
      'one l',
      { id: 'b', status: 'Canceled', request_counts: { total: -1, completed: 'x' } },
      { state: 'cancelled', counts: null },
    ],
  ])('%s', async (_what, body, expected) => {
    expect(done(await batchOf(body))).toMatchObject(expected);
  });

  it.each([
    ['an id that leads elsewhere', { id: '../models', status: 'completed' }],
    ['a file that leads elsewhere', { id: 'b', status: 'completed', output_file_id: '..' }],
    ['no id', { status: 'completed' }],
    ['a list', [1]],
    ['a number', 4],
  ])('%s is no batch', async (_what, body) => {
    const seen: SeenRequest[] = [];
    expect(await batchOf(body, seen)).toMatchObject({ ok: false, failure: { kind: 'bad_output' } });
    expect(seen.map(({ url }) => url)).toEqual(['/v1/batches/b%2F..%2F1']);
  });

  it('a page or an error under HTTP 200 is a failure, and never shows the key', async () => {
    const server = await startServer((request, response) => {
      if (request.method === 'GET') response.end(`<html><title>Sign in ${SECRET}</title></html>`);
      else answerJson(response, JSON.stringify({ error: { code: 503, message: `Busy ${SECRET}` } }));
    });
    const remote = remoteAt(server.baseUrl);
    const replies = [
      await remote.retrieve('b', options()),
      await remote.create({ inputFileId: 'f', endpoint: 'chat', metadata: {} }, options()),
    ];
    expect(replies).toMatchObject([{ failure: { kind: 'network' } }, { failure: { kind: 'overloaded' } }]);
    expect(JSON.stringify(replies)).not.toContain(SECRET);
  });

  it('a list that knows no cursor, or comes bare, is looked through once', async () => {
    let requests = 0;
    const items = Array.from({ length: 100 }, (_item, index) => ({ id: `b${index}`, status: 'completed' }));
    const server = await startServer((_request, response) => {
      requests += 1;
      answerJson(response, JSON.stringify(items));
    });
    const remote = remoteAt(server.baseUrl);
    expect(done(await remote.find(METADATA, 0, options()))).toBeNull();
    expect(requests).toBe(2);
  });
});

describe('lines', () => {
  const good = (more: object = {}): string =>
    JSON.stringify({
      custom_id: 'a',
      response: { status_code: 200, request_id: 'r1', body: JSON.parse(completionText()) },
      error: null,
      ...more,
    });

  it('with bytes that are no text are no answer, and say why', () => {
    expect(readLine({ text: good(), isUtf8: false }, () => asked)).toMatchObject({
      customId: 'a',
      reply: { ok: false, failure: { kind: 'bad_output', message: expect.stringContaining('not UTF-8') } },
    });
  });

  it('with an answer keep it as it came, every digit of it', () => {
    const body = completionText().replace('"m-1"', '"m-1","big":12345678901234567890,"one":1.0');
    const line = `{"custom_id":"a","response":{"status_code":200,"request_id":"r1","body":${body}},"error":null}`;
    expect(readLine(whole(line), () => asked)).toMatchObject({
      customId: 'a',
      reply: { ok: true, requestId: 'r1', parts: [{ responseJson: body }] },
    });
  });

  it.each([
    [
      'a refusal',
      {
        response: {
          status_code: 401,
          body: { error: { message: `bad ${SECRET}`, code: 'invalid_api_key' } },
        },
      },
      { kind: 'auth', httpStatus: 401 },
    ],
    [
      'a throttle',
      { response: { status_code: 429, body: { error: { message: 'x', code: 'rate_limit_exceeded' } } } },
      { kind: 'rate_limited' },
    ],
    [
      'a page',
      { response: { status_code: 502, body: '<html><title>Bad</title></html>' } },
      { kind: 'overloaded' },
    ],
    [
      'an answer cut in the middle',
      { response: { status_code: 200, body: '{"choices":' } },
      { kind: 'network' },
    ],
    ['no body', { response: { status_code: 200, body: null } }, { kind: 'network' }],
    [
      'an error of the line',
      { response: null, error: { code: 'server_error', message: 'x' } },
      { kind: 'overloaded' },
    ],
  ])('with %s are judged as a call', (_what, more, failure) => {
    const line = readLine(whole(good(more)), () => asked);
    expect(line).toMatchObject({ customId: 'a', reply: { ok: false, failure } });
    expect(JSON.stringify(line)).not.toContain(SECRET);
  });

  it('without a wrapping are the answer itself', () => {
    const line = `{"custom_id":"a","response":${completionText()}}`;
    expect(readLine(whole(line), () => asked)).toMatchObject({ reply: { ok: true } });
  });

  it.each(['batch_expired', 'batch_cancelled', 'request_canceled'])('with %s were not run', (code) => {
    const line = readLine(whole(good({ response: null, error: { code, message: 'x' } })), () => asked);
    expect(line).toEqual({ customId: 'a', unrun: code });
  });

  it.each([
    ['cut', good().slice(0, 50)],
    ['empty', ''],
    ['a NUL', '\0'],
    ['a list', '[]'],
    ['deep', '['.repeat(100_000)],
    ['without an id', good({ custom_id: undefined })],
    ['with an id that is a number', good({ custom_id: 4 })],
    ['of nobody', good({ custom_id: 'z' })],
    ['named __proto__', good({ custom_id: '__proto__' })],
    ['without response and error', good({ response: null })],
    ['with the wrong types', good({ response: 'x', error: null })],
    ['with the key in it', good({ custom_id: SECRET })],
  ])('that are %s are malformed', (_what, text) => {
    const line = readLine(whole(text), (customId) => (customId === 'a' ? asked : null));
    expect(line).toEqual({ malformed: expect.any(String) });
    expect(JSON.stringify(line)).not.toContain(SECRET);
    expect(JSON.stringify(line).length).toBeLessThan(1_000);
  });

  it('of a huge answer are read', () => {
    const text = JSON.stringify({
      custom_id: 'a',
      response: { status_code: 200, body: JSON.parse(completionText('x'.repeat(5_000_000))) },
    });
    expect(readLine(whole(text), () => asked)).toMatchObject({ reply: { ok: true } });
  });

  it('a direct answer of the same words is judged alike', async () => {
    const answer = '{"choices":[]}';
    const server = await startServer((_request, response) => answerJson(response, answer));
    const direct = await send(openProvider(server.baseUrl));
    const line = readLine(
      whole(`{"custom_id":"a","response":{"status_code":200,"body":${answer}}}`),
      () => asked,
    );
    expect(line).toMatchObject({ reply: direct });
  });
});
