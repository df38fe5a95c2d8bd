import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { LlmBatchError } from '../../src/core/errors.js';
import type { SimulatorOptions } from '../../src/simulator/options.js';
import { startSimulator } from '../../src/simulator/simulator.js';
import { FakeClock } from '../support/fake-clock.js';
import { waitFor } from '../support/wait-for.js';
import { ask, chatBody, json, open, send, simulate } from './raw-call.js';

describe('requests', () => {
  it.each([
    ['no JSON', '{"model":', null],
    ['no object', '[]', null],
    ['no model', { messages: [{ role: 'user', content: 'x' }] }, null],
    ['no messages', { model: 'm' }, 'messages'],
    ['messages that are no list', { model: 'm', messages: 'x' }, 'messages'],
    ['no message', { model: 'm', messages: [] }, 'messages'],
    ['a message without a role', { model: 'm', messages: [{ content: 'x' }] }, 'messages[0].role'],
    ['a stream', chatBody('x', { stream: true }), 'stream'],
    ['several choices', chatBody('x', { n: 2 }), 'n'],
  ])('with %s are refused with 400', async (_what, body, param) => {
    const simulator = await simulate();
    const reply = await send(simulator, body);
    expect(reply.status).toBe(400);
    expect(json(reply).error).toMatchObject({ type: 'invalid_request_error', param });
    expect(simulator.books()).toMatchObject({ calls: 1, accepted: 0, refusedByStatus: { 400: 1 } });
  });

  it.each([
    { type: 'text', text: 'x' },
    { type: 'image_url', image_url: { url: 'https://example.com/cat.png' } },
    { type: 'image_url', image_url: { url: 'data:image/webp;base64,UklGRg==' } },
    { type: 'file', file: { filename: 'x.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
  ])('with a part %j are answered', async (part) => {
    const body = { model: 'm', messages: [{ role: 'user', content: [part] }] };
    expect((await send(await simulate(), body)).status).toBe(200);
  });

  it.each([
    'x',
    { text: 'x' },
    { type: 'image_url' },
    { type: 'image_url', image_url: { url: 'photos/cat.png' } },
    { type: 'image_url', image_url: { url: 'data:image/bmp;base64,Qk0=' } },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,' } },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO… (cat.png)' } },
    { type: 'file', file: { filename: 'x.pdf' } },
    { type: 'file', file: { file_data: 'JVBERi0=' } },
    { type: 'hologram' },
  ])('with a part %j are refused with 400 that says where it is', async (part) => {
    const simulator = await simulate();
    const content = [{ type: 'text', text: 'x' }, part];
    const reply = await send(simulator, { model: 'm', messages: [{ role: 'user', content }] });
    expect(reply.status).toBe(400);
    expect(json(reply).error).toMatchObject({ param: expect.stringContaining('messages[0].content[1]') });
  });

  it('of 5 MB come through whole', async () => {
    const simulator = await simulate();
    const text = 'long '.repeat(1_000_000);
    expect(json(await ask(simulator, text)).usage.prompt_tokens).toBe(1_250_000 + 6);
  });

  it.each([
    ['POST', '/v1/images/generations'],
    ['GET', '/v1/chat/completions'],
    ['POST', '/chat/completions'],
    ['GET', '/'],
  ])("%s %s is 404 in OpenAI's shape", async (method, path) => {
    const reply = await send(await simulate(), chatBody('x'), { method, path });
    expect(reply.status).toBe(404);
    expect(json(reply).error).toMatchObject({ message: `Invalid URL (${method} ${path})`, code: null });
  });

  it('know every model, or those listed', async () => {
    const any = await simulate();
    const some = await simulate({ models: ['gpt-4o-mini', 'qwen/qwen3'] });
    const get = (simulator: typeof any, path: string) => send(simulator, '', { method: 'GET', path });
    expect((await get(any, '/v1/models/whatever')).status).toBe(200);
    const { data } = json(await get(some, '/v1/models'));
    expect(data.map(({ id }: { id: string }) => id)).toEqual(['gpt-4o-mini', 'qwen/qwen3']);
    expect((await get(some, '/v1/models/qwen/qwen3')).status).toBe(200);
    expect(json(await get(some, '/v1/models/other')).error.code).toBe('model_not_found');
    expect((await send(some, chatBody('x', { model: 'other' }))).status).toBe(404);
    expect((await ask(some, 'x')).status).toBe(200);
  });

  it('for models need a good key as well', async () => {
    const simulator = await simulate({ keys: [{ key: 'sk-good' }] });
    const models = { method: 'GET', path: '/v1/models' };
    expect((await send(simulator, '', { ...models, key: 'sk-bad' })).status).toBe(401);
    expect((await send(simulator, '', { ...models, key: 'sk-good' })).status).toBe(200);
  });
});

