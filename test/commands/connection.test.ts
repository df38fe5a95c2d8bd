/** Where keys go, and what documents may not change about it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkConnection, connect, plainHttpNotice } from '../../src/app/composition.js';
import type { CommandContext } from '../../src/app/context.js';
import { Interrupts } from '../../src/app/interrupts.js';
import { runSettingsFrom } from '../../src/commands/asked-settings.js';
import { resolveSettings } from '../../src/config/load.js';
import { systemClock } from '../../src/core/clock.js';
import type { RunSettings } from '../../src/runs/run-settings.js';

const KEY = 'a-plain-key-of-a-gateway';

function contextWith(environment: Record<string, string>): CommandContext {
  return {
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    environment,
    takeSecret: (name) => environment[name],
    workingFolder: '/',
    processId: 1,
    hostName: 'here',
    clock: systemClock,
    random: () => 0,
    interrupts: new Interrupts(systemClock),
  };
}

function settingsAt(baseUrl: string): Promise<RunSettings> {
  const resolved = resolveSettings({ flags: { baseUrl }, environment: {}, file: {} });
  return runSettingsFrom(
    resolved,
    { inputs: ['docs.jsonl'], parameters: {}, simulate: false, output: undefined },
    '/',
  );
}

describe('a base URL', () => {
  it.each([
    ['in its query', 'https://gateway.example/v1?api_key=x'],
    ['in its fragment', 'https://gateway.example/v1#token=x'],
    ['in its path', `https://gateway.example/${KEY}/v1`],
    ['in its path, escaped', `https://gateway.example/%61${KEY.slice(1)}/v1`],
    ['in its path, of whomever', 'https://gateway.example/sk-proj-0123456789abcdefghij/v1'],
    ['in its fragment, bare', 'https://gateway.example/v1#sk-proj-0123456789abcdefghij'],
  ])('is refused with a key %s, and the key is not told', async (_where, baseUrl) => {
    const settings = await settingsAt(baseUrl);
    const check = () => checkConnection(settings, contextWith({ OPENAI_API_KEY: KEY }));
    expect(check).toThrow(expect.objectContaining({ code: 'BASE_URL_CREDENTIALS' }));
    expect(check).not.toThrow(/gateway-key|a-plain-key|sk-proj/);
  });

  it.each(['https://gateway.example/openai/v1', 'https://gateway.example/v1/accounts/8f3c/gateways/main'])(
    'without one is taken: %s',
    async (baseUrl) => {
      const settings = await settingsAt(baseUrl);
      checkConnection(settings, contextWith({ OPENAI_API_KEY: KEY }));
    },
  );

  it.each([
    ['http://gateway.example/v1', KEY, true],
    ['http://10.0.0.5:8000/v1', KEY, true],
    ['http://10.0.0.5:8000/v1', '', false],
    ['https://gateway.example/v1', KEY, false],
    ['http://localhost:11434/v1', KEY, false],
    ['http://127.0.0.1:11434/v1', KEY, false],
  ])('%s with the key "%s" over plain http is told: %s', async (baseUrl, key, isTold) => {
    const notice = plainHttpNotice(await settingsAt(baseUrl), contextWith({ OPENAI_API_KEY: key }));
    expect(notice !== null).toBe(isTold);
  });
});

it('a model that is called as what every object has goes out under its name', async () => {
  const models: unknown[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      models.push((JSON.parse(body) as { model: unknown }).model);
      response.end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const settings = await settingsAt(`http://127.0.0.1:${port}/v1`);
  const lane = {
    name: 'own',
    apiKeyEnv: 'OPENAI_API_KEY',
    baseUrl: null,
    models: { known: 'renamed' },
    rpm: null,
    tpm: null,
    rpd: null,
    weight: 1,
  };
  const connection = await connect(
    { ...settings, connection: { ...settings.connection, lanes: [lane] } },
    contextWith({}),
  );
  onTestFinished(() => connection.close());
  for (const model of ['known', 'constructor', '__proto__']) {
    const request = {
      endpoint: 'chat',
      parts: 1,
      bodyJson: JSON.stringify({ model, messages: [] }),
    } as const;
    const signal = new AbortController().signal;
    await connection.lanes[0]?.provider.send(request, { timeoutMs: 60_000, signal });
  }
  expect(models).toEqual(['renamed', 'constructor', '__proto__']);
});
