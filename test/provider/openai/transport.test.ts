import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { FailureKind } from '../../../src/core/failure.js';
import { isLoopback } from '../../../src/core/loopback.js';
import { BodyRoom } from '../../../src/provider/openai/body-room.js';
import { USUAL_TIMES } from '../../../src/provider/openai/dispatcher.js';
import { createTransport } from '../../../src/provider/openai/transport.js';
import {
  answerJson,
  completionText,
  openProvider,
  send,
  startRawServer,
  startServer,
  until,
} from './loopback.js';

const JSON_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';

describe('what a server can do to a call', () => {
  it.each<[string, number, string, string, FailureKind, string]>([
    [
      '502 with HTML',
      502,
      'text/html',
      '<html><title>502 Bad Gateway</title></html>',
      'overloaded',
      'an HTML page: 502 Bad Gateway',
    ],
    [
      '429 with a list',
      429,
      'application/json',
      '[{"error":{"code":429,"message":"Quota of the minute"}}]',
      'rate_limited',
      'Quota of the minute',
    ],
    ['429 with a detail', 429, 'application/json', '{"detail":"Too many"}', 'rate_limited', 'Too many'],
    [
      '429 with a flat object',
      429,
      'application/json',
      '{"object":"error","message":"Busy"}',
      'rate_limited',
      'Busy',
    ],
    [
      'an error that is a text',
      400,
      'application/json',
      '{"error":"no such field"}',
      'invalid_request',
      'no such field',
    ],
    [
      'an error without a body',
      500,
      'application/json',
      '',
      'overloaded',
      'The server answered 500 Internal Server Error',
    ],
    [
      'an error that is cut short',
      500,
      'application/json',
      '{"error":{"mess',
      'overloaded',
      '{"error":{"mess',
    ],
    [
      '200 with an error',
      200,
      'application/json',
      '{"error":{"code":503,"message":"No provider"}}',
      'overloaded',
      'No provider',
    ],
    [
      '200 with HTML',
      200,
      'text/html',
      '<!doctype html><title>Log in</title>',
      'network',
      'The answer is an HTML page: Log in',
    ],
    ['200 with nothing', 200, 'application/json', '', 'network', 'The answer has no body'],
    [
      '200 with truncated JSON',
      200,
      'application/json',
      '{"choices":[{"mess',
      'network',
      'The answer is JSON that breaks off',
    ],
    ['204', 204, 'application/json', '', 'network', 'The answer has no body'],
  ])('%s is a value', async (_what, status, type, text, kind, message) => {
    const server = await startServer((_request, response) => {
      response.writeHead(status, { 'content-type': type }).end(text);
    });
    expect(await send(openProvider(server.baseUrl))).toMatchObject({
      ok: false,
      failure: { kind, message, httpStatus: status },
    });
  });

  it.each<[string, string, string]>([
    ['closes before the headers', '', 'UND_ERR_SOCKET'],
    ['closes in the middle of the headers', 'HTTP/1.1 200 OK\r\ncontent-', 'UND_ERR_SOCKET'],
    [
      'closes in the middle of the body',
      `${JSON_HEAD}content-length: 500\r\n\r\n{"choices":[`,
      'UND_ERR_SOCKET',
    ],
    [
      'closes in the middle of a chunked body',
      `${JSON_HEAD}transfer-encoding: chunked\r\n\r\n5\r\n{"cho\r\n`,
      'UND_ERR_SOCKET',
    ],
    [
      'closes in the middle of an error',
      'HTTP/1.1 429 Slow\r\ncontent-length: 500\r\n\r\n{"error"',
      'UND_ERR_SOCKET',
    ],
    ['speaks no HTTP', '220 mail.example.test ESMTP\r\n', 'HTTPParserError'],
  ])('a server that %s is a network failure', async (_what, bytes, code) => {
    const server = await startRawServer((socket) => socket.end(bytes));
    const reply = await send(openProvider(server.baseUrl));
    expect(reply).toMatchObject({ ok: false, failure: { kind: 'network', code } });
    expect('failure' in reply && reply.failure.message).toContain(`http://127.0.0.1:${server.port}`);
  });

  it.each<[string, string]>([
    ['before the headers', ''],
    ['in the middle of the body', `${JSON_HEAD}content-length: 500\r\n\r\n{"choices":[`],
  ])('a reset %s is a network failure', async (_when, bytes) => {
    const server = await startRawServer((socket) => {
      if (bytes === '') socket.resetAndDestroy();
      else socket.write(bytes, () => socket.resetAndDestroy());
    });
    const reply = await send(openProvider(server.baseUrl));
    expect(reply).toMatchObject({
      ok: false,
      failure: { kind: 'network', code: expect.stringMatching(/^(?:ECONNRESET|UND_ERR_SOCKET)$/) },
    });
    // The server has had the request, and may bill it.
    expect('failure' in reply && reply.failure.isUnsent).toBeUndefined();
  });

  it('a body that ends with its connection is whole', async () => {
    const server = await startRawServer((socket) => socket.end(`${JSON_HEAD}\r\n${completionText()}`));
    expect(await send(openProvider(server.baseUrl))).toMatchObject({ ok: true, parts: [{ text: 'fine' }] });
  });

  it('an interim response is not the answer', async () => {
    const text = completionText();
    const server = await startRawServer((socket) =>
      socket.end(
        `HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n${JSON_HEAD}content-length: ${text.length}\r\n\r\n${text}`,
      ),
    );
    expect(await send(openProvider(server.baseUrl))).toMatchObject({ ok: true, httpStatus: 200 });
  });

  it('a port where nothing listens is a network failure that says so', async () => {
    const server = await startServer(() => {});
    const { baseUrl, port } = server;
    const probe = createServer();
    await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
    const free = (probe.address() as AddressInfo).port;
    await new Promise((resolve) => probe.close(resolve));
    const reply = await send(openProvider(baseUrl.replace(String(port), String(free))));
    expect(reply).toMatchObject({ failure: { kind: 'network', code: 'ECONNREFUSED', isUnsent: true } });
    expect('failure' in reply && reply.failure.message).toMatch(
      /^Nothing accepts connections there: http:\/\/127\.0\.0\.1:\d+ \(/,
    );
  });

  it('a host name that nobody knows is a network failure that says so', async () => {
    const reply = await send(openProvider('http://no-such-host.invalid/v1'));
    expect(reply).toMatchObject({
      failure: { kind: 'network', code: expect.stringMatching(/^(?:ENOTFOUND|EAI_AGAIN)$/), isUnsent: true },
    });
  });

  it('a plain server behind https is a network failure', async () => {
    const server = await startRawServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const reply = await send(openProvider(server.baseUrl.replace('http:', 'https:')));
    expect(reply).toMatchObject({ ok: false, failure: { kind: 'network', isUnsent: true } });
  });

  it.each([
    ['resets', (socket: Socket) => socket.resetAndDestroy()],
    ['closes', (socket: Socket) => socket.end()],
  ])(
    'a server that %s in the midst of the TLS handshake has seen nothing of the request',
    async (_how, act) => {
      const server = await startRawServer(act);
      const reply = await send(openProvider(server.baseUrl.replace('http:', 'https:')));
      expect(reply).toMatchObject({ ok: false, failure: { kind: 'network', isUnsent: true } });
    },
  );

  it('a connection that is reset once the request is on its way leaves it in doubt', async () => {
    const server = await startRawServer((socket) => socket.resetAndDestroy());
    const reply = await send(openProvider(server.baseUrl));
    expect(reply).toMatchObject({ ok: false, failure: { kind: 'network', code: 'ECONNRESET' } });
    expect('failure' in reply && reply.failure.isUnsent).toBeUndefined();
  });
});

describe('times of a connection', () => {
  it('cut a call off whose headers, or the rest of whose body, do not come', async () => {
    const silent = await startRawServer(() => undefined);
    const half = await startRawServer((socket) => socket.write(`${JSON_HEAD}content-length: 100\r\n\r\n{`));
    const times = { ...USUAL_TIMES, headersTimeoutMs: 20, bodyTimeoutMs: 20 };
    const replies = await Promise.all(
      [silent, half].map(({ baseUrl }) => send(openProvider(baseUrl, { times }))),
    );
    expect(replies).toMatchObject([
      { ok: false, failure: { kind: 'timeout', code: 'UND_ERR_HEADERS_TIMEOUT' } },
      { ok: false, failure: { kind: 'timeout', code: 'UND_ERR_BODY_TIMEOUT' } },
    ]);
  });
});

describe('what is asked of the transport', () => {
  it('goes to the configured origin only', async () => {
    const server = await startServer((_request, response) => answerJson(response, completionText()));
    const elsewhere = await startServer((_request, response) => answerJson(response, completionText()));
    const transport = createTransport({
      baseUrl: new URL(server.baseUrl),
      maxConnections: 1,
      maxResponseBytes: 1_000,
      bodyRoom: new BodyRoom(),
      proxy: null,
      times: USUAL_TIMES,
    });
    onTestFinished(() => transport.close());
    const get = (url: string) =>
      transport.send({ method: 'GET', url: new URL(url), headers: [] }, null, null).response;
    await expect(get(`${elsewhere.baseUrl}/models`)).rejects.toMatchObject({ code: 'FOREIGN_ORIGIN' });
    const { content } = await get(`${server.baseUrl}/models?limit=1`);
    expect(JSON.parse(content)).toMatchObject({ model: 'm-1' });
    expect(server.requests.map(({ method, url }) => `${method} ${url}`)).toEqual(['GET /v1/models?limit=1']);
    expect(elsewhere.requests).toHaveLength(0);
  });
});

describe('redirects', () => {
  it.each([301, 302, 303, 307, 308])('are not followed (%i)', async (status) => {
    const elsewhere = await startServer((_request, response) => answerJson(response, completionText()));
    const server = await startServer((_request, response) => {
      response.writeHead(status, { location: `${elsewhere.baseUrl}/chat/completions` }).end();
    });
    const reply = await send(openProvider(server.baseUrl));
    expect(reply).toMatchObject({ ok: false, failure: { kind: 'not_found', httpStatus: status } });
    expect('failure' in reply && reply.failure.message).toContain(`http://127.0.0.1:${elsewhere.port} `);
    expect(elsewhere.requests).toHaveLength(0);
  });
});

describe('bodies', () => {
  it.each<[string, string, (text: string) => Buffer]>([
    ['gzip', 'gzip', gzipSync],
    ['gzip under its old name', 'X-GZip', gzipSync],
    ['deflate', 'deflate', deflateSync],
    ['deflate without its wrapper', 'deflate', deflateRawSync],
    ['brotli', 'br', brotliCompressSync],
    ['two in a row', 'gzip, br', (text) => brotliCompressSync(gzipSync(text))],
    ['none', 'identity', (text) => Buffer.from(text)],
  ])('are unpacked: %s', async (_what, encoding, pack) => {
    const server = await startServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding });
      response.end(pack(completionText('grüße')));
    });
    expect(await send(openProvider(server.baseUrl))).toMatchObject({ ok: true, parts: [{ text: 'grüße' }] });
  });

  it('are unpacked in errors too', async () => {
    const server = await startServer((_request, response) => {
      response.writeHead(400, { 'content-encoding': 'gzip' }).end(gzipSync('{"error":{"message":"bad"}}'));
    });
    expect(await send(openProvider(server.baseUrl))).toMatchObject({ failure: { message: 'bad' } });
  });

  it.each<[string, string, Buffer]>([
    ['cut short', 'gzip', gzipSync(completionText()).subarray(0, 60)],
    ['no gzip at all', 'gzip', Buffer.from(completionText())],
    ['neither kind of deflate', 'deflate', Buffer.from(completionText())],
    ['packed in a way nobody asked for', 'compress', Buffer.from('?')],
  ])('that are %s are a network failure', async (_what, encoding, bytes) => {
    const server = await startServer((_request, response) => {
      response.writeHead(200, { 'content-encoding': encoding }).end(bytes);
    });
    expect(await send(openProvider(server.baseUrl))).toMatchObject({
      failure: { kind: 'network', code: 'BAD_CONTENT_ENCODING' },
    });
  });

  it('may begin with a byte order mark and come in many pieces', async () => {
    const bytes = Buffer.from(`\ufeff${completionText('grüße 😀')}`);
    const server = await startServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const next = (position: number): void => {
        if (position >= bytes.length) response.end();
        else response.write(bytes.subarray(position, position + 1), () => setImmediate(next, position + 1));
      };
      next(0);
    });
    expect(await send(openProvider(server.baseUrl))).toMatchObject({
      ok: true,
      parts: [{ text: 'grüße 😀' }],
    });
  });

  it.each<[string, (socket: Socket) => void]>([
    ['by their announced length', (socket) => socket.write(`${JSON_HEAD}content-length: 5000\r\n\r\n{`)],
    ['as they come', (socket) => socket.write(`${JSON_HEAD}\r\n${' '.repeat(5_000)}`)],
    [
      'when unpacked',
      (socket) => {
        const packed = gzipSync(' '.repeat(5_000));
        socket.write(`${JSON_HEAD}content-encoding: gzip\r\ncontent-length: ${packed.length}\r\n\r\n`);
        socket.write(packed);
      },
    ],
  ])('over the limit are refused %s', async (_when, answer) => {
    const server = await startRawServer(answer);
    expect(await send(openProvider(server.baseUrl, { maxResponseBytes: 1_000 }))).toMatchObject({
      ok: false,
      failure: { kind: 'bad_output', code: 'RESPONSE_TOO_LARGE' },
    });
  });
});

