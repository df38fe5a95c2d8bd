import { getEventListeners } from 'node:events';
import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { createOpenAIProvider } from '../../../src/provider/openai/client.js';
import {
  answerJson,
  BODY,
  completionText,
  manualClock,
  openProvider,
  SECRET,
  send,
  startRawServer,
  startServer,
  until,
} from './loopback.js';

function setEnvironment(values: Record<string, string>): void {
  const before = Object.fromEntries(Object.keys(values).map((name) => [name, process.env[name]]));
  Object.assign(process.env, values);
  onTestFinished(() => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
}

describe('a call', () => {
  it('sends the body as these very characters and only the headers that are needed', async () => {
    const server = await startServer((_request, response) => answerJson(response, completionText()));
    const provider = openProvider(server.baseUrl);
    const bodyJson = '{ "model":"m", "n": 12345678901234567890, "messages":[{"content":"grüße 😀"}] }';
    await provider.send(
      { endpoint: 'chat', parts: 1, bodyJson },
      { timeoutMs: 60_000, signal: new AbortController().signal },
    );
    const [request] = server.requests;
    expect(request?.body.toString('utf8')).toBe(bodyJson);
    expect(request?.method).toBe('POST');
    expect(request?.url).toBe('/v1/chat/completions');
    expect(request?.headers).toEqual({
      host: `127.0.0.1:${server.port}`,
      connection: 'keep-alive',
      accept: 'application/json',
      authorization: `Bearer ${SECRET}`,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(bodyJson)),
      'user-agent': 'llm-batch',
    });
  });

  it('brings the answer back', async () => {
    const server = await startServer((_request, response) =>
      answerJson(response, completionText('a\u0000b\ud800c'), 200, {
        'x-request-id': 'req_1',
        'x-ratelimit-remaining-tokens': '900',
      }),
    );
    expect(await send(openProvider(server.baseUrl))).toEqual({
      ok: true,
      parts: [
        {
          ok: true,
          outputJson: JSON.stringify('a\u0000b\ud800c'),
          text: 'a\u0000b\ud800c',
          finishReason: 'stop',
          responseJson: completionText('a\u0000b\ud800c'),
        },
      ],
      model: 'm-1',
      usage: { inputTokens: 5, outputTokens: 1, cachedTokens: 0, reasoningTokens: 0, answeredBy: 'm-1' },
      costMicroUsd: null,
      httpStatus: 200,
      requestId: 'req_1',
      hints: { tokens: { remaining: 900 } },
    });
  });

  it('brings the limits back from a refusal too', async () => {
    const server = await startServer((_request, response) =>
      answerJson(response, '{"error":{"message":"Slow down","code":"slow_down"}}', 429, {
        'retry-after': '3',
        'x-ratelimit-limit-requests': '60',
        'x-ratelimit-remaining-requests': '0',
      }),
    );
    expect(await send(openProvider(server.baseUrl))).toEqual({
      ok: false,
      failure: {
        kind: 'rate_limited',
        message: 'Slow down',
        httpStatus: 429,
        code: 'slow_down',
        retryAfterMs: 3_000,
      },
      usage: null,
      costMicroUsd: null,
      hints: { requests: { limit: 60, remaining: 0 } },
    });
  });

  it('is made once, whatever the server answers', async () => {
    const server = await startServer((_request, response) =>
      answerJson(response, '{}', 503, { 'retry-after': '0', 'x-should-retry': 'true' }),
    );
    await send(openProvider(server.baseUrl));
    expect(server.requests).toHaveLength(1);
  });

  it('takes nothing from OPENAI_* variables', async () => {
    setEnvironment({
      OPENAI_BASE_URL: 'http://127.0.0.1:1/v1',
      OPENAI_API_KEY: 'sk-from-the-environment',
      OPENAI_ADMIN_KEY: 'sk-admin-from-the-environment',
      OPENAI_ORG_ID: 'org-1',
      OPENAI_PROJECT_ID: 'proj-1',
      OPENAI_LOG: 'debug',
      OPENAI_CUSTOM_HEADERS: 'x-custom: 1\nAuthorization: Bearer other',
    });
    const printed = (['log', 'info', 'warn', 'error', 'debug'] as const).map((name) =>
      vi.spyOn(console, name),
    );
    const server = await startServer((_request, response) => answerJson(response, completionText()));
    expect(await send(openProvider(server.baseUrl))).toMatchObject({ ok: true });
    for (const spy of printed) {
      expect(spy).not.toHaveBeenCalled();
      spy.mockRestore();
    }
    const headers = server.requests[0]?.headers ?? {};
    expect(Object.keys(headers).sort()).toEqual([
      'accept',
      'authorization',
      'connection',
      'content-length',
      'content-type',
      'host',
      'user-agent',
    ]);
    expect(headers.authorization).toBe(`Bearer ${SECRET}`);
  });

  it.each([
    ['a path', '/openai/v1', '/openai/v1/chat/completions'],
    ['a slash at the end', '/v1/', '/v1/chat/completions'],
    ['no path', '', '/chat/completions'],
    ['a query', '/v1?api-version=2026-01-01', '/v1/chat/completions?api-version=2026-01-01'],
  ])('goes to the right address below a base URL with %s', async (_what, suffix, path) => {
    const server = await startServer((_request, response) => answerJson(response, completionText()));
    await send(openProvider(`http://127.0.0.1:${server.port}${suffix}`));
    expect(server.requests[0]?.url).toBe(path);
  });

  it('sends no Authorization where there is no key, and a key without the white space around it', async () => {
    const server = await startServer((_request, response) => answerJson(response, completionText()));
    await send(openProvider(server.baseUrl, { apiKey: null }));
    await send(openProvider(server.baseUrl, { apiKey: ' \n' }));
    await send(openProvider(server.baseUrl, { apiKey: `${SECRET}\n` }));
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      undefined,
      undefined,
      `Bearer ${SECRET}`,
    ]);
  });
});

