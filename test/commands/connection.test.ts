/** Where keys go, and what documents may not change about it. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkConnection, connect, plainHttpNotice } from '../../src/app/composition.js';
import type { CommandContext } from '../../src/app/context.js';
import { Interrupts } from '../../src/app/interrupts.js';
import { headersOf } from '../../src/app/request-headers.js';
import { runSettingsFrom } from '../../src/commands/asked-settings.js';
import { wayOutOf } from '../../src/commands/error-words.js';
import { resolveSettings } from '../../src/config/load.js';
import { systemClock } from '../../src/core/clock.js';
import type { LlmBatchError } from '../../src/core/errors.js';
import { type LaneSettings, lanesOf, type RunSettings, settingsToJson } from '../../src/runs/run-settings.js';
import { runInProcess } from '../support/in-process.js';
import { runSettingsOf } from '../support/run-settings.js';
import { numberedDocuments, Workspace } from '../support/workspace.js';

const KEY = 'a-plain-key-of-a-gateway';

function contextWith(environment: Record<string, string>): CommandContext {
  return {
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    environment,
    takeSecret: (name) => environment[name],
    command: (sentence) => sentence,
    workingFolder: '/',
    processId: 1,
    hostName: 'here',
    hasThreads: false,
    clock: systemClock,
    random: () => 0,
    interrupts: new Interrupts(systemClock),
  };
}

function settingsAt(baseUrl: string, flags: object = {}): Promise<RunSettings> {
  const resolved = resolveSettings({ flags: { baseUrl, ...flags }, environment: {}, file: {} });
  return runSettingsFrom(resolved, { inputs: ['docs.jsonl'] }, '/');
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

it.each([
  ['https://api.openai.com/v1/chat/completions', 'https://api.openai.com/v1'],
  ['https://api.openai.com/v1/responses/', 'https://api.openai.com/v1'],
  ['http://localhost:8000/v1/completions', 'http://localhost:8000/v1'],
  ['http://localhost:8000/v1/', 'http://localhost:8000/v1/'],
  [
    'https://mine.openai.azure.com/openai/deployments/mini/chat/completions?api-version=2024-10-21',
    'https://mine.openai.azure.com/openai/deployments/mini?api-version=2024-10-21',
  ],
])('the base URL %s is understood as %s', async (given, meant) => {
  expect(lanesOf(await settingsAt(given)).map(({ baseUrl }) => baseUrl)).toEqual([meant]);
});

it.each([
  ['OPENROUTER_API_KEY', 'https://openrouter.ai/api/v1'],
  ['GROQ_API_KEY', 'https://api.groq.com/openai/v1'],
  ['ANTHROPIC_API_KEY', 'https://api.anthropic.com/v1'],
  ['GEMINI_API_KEY', 'https://generativelanguage.googleapis.com/v1beta/openai'],
  ['AZURE_OPENAI_API_KEY', 'https://mine.openai.azure.com/openai/v1'],
])(
  'where %s is set and OPENAI_API_KEY is not, it says how to use it, and that works',
  async (variable, url) => {
    const context = contextWith({ [variable]: KEY, AZURE_OPENAI_ENDPOINT: 'https://mine.openai.azure.com/' });
    const plain = await runSettingsOf();
    let error: unknown;
    try {
      checkConnection(plain, context);
    } catch (thrown) {
      error = thrown;
    }
    const hint = wayOutOf(error as LlmBatchError) ?? '';
    const flags = {
      baseUrl: /--base-url (\S+)/.exec(hint)?.[1],
      apiKeyEnv: /--api-key-env (\S+)/.exec(hint)?.[1],
    };
    expect(flags).toEqual({ baseUrl: url, apiKeyEnv: variable });
    checkConnection(await runSettingsOf({ flags }), context);
  },
);

describe('a header', () => {
  const environment = { OPENAI_API_KEY: KEY, TEAM_KEY: 'pk-of-the-team' };

  it('with a variable is stored by the name of it, and sent with its value and beside the key', async () => {
    const seen: IncomingHttpHeaders[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers);
      response.end(JSON.stringify({ error: { message: `who is ${environment.TEAM_KEY}?` } }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const settings = await settingsAt(url, {
      headers: ['x-portkey-api-key: $TEAM_KEY', 'X-Team: search: all', 'X-Price: $$5'],
      apiKeyHeader: 'api-key',
    });
    const context = contextWith({ ...environment, OPENAI_ORG_ID: 'org-1' });
    checkConnection(settings, context);
    expect(JSON.stringify(settingsToJson(settings, { folder: null }))).toContain('$TEAM_KEY');
    expect(JSON.stringify(settingsToJson(settings, { folder: null }))).not.toContain(environment.TEAM_KEY);
    const connection = await connect(settings, context);
    onTestFinished(() => connection.close());
    const signal = new AbortController().signal;
    const reply = await connection.lanes[0]?.provider.send(
      { endpoint: 'chat', parts: 1, bodyJson: '{}' },
      { timeoutMs: 60_000, signal },
    );
    expect(seen[0]).toMatchObject({
      'x-portkey-api-key': environment.TEAM_KEY,
      'x-team': 'search: all',
      'x-price': '$5',
      'api-key': KEY,
    });
    // Organizations are told to OpenAI alone.
    for (const name of ['authorization', 'openai-organization']) expect(seen[0]).not.toHaveProperty(name);
    expect(JSON.stringify(reply)).not.toContain(environment.TEAM_KEY);
  });

  it.each([
    ['HEADER_SECRET', 'X-Api-Key: pk-of-the-team'],
    ['HEADER_SECRET', 'Authorization: Bearer abc'],
    ['HEADER_SECRET', 'X-Team: sk-proj-0123456789abcdefghij'],
    ['HEADER_RESERVED', 'Host: elsewhere.example'],
    ['HEADER_RESERVED', 'Content-Length: 3'],
    ['HEADER_INVALID', 'X-Team: grün'],
    ['HEADER_VARIABLE_MISSING', 'X-Team: $NOBODY'],
  ])('is refused before anything is sent, its value untold: %s for %s', async (code, header) => {
    const settings = await settingsAt('https://gateway.example/v1', { headers: [header] });
    const check = () => checkConnection(settings, contextWith(environment));
    expect(check).toThrow(expect.objectContaining({ code }));
    expect(check).not.toThrow(/pk-of|sk-proj|abc/);
  });

  it('may take the place of that with the key', async () => {
    const settings = await settingsAt('https://gateway.example/v1', {
      headers: ['authorization: Token abc'],
    });
    expect(() => checkConnection(settings, contextWith(environment))).toThrow(/looks like a key/);
    const bearer = await settingsAt('https://gateway.example/v1', {
      headers: ['authorization: Bearer $TEAM_KEY'],
    });
    checkConnection(bearer, contextWith(environment));
  });

  it('of OpenAI names organization and project, from their variables', () => {
    const lane = (baseUrl: string) => ({ baseUrl, headers: {} }) as LaneSettings;
    const context = contextWith({ OPENAI_ORG_ID: 'org-1', OPENAI_PROJECT_ID: 'proj-1' });
    expect(headersOf(lane('https://eu.api.openai.com/v1'), context).headers).toEqual({
      'OpenAI-Organization': 'org-1',
      'OpenAI-Project': 'proj-1',
    });
    expect(headersOf(lane('https://notopenai.com/v1'), context).headers).toEqual({});
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
    apiKeyHeader: null,
    headers: {},
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

describe('a proxy', () => {
  it('that wants a password stops the run, and the way out is the proxy’s, not the key’s', async () => {
    const workspace = new Workspace();
    onTestFinished(() => workspace.remove());
    workspace.writeDocuments('docs.jsonl', numberedDocuments(3));
    const proxy = createServer((_request, response) => response.writeHead(407).end());
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void proxy.close());
    const { port } = proxy.address() as AddressInfo;
    const end = await runInProcess(
      ['run', 'docs.jsonl', '--prompt', '{{text}}', '--base-url', 'http://api.example/v1'],
      {
        folder: workspace.folder,
        environment: { OPENAI_API_KEY: 'sk-test', HTTP_PROXY: `http://127.0.0.1:${port}` },
      },
    );
    expect(end.exitCode, end.stderr).toBe(4);
    expect(end.stderr).toMatch(/The proxy wants a user name and a password/);
    expect(end.stderr).toContain('try: set HTTPS_PROXY (or HTTP_PROXY) to http://USER:PASSWORD@host:port');
    expect(end.stderr).not.toContain('set a key');
  });
});