describe('reconfiguration over HTTP', () => {
  const path = '/simulator/reconfigure';

  it('lays options over those in force', async () => {
    const simulator = await simulate({ rpm: 1 });
    expect((await send(simulator, { tpm: 10_000 }, { path })).status).toBe(200);
    const { headers } = await ask(simulator, 'x');
    expect(headers).toMatchObject({ 'x-ratelimit-limit-requests': '1', 'x-ratelimit-limit-tokens': '10000' });
  });

  it.each([
    [{ rpn: 5 }, 'The simulator has no option "rpn".'],
    [{ rpm: 0 }, 'The simulator\'s option "rpm" must be a whole number above zero.'],
    [{ logFile: '/etc/passwd' }, 'The simulator\'s option "logFile" is fixed once it runs.'],
    ['[1]', 'The options are not a JSON object.'],
  ])('refuses %j and changes nothing', async (changes, message) => {
    const simulator = await simulate();
    const reply = await send(simulator, changes, { path });
    expect(reply.status).toBe(400);
    expect(json(reply).error.message).toBe(message);
    expect((await ask(simulator, 'x')).headers['x-ratelimit-limit-requests']).toBeUndefined();
  });
});

describe('options', () => {
  it.each<[string, SimulatorOptions]>([
    ['port', { port: 70_000 }],
    ['latencyMs', { latencyMs: { min: 5, max: 1 } }],
    ['latencyMs', { latencyMs: Number.NaN }],
    ['outputTokens', { outputTokens: 1.5 }],
    ['enforceOverMs', { enforceOverMs: 60_001 }],
    ['errorRate', { errorRate: { '500': 0.6, '503': 0.6 } }],
    ['errorRate', { errorRate: { explode: 0.1 } }],
    ['errorRate', { errorRate: { '500-then-ok': 0.1 } }],
    ['outage', { outage: { fault: 'explode' } }],
    ['keys', { keys: [] }],
    ['retryAfter', { retryAfter: -1 }],
  ])('%s out of bounds is a usage error that names it', async (name, options) => {
    const starting = startSimulator(options, { clock: new FakeClock() });
    await expect(starting).rejects.toMatchObject({ code: 'SIMULATOR_OPTION', exitCode: 2 });
    await expect(starting).rejects.toThrow(`"${name}" must be`);
  });

  it('a field unknown inside an option is refused too', async () => {
    const options = { outage: { fault: '503', forSeconds: 3 } } as unknown as SimulatorOptions;
    await expect(startSimulator(options, { clock: new FakeClock() })).rejects.toThrow(LlmBatchError);
  });

  it('a port in use is a usage error', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await waitFor('the port to be taken', () => other.listening);
    const { port } = other.address() as AddressInfo;
    await expect(startSimulator({ port }, { clock: new FakeClock() })).rejects.toMatchObject({
      code: 'SIMULATOR_PORT',
      exitCode: 2,
    });
    other.close();
  });
});

describe('closing', () => {
  it('cuts open calls and idle connections, stops timers and frees the port', async () => {
    const clock = new FakeClock();
    const simulator = await simulate({}, clock);
    await ask(simulator, 'leaves an idle connection');
    const calls = ['[[simulate:hang]]', '[[simulate:drip]]', '[[simulate:slow 1000000]]'].map((text) =>
      open(simulator, chatBody(text)),
    );
    await waitFor('the calls to be under way', () => simulator.books().accepted === 4);
    await simulator.close();
    for (const { reply } of calls) expect((await reply).brokenBy).not.toBeNull();
    await waitFor('the timers to end', () => clock.pendingTimers === 0);
    expect(simulator.books()).toMatchObject({ openCalls: 0, answered: 1, abandoned: 3 });
    const successor = await startSimulator({ port: simulator.port }, { clock });
    expect(successor.port).toBe(simulator.port);
    await successor.close();
  });

  it('may be asked for twice', async () => {
    const simulator = await simulate();
    await Promise.all([simulator.close(), simulator.close()]);
  });

  it('leaves no socket behind', async () => {
    const sockets = (): string[] =>
      process.getActiveResourcesInfo().filter((name) => name === 'TCPServerWrap' || name === 'TCPSocketWrap');
    await waitFor('what other tests opened to be gone', () => sockets().length === 0);
    const simulator = await simulate();
    await Promise.all(Array.from({ length: 20 }, (_, index) => ask(simulator, `${index}`)));
    // The listener and its end of every kept connection; idle ends of the client may count or not.
    expect(sockets().length).toBeGreaterThanOrEqual(21);
    await simulator.close();
    await waitFor('every socket to be gone', () => sockets().length === 0);
  });
});