describe('the deadline', () => {
  it.each<[string, string]>([
    ['headers that never come', ''],
    [
      'a body that never comes',
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n',
    ],
    [
      'a body that stops half way',
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"choic',
    ],
    ['an error whose body never comes', 'HTTP/1.1 500 Oops\r\ncontent-length: 99\r\n\r\n'],
  ])('covers %s', async (_what, bytes) => {
    let asked = false;
    const server = await startRawServer((socket) => {
      asked = true;
      socket.write(bytes);
    });
    const clock = manualClock();
    const reply = send(openProvider(server.baseUrl, { clock }), { timeoutMs: 2_000 });
    await until(() => asked);
    clock.fire();
    expect(await reply).toEqual({
      ok: false,
      failure: { kind: 'timeout', message: 'No complete answer within 2 s' },
      usage: null,
      costMicroUsd: null,
      hints: {},
    });
    await until(() => server.closedSockets() === 1);
  });

  it('covers a body that drips for ever', async () => {
    const server = await startServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const drip = (): void => {
        if (!response.destroyed) response.write(' ', () => setImmediate(drip));
      };
      drip();
    });
    const reply = await send(openProvider(server.baseUrl), { timeoutMs: 50 });
    expect(reply).toMatchObject({ ok: false, failure: { kind: 'timeout' } });
  });

  it('covers the wait for a connection, and a call cut off then is never sent', async () => {
    const answers: (() => void)[] = [];
    const server = await startServer((_request, response) => {
      answers.push(() => answerJson(response, completionText()));
    });
    const provider = openProvider(server.baseUrl, { maxConnections: 1 });
    const first = send(provider);
    await until(() => answers.length === 1);
    const stop = new AbortController();
    const waiting = send(provider, { signal: stop.signal });
    stop.abort();
    expect(await waiting).toEqual({ ok: false, aborted: true, isUnsent: true });
    const late = await send(provider, { timeoutMs: 20 });
    expect(late).toMatchObject({ failure: { kind: 'timeout', isUnsent: true } });
    answers[0]?.();
    expect(await first).toMatchObject({ ok: true });
    const third = send(provider);
    await until(() => answers.length === 2);
    answers[1]?.();
    expect(await third).toMatchObject({ ok: true });
    expect(server.requests).toHaveLength(2);
  });
});

describe('our own signal', () => {
  it.each<[string, string]>([
    ['before the headers', ''],
    [
      'during the body',
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"ch',
    ],
  ])('cuts a call off %s', async (_when, bytes) => {
    let asked = false;
    const server = await startRawServer((socket) => {
      asked = true;
      socket.write(bytes);
    });
    const stop = new AbortController();
    const reply = send(openProvider(server.baseUrl), { signal: stop.signal });
    await until(() => asked);
    stop.abort();
    expect(await reply).toEqual({ ok: false, aborted: true });
    await until(() => server.closedSockets() === 1);
  });

  it('sends nothing when it was given already', async () => {
    const server = await startServer((_request, response) => answerJson(response, completionText()));
    expect(await send(openProvider(server.baseUrl), { signal: AbortSignal.abort() })).toEqual({
      ok: false,
      aborted: true,
      isUnsent: true,
    });
    expect(server.requests).toHaveLength(0);
  });

  it('is left as it was: no listener, no timer stays behind', async () => {
    let status = 200;
    const server = await startServer((_request, response) => answerJson(response, completionText(), status));
    const clock = manualClock();
    const provider = openProvider(server.baseUrl, { clock });
    const { signal } = new AbortController();
    for (status of [200, 500, 200]) {
      await Promise.all(Array.from({ length: 5 }, () => send(provider, { signal })));
    }
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    expect(clock.pending()).toBe(0);
  });
});

