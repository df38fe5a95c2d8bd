/** A look at a server: is it there, does it take the key, which models does it know. */
import { describe, expect, it } from 'vitest';
import type { Provider, ProviderProbe, SendOptions } from '../../../src/provider/provider.js';
import {
  answerJson,
  manualClock,
  openProvider,
  SECRET,
  startRawServer,
  startServer,
  until,
} from './loopback.js';

function probe(provider: Provider, options: Partial<SendOptions> = {}): Promise<ProviderProbe> {
  return provider.probe({ timeoutMs: 60_000, signal: new AbortController().signal, ...options });
}

async function probeOf(text: string, status = 200, headers = {}): Promise<ProviderProbe> {
  const { baseUrl } = await startServer((_, response) => answerJson(response, text, status, headers));
  return probe(openProvider(baseUrl));
}

describe('a probe', () => {
  it('asks for the models with the key, and sends no document', async () => {
    const server = await startServer((_, response) =>
      answerJson(response, '{"object":"list","data":[{"id":"m-1"},{"id":"m-2"}]}'),
    );
    const provider = openProvider(`${server.baseUrl}?api-version=1`);
    expect(await probe(provider)).toEqual({ outcome: 'listed', models: ['m-1', 'm-2'], hints: {} });
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]).toMatchObject({ method: 'GET', url: '/v1/models?api-version=1' });
    expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${SECRET}`);
    expect(server.requests[0]?.body).toHaveLength(0);
  });

  it.each([
    ['a bare list', '[{"id":"m-1"},{"id":""},{"name":"m-2"},7]', ['m-1', 'm-2']],
    ['a list called models', '{"models":["m-1"]}', ['m-1']],
    ['an empty list', '{"data":[]}', []],
  ])('understands %s', async (_, text, models) => {
    expect(await probeOf(text)).toMatchObject({ outcome: 'listed', models });
  });

  it.each([404, 405, 501])('takes HTTP %i for a server that keeps no list', async (status) => {
    expect(await probeOf('{"error":{"message":"no such route"}}', status)).toMatchObject({
      outcome: 'unlisted',
    });
  });

  it.each(['{"status":"ok"}', 'Ollama is running', ''])('takes %j for no list', async (text) => {
    expect(await probeOf(text)).toMatchObject({ outcome: 'unlisted' });
  });

  it('tells what the headers say of limits, whatever the answer', async () => {
    const headers = { 'x-ratelimit-limit-requests': '500', 'x-ratelimit-remaining-requests': '499' };
    const hints = { requests: { limit: 500, remaining: 499 } };
    expect(await probeOf('{"data":[]}', 200, headers)).toMatchObject({ outcome: 'listed', hints });
    expect(await probeOf('{}', 404, headers)).toMatchObject({ outcome: 'unlisted', hints });
    expect(await probeOf('{}', 429, headers)).toMatchObject({ outcome: 'failed', hints });
  });

  it.each([
    [401, '{"error":{"message":"Incorrect API key provided: KEY","code":"invalid_api_key"}}', 'auth'],
    [403, '{"error":{"message":"KEY may not do this"}}', 'auth'],
    [
      429,
      '{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}',
      'quota_exhausted',
    ],
    [500, '{"error":{"message":"oops"}}', 'overloaded'],
  ])(
    'tells a refusal with HTTP %i by its kind, and hides the key that it quotes',
    async (status, text, kind) => {
      const found = await probeOf(text.replaceAll('KEY', SECRET), status);
      expect(found).toMatchObject({ outcome: 'failed', failure: { kind, httpStatus: status } });
      expect(JSON.stringify(found)).not.toContain(SECRET.slice(0, 12));
    },
  );

  it('tells a web page from a list of models', async () => {
    const found = await probeOf('<!doctype html><title>Sign in to the hotel</title>');
    expect(found).toMatchObject({ outcome: 'failed', failure: { kind: 'network' } });
    expect(JSON.stringify(found)).toContain('Sign in to the hotel');
  });

  it('does not follow a redirect', async () => {
    const found = await probeOf('', 302, { location: 'https://example.com/v1/models' });
    expect(found).toMatchObject({ outcome: 'failed' });
    expect(JSON.stringify(found)).toContain('https://example.com');
  });

  it('tells a server that is not there', async () => {
    const gone = await startServer(() => undefined);
    const provider = openProvider(gone.baseUrl.replace(String(gone.port), '9'));
    expect(await probe(provider)).toMatchObject({ outcome: 'failed', failure: { kind: 'network' } });
  });

  it('gives up at its deadline, body included', async () => {
    const clock = manualClock();
    const { baseUrl } = await startRawServer((socket) =>
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"data"'),
    );
    const probed = probe(openProvider(baseUrl, { clock }), { timeoutMs: 5_000 });
    await until(() => clock.pending() === 1);
    clock.fire();
    expect(await probed).toMatchObject({ outcome: 'failed', failure: { kind: 'timeout' } });
    expect(clock.pending()).toBe(0);
  });

  it('can be cut off, before and while it waits', async () => {
    const server = await startServer(() => undefined);
    const provider = openProvider(server.baseUrl);
    const leave = new AbortController();
    const probed = probe(provider, { signal: leave.signal });
    await until(() => server.requests.length === 1);
    leave.abort();
    expect(await probed).toEqual({ outcome: 'aborted' });
    expect(await probe(provider, { signal: leave.signal })).toEqual({ outcome: 'aborted' });
    expect(server.requests).toHaveLength(1);
  });
});