describe('connections', () => {
  it('are never more than the cap, all in use at once, and used again', async () => {
    const held: (() => void)[] = [];
    const server = await startServer((_request, response) => {
      held.push(() => answerJson(response, completionText()));
      if (held.length === 3) for (const answer of held.splice(0)) answer();
    });
    const provider = openProvider(server.baseUrl, { maxConnections: 3 });
    const replies = await Promise.all(Array.from({ length: 60 }, () => send(provider)));
    expect(replies.every((reply) => reply.ok)).toBe(true);
    expect(server.requests).toHaveLength(60);
    expect(server.peakSockets()).toBe(3);
  });

  it('that were cut off make room for new ones, within the cap', async () => {
    let answering = false;
    const server = await startServer((_request, response) => {
      if (answering) answerJson(response, completionText());
    });
    const provider = openProvider(server.baseUrl, { maxConnections: 2 });
    const stop = new AbortController();
    const cut = [1, 2, 3].map(() => send(provider, { signal: stop.signal }));
    await until(() => server.requests.length === 2);
    stop.abort();
    const aborted = { ok: false, aborted: true };
    expect(await Promise.all(cut)).toEqual([aborted, aborted, { ...aborted, isUnsent: true }]);
    answering = true;
    const replies = await Promise.all(Array.from({ length: 6 }, () => send(provider)));
    expect(replies.every((reply) => reply.ok)).toBe(true);
    expect(server.requests).toHaveLength(8);
    expect(server.peakSockets()).toBeLessThanOrEqual(4);
  });
});

it.each([
  ['localhost', true],
  ['api.localhost', true],
  ['127.0.0.1', true],
  ['127.8.9.10', true],
  ['[::1]', true],
  ['0.0.0.0', true],
  ['127.0.0.1.example.test', false],
  ['notlocalhost', false],
  ['10.0.0.1', false],
])('%s is this machine: %s', (hostname, expected) => {
  expect(isLoopback(hostname)).toBe(expected);
});