describe('closing', () => {
  it('cuts open calls off, drops the connections, and takes no more', async () => {
    const server = await startServer(() => {});
    const provider = openProvider(server.baseUrl);
    const open = send(provider);
    await until(() => server.requests.length === 1);
    await provider.close();
    expect(await open).toEqual({ ok: false, aborted: true });
    expect(await send(provider)).toEqual({ ok: false, aborted: true, isUnsent: true });
    await until(() => server.openSockets.size === 0);
  });
});

describe('the key', () => {
  it.each<[string, number, string, Record<string, string>]>([
    [
      'a 401 that quotes it',
      401,
      `{"error":{"message":"Incorrect API key provided: ${SECRET}","code":"invalid_api_key"}}`,
      {},
    ],
    [
      'a 401 that masks it',
      401,
      '{"error":{"message":"Incorrect API key provided: sk-live****************3Vd6"}}',
      {},
    ],
    ['a page that quotes it', 502, `<html><title>${SECRET}</title></html>`, { 'content-type': 'text/html' }],
    ['a 200 that quotes it', 200, `{"error":{"code":401,"message":"bad ${SECRET}"}}`, {}],
    ['a 200 that is no JSON', 200, `authorization was ${SECRET}`, {}],
    ['a redirect that carries it', 302, '', { location: `http://127.0.0.1/?key=${SECRET}` }],
    ['a request id', 500, '{}', { 'x-request-id': SECRET }],
  ])('does not come out of %s', async (_what, status, text, headers) => {
    const server = await startServer((_request, response) => answerJson(response, text, status, headers));
    const provider = openProvider(server.baseUrl);
    const reply = await send(provider);
    expect(reply.ok).toBe(false);
    for (const shown of [JSON.stringify(reply), inspect(reply, { depth: null, showHidden: true })]) {
      expect(shown).not.toMatch(/Zq7Lm|c3Vd6|3Vd6/);
    }
    expect(inspect(provider, { depth: null, showHidden: true })).not.toContain('Zq7Lm');
  });

  it('is refused, unquoted, when no header can carry it', () => {
    const options = { baseUrl: 'http://127.0.0.1:1/v1', maxConnections: 1, clock: systemClock };
    for (const apiKey of ['two words', 'line\nbreak', 'schlüssel']) {
      expect(() => createOpenAIProvider({ ...options, apiKey })).toThrow(
        expect.objectContaining({ code: 'API_KEY_INVALID', message: expect.not.stringContaining(apiKey) }),
      );
    }
  });
});

describe('a base URL', () => {
  it.each([
    ['that is none', 'api.openai.com/v1', 'BASE_URL_INVALID'],
    ['of another kind', 'ftp://example.test/v1', 'BASE_URL_INVALID'],
    ['with a password', 'https://me:hunter2hunter2@example.test/v1', 'BASE_URL_CREDENTIALS'],
  ])('%s is refused', (_what, baseUrl, code) => {
    const open = () => createOpenAIProvider({ baseUrl, apiKey: null, maxConnections: 1, clock: systemClock });
    expect(open).toThrow(
      expect.objectContaining({ code, message: expect.not.stringContaining('hunter2'), exitCode: 2 }),
    );
  });

  it('with a key in its query keeps that key out of messages', async () => {
    const server = await startServer((_request, response) => {
      answerJson(response, `{"detail":"no key ${SECRET}"}`, 404);
    });
    const reply = await send(openProvider(`${server.baseUrl}?api_key=${SECRET}`, { apiKey: null }));
    expect(server.requests[0]?.url).toContain(SECRET);
    expect(JSON.stringify(reply)).not.toContain('Zq7Lm');
  });
});

it('sends the same body for the same request', async () => {
  const server = await startServer((_request, response) => answerJson(response, completionText()));
  const provider = openProvider(server.baseUrl);
  await send(provider);
  await send(provider);
  expect(server.requests.map(({ body }) => body.toString())).toEqual([BODY, BODY]);
});
