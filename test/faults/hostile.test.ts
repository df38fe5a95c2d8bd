/** Answers that no server should give: each ends as the table of failures says, nothing hangs, nothing is paid twice. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { isJsonObject } from '../../src/core/json.js';
import { runInProcess } from '../support/in-process.js';
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.js';
import { steeringIn } from '../support/terminal.js';
import { waitFor } from '../support/wait-for.js';
import { answerTo, type ResultLine, Workspace } from '../support/workspace.js';

let workspace: Workspace;

beforeEach(() => {
  workspace = new Workspace();
});

afterEach(() => workspace.remove());

describe('an answer that is none', () => {
  let simulator: SimulatorProcess;

  beforeEach(async () => {
    simulator = await startSimulatorProcess();
  });

  afterEach(() => simulator.stop());

  it('is tried again and then fails under its own kind, while the others are answered', async () => {
    const kinds = {
      html: 'network',
      truncated: 'network',
      'no-body': 'network',
      'reset-mid-body': 'network',
      empty: 'bad_output',
      'no-content': 'bad_output',
      'error-in-200 0': 'bad_output',
      'error-in-200 503': 'overloaded',
      drip: 'timeout',
      hang: 'timeout',
    };
    const hostile = Object.keys(kinds).map((name) => ({ id: name, text: `[[simulate:${name}]] An answer.` }));
    const good = { id: 'good', text: 'A document like any other.' };
    workspace.writeDocuments('docs.jsonl', [...hostile, good]);
    const flags = ['--base-url', simulator.url, '--timeout', '2500ms', '--max-attempts', '2'];
    const end = await workspace.run(['run', 'docs.jsonl', ...flags]);
    expect(end.exitCode, end.stderr).toBe(3);
    const errors = workspace.readLines('docs.errors.jsonl');
    expect(Object.fromEntries(errors.map(({ id, error }) => [id, error?.kind]))).toEqual(kinds);
    expect(new Set(errors.map(({ attempts }) => attempts))).toEqual(new Set([2]));
    expect(workspace.readLines('docs.results.jsonl')).toMatchObject([
      { id: 'good', output: answerTo(good.text) },
    ]);
    expect((await simulator.books()).openCalls).toBe(0);
  });

  it('with a NUL or a lone surrogate is kept as it came, escaped, and not asked for again', async () => {
    const texts = {
      nul: '[[simulate:nul]] A strange character.',
      surrogate: '[[simulate:surrogate]] Half a smiley.',
    };
    workspace.writeDocuments(
      'docs.jsonl',
      Object.entries(texts).map(([id, text]) => ({ id, text })),
    );
    const end = await workspace.run(['run', 'docs.jsonl', '--base-url', simulator.url]);
    expect(end.exitCode, end.stderr).toBe(0);
    const outputs = [`${answerTo(texts.nul)}\u0000`, `${answerTo(texts.surrogate)}\ud83d`];
    expect(workspace.readLines('docs.results.jsonl').map(({ output }) => output)).toEqual(outputs);
    expect((await workspace.results()).map(({ output }) => output)).toEqual(outputs);
    expect(workspace.read('docs.results.jsonl')).toContain('\\ud83d"');
    expect((await simulator.books()).calls).toBe(2);

    const resumed = await workspace.run(['resume']);
    expect(resumed.exitCode).toBe(0);
    expect((await simulator.books()).calls).toBe(2);
  });
});

describe('an answer whose every field is odd', () => {
  /** Bodies by the document's text; what is no answer is sent as it stands. */
  const BODIES: Readonly<Record<string, string>> = {
    'nothing but the text': answer({ content: 'bare' }, {}),
    'figures out of all bounds': answer(
      { content: 'figures' },
      { usage: { prompt_tokens: -5, completion_tokens: 1e308, total_tokens: 'many', cost: -1 } },
    ),
    'figures that are none': answer(
      { content: 'no figures' },
      { usage: { prompt_tokens: null, completion_tokens: '12', prompt_tokens_details: [], cost: 'NaN' } },
    ),
    'an endless cost': answer({ content: 'cost' }, {}).replace(/}$/, ',"usage":{"cost":1e400}}'),
    'fractions of tokens': answer(
      { content: 'fractions' },
      { usage: { prompt_tokens: 1.5, completion_tokens: 2.5 } },
    ),
    'control characters everywhere': answer(
      { content: 'line\nbreak\u2028\u0000\u001b[31m' },
      { model: 'model\u0000\ud83d', id: '\ud83d', system_fingerprint: '\u0000' },
      'stop\u0000\udc00',
    ),
    'a megabyte': answer({ content: 'x'.repeat(1_000_000) }, {}),
    'a prototype': '{"__proto__":{"polluted":1},"choices":[{"message":{"content":"proto"}}]}',
  };
  const OUTPUTS: Readonly<Record<string, string>> = {
    'nothing but the text': 'bare',
    'figures out of all bounds': 'figures',
    'figures that are none': 'no figures',
    'an endless cost': 'cost',
    'fractions of tokens': 'fractions',
    'control characters everywhere': 'line\nbreak\u2028\u0000\u001b[31m',
    'a megabyte': 'x'.repeat(1_000_000),
    'a prototype': 'proto',
  };
  let server: Server;
  let calls: Map<string, number>;

  beforeEach(async () => {
    calls = new Map();
    server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => reply(JSON.parse(body), response));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });

  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  function reply(request: unknown, response: ServerResponse): void {
    const messages = isJsonObject(request) && Array.isArray(request['messages']) ? request['messages'] : [];
    const text = isJsonObject(messages[0]) ? String(messages[0]['content']) : '';
    calls.set(text, (calls.get(text) ?? 0) + 1);
    response.writeHead(200, { 'x-request-id': 'req \x80\xff\xe9' });
    response.end(BODIES[text]);
  }

  it('is stored at the first call, in every format, and shown without harm', async () => {
    const texts = Object.keys(BODIES);
    workspace.writeDocuments(
      'docs.jsonl',
      texts.map((text) => ({ id: text, text })),
    );
    const { port } = server.address() as AddressInfo;
    const end = await workspace.run(['run', 'docs.jsonl', '--base-url', `http://127.0.0.1:${port}/v1`]);
    expect(end.exitCode, end.stderr).toBe(0);
    expect([...calls.values()]).toEqual(texts.map(() => 1));
    expect(outputsOf(workspace.readLines('docs.results.jsonl'))).toEqual(OUTPUTS);
    expect(outputsOf(await workspace.results())).toEqual(OUTPUTS);

    const { documents } = await workspace.status();
    expect(documents).toMatchObject({ completed: texts.length, failed: 0 });
    expect((await workspace.run(['status'])).stdout).toContain(`${texts.length}`);
    const csv = await workspace.run(['results', '--format', 'csv', '-o', '-']);
    expect(csv.exitCode).toBe(0);
    const openai = await workspace.run(['results', '--format', 'openai', '-o', '-']);
    expect(openai.stdout.trimEnd().split('\n')).toHaveLength(texts.length);
    expect(workspace.integrity()).toBe('ok');
  });

  function outputsOf(lines: readonly ResultLine[]): object {
    return Object.fromEntries(lines.map(({ id, output }) => [id, output]));
  }
});

/** JSON texts by the document that they answer; an expected output, or the kind of a failure. */
type HostileBodies = Readonly<Record<string, readonly [body: string, output: unknown, kind?: string]>>;

const nested = (text: string, inside: string): string => text.repeat(5_000) + inside;
const response = (output: string, more = '') =>
  `{"object":"response","status":"completed","output":${output}${more}}`;
const said = (text: string) =>
  `[{"type":"message","role":"assistant","content":[{"type":"output_text","text":${text}}]}]`;
const completion = (choice: string, more = '') => `{"object":"text_completion","choices":[${choice}]${more}}`;
const RESULT = '{"flagged":false,"categories":{"hate":false},"category_scores":{"hate":1e-7}}';

const HOSTILE: Readonly<Record<string, HostileBodies>> = {
  responses: {
    'bad figures': [
      response(
        said('"figures"'),
        ',"usage":{"input_tokens":-1,"output_tokens":1e308,"output_tokens_details":[]}',
      ),
      'figures',
    ],
    'a NUL and half a smiley': [response(said('"\\u0000\\ud83d"')), '\u0000\ud83d'],
    'a prototype': [response(said('"proto"'), ',"__proto__":{"status":"failed"}'), 'proto'],
    'a megabyte': [response(said(JSON.stringify('x'.repeat(1_000_000)))), 'x'.repeat(1_000_000)],
    'a status that is none': [response(said('"x"'), ',"status":{"a":1}'), null, 'bad_output'],
    'a reason that is none': [
      response('[]', ',"status":"incomplete","incomplete_details":7'),
      null,
      'bad_output',
    ],
    'items of every type': [
      response('[null,7,[],{"type":{}},{"type":"message","content":{}}]'),
      null,
      'bad_output',
    ],
    'deep items': [response(`[${nested('[', '1')}${']'.repeat(5_000)}]`), null, 'bad_output'],
    'an error that is no word': [
      response(said('"x"'), ',"status":"failed","error":{"code":{}}'),
      null,
      'bad_output',
    ],
  },
  completions: {
    'bad figures': [completion('{"text":"figures","index":0}', ',"usage":{"prompt_tokens":"1"}'), 'figures'],
    'a NUL and half a smiley': [completion('{"text":"\\u0000\\ud83d","index":0}'), '\u0000\ud83d'],
    'another index': [completion('{"text":"x","index":4294967296}'), null, 'bad_output'],
    'an index of text': [completion('{"text":"x","index":"__proto__"}'), null, 'bad_output'],
    'a text that is none': [completion('{"text":{"a":1},"index":0}'), null, 'bad_output'],
    'deep probabilities': [
      completion(`{"text":"x","index":0,"logprobs":${nested('{"a":', '1')}${'}'.repeat(5_000)}}`),
      null,
      'bad_output',
    ],
  },
  moderations: {
    'bad figures': [`{"results":[${RESULT}],"usage":{"prompt_tokens":-1}}`, JSON.parse(RESULT)],
    'a result more': [`{"results":[${RESULT},${RESULT}]}`, null, 'bad_output'],
    'results by name': [`{"results":{"0":${RESULT},"length":1}}`, null, 'bad_output'],
    'a prototype': ['{"results":[{"__proto__":{"categories":{"a":true}}}]}', null, 'bad_output'],
    'a list for a result': [`{"results":[[${RESULT}]]}`, null, 'bad_output'],
  },
};

describe.each(Object.entries(HOSTILE))('hostile answers of %s', (endpoint, bodies) => {
  it('are kept where they hold an answer, fail their document alone where not, and stand in every format', async () => {
    const server = createServer((request, reply) => {
      let text = '';
      request.on('data', (chunk) => {
        text += chunk;
      });
      request.on('end', () => {
        const { input, prompt } = JSON.parse(text) as Record<string, string>;
        reply.end(bodies[input ?? prompt ?? '']?.[0]);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const names = Object.keys(bodies);
    workspace.writeDocuments(
      'docs.jsonl',
      names.map((text) => ({ id: text, text })),
    );
    const llmBatch = (...args: string[]) => runInProcess(args, { folder: workspace.folder });
    const flags = ['--base-url', `http://127.0.0.1:${port}/v1`, '--group-max', '1', '--max-attempts', '1'];
    const end = await llmBatch('run', 'docs.jsonl', '--endpoint', endpoint, ...flags);
    expect(end.exitCode, end.stderr).toBe(3);
    const found = [
      ...workspace.readLines('docs.results.jsonl').map(({ id, output }) => [id, output]),
      ...workspace.readLines('docs.errors.jsonl').map(({ id, error }) => [id, error?.kind]),
    ];
    expect(Object.fromEntries(found)).toEqual(
      Object.fromEntries(names.map((name) => [name, bodies[name]?.[2] ?? bodies[name]?.[1]])),
    );
    for (const format of ['csv', 'openai']) {
      const written = await llmBatch('results', '--only', 'all', '--format', format, '-o', '-');
      expect(written.exitCode, written.stderr).toBe(0);
    }
    expect((await llmBatch('status', '--json')).stdout).toContain(
      `"completed":${names.length - countFailed(bodies)}`,
    );
    expect(workspace.integrity()).toBe('ok');
  });
});

function countFailed(bodies: HostileBodies): number {
  return Object.values(bodies).filter(([, , kind]) => kind !== undefined).length;
}

function answer(message: object, more: object, finishReason = 'stop'): string {
  return JSON.stringify({ choices: [{ message, finish_reason: finishReason }], ...more });
}

/** Results of one call, after their ids. */
const HOSTILE_ITEMS: HostileBodies = {
  'bad figures': [
    '"content":"figures","usage":{"prompt_tokens":-1,"completion_tokens":1e308,"total_tokens":[]}}',
    'figures',
  ],
  'a NUL and half a smiley': ['"content":"\\u0000\\ud83d"}', '\u0000\ud83d'],
  'a prototype': ['"content":"proto","__proto__":{"error":{"message":"no"}}}', 'proto'],
  'choices by name': ['"choices":{"0":{"message":{"content":"x"}},"length":1}}', null, 'bad_output'],
  'deep content': [`"content":${nested('[', '1')}${']'.repeat(5_000)}}`, null, 'bad_output'],
  'an error that is no word': ['"error":{"code":{}}}', null, 'bad_output'],
  'a body that is none': ['"response":{"body":7}}', null, 'bad_output'],
  'two results': ['"content":"x"},{"id":"ID","content":"y"}', null, 'bad_output'],
  'no result': ['"content":"x"},null', null, 'bad_output'],
};

describe('hostile answers to several requests at once', () => {
  it('fail the documents that they do not answer, and no other, whatever the first call brings', async () => {
    let calls = 0;
    const server = createServer(async (request, reply) => {
      let text = '';
      for await (const chunk of request) text += chunk;
      const { batch } = JSON.parse(text) as { batch: { id: string; messages: { content: string }[] }[] };
      calls += 1;
      const results = batch.map(({ id, messages }) => {
        const name = messages.at(-1)?.content ?? '';
        const item = `{"id":${JSON.stringify(name === 'no result' ? 'another' : id)},`;
        return item + (HOSTILE_ITEMS[name]?.[0] ?? '').replace('ID', id);
      });
      reply.end(calls === 1 ? '{"results":{"0":{},"length":1}}' : `{"results":[${results.join()}]}`);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const names = Object.keys(HOSTILE_ITEMS);
    workspace.writeDocuments(
      'docs.jsonl',
      names.map((text) => ({ id: text, text })),
    );
    const llmBatch = (...args: string[]) => runInProcess(args, { folder: workspace.folder });
    const flags = [
      '--base-url',
      `http://127.0.0.1:${port}/v1`,
      '--group-url',
      '/batch',
      '--max-attempts',
      '1',
    ];
    const end = await llmBatch('run', 'docs.jsonl', ...flags);
    expect(end.exitCode, end.stderr).toBe(3);
    const found = [
      ...workspace.readLines('docs.results.jsonl').map(({ id, output }) => [id, output]),
      ...workspace.readLines('docs.errors.jsonl').map(({ id, error }) => [id, error?.kind]),
    ];
    expect(Object.fromEntries(found)).toEqual(
      Object.fromEntries(names.map((name) => [name, HOSTILE_ITEMS[name]?.[2] ?? HOSTILE_ITEMS[name]?.[1]])),
    );
    expect(workspace.integrity()).toBe('ok');
  });
});

describe('an answer that was made to do harm', () => {
  /** What reaches a terminal as a command: colours the rest, sets the title, moves up, turns the line around. */
  const ESCAPES = '\u001b[31mRED\u001b]0;title\u0007\u001b[2A\u009b2J\u202eltr\u061c';
  const KEY = 'sk-live-Zq7Lm2Xw9Rt4Yb8Nc3Vd6';
  const deep = (text: string): string => text.repeat(5_000);
  const BODIES: Readonly<Record<string, string>> = {
    'newlines in a fence': answer({ content: `\`\`\`json${'\n'.repeat(6_000)}` }, {}),
    'deep JSON': answer({ content: `${deep('{"a":')}1${deep('}')}` }, {}),
    'a deep body': `{"choices":[{"message":{"content":"x"}}],"more":${deep('[')}${deep(']')}}`,
    'a pattern without end': answer({ content: JSON.stringify({ code: `${'a'.repeat(60)}!` }) }, {}),
    'escapes in a name': answer({ content: JSON.stringify({ [ESCAPES]: { [KEY]: 1 } }) }, {}),
    'escapes where JSON should be': answer({ content: `${ESCAPES} ${KEY}` }, {}),
    good: answer({ content: '{"code":"aaa"}' }, { model: `m ${ESCAPES} ${KEY}` }),
  };
  const SCHEMA = {
    type: 'object',
    properties: { code: { type: 'string', pattern: '^(a+)+$' } },
    additionalProperties: { type: 'object', additionalProperties: false },
  };
  let server: Server;

  beforeEach(async () => {
    server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        if (body === '') {
          response.end('{}');
          return;
        }
        const { messages } = JSON.parse(body) as { messages: { content: string }[] };
        response.writeHead(200, { 'x-request-id': `req ${KEY}` });
        response.end(BODIES[messages.at(-1)?.content ?? '']);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    workspace.write('schema.json', JSON.stringify(SCHEMA));
    workspace.writeDocuments(
      'docs.jsonl',
      Object.keys(BODIES).map((text) => ({ id: text, text })),
    );
  });

  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  function run(...more: string[]) {
    const { port } = server.address() as AddressInfo;
    const flags = [
      '--base-url',
      `http://127.0.0.1:${port}/v1`,
      '--max-attempts',
      '1',
      '--schema',
      'schema.json',
    ];
    return workspace.start(['run', 'docs.jsonl', ...flags, '--verbose', ...more], {
      environment: { OPENAI_API_KEY: KEY, FORCE_COLOR: '1', NO_COLOR: '' },
    });
  }

  it('fails its document as bad output; the others are answered, and nothing steers the terminal', async () => {
    const end = await run().ended;
    expect(end.exitCode, end.stderr).toBe(3);
    const errors = workspace.readLines('docs.errors.jsonl');
    expect(new Set(errors.map(({ error }) => error?.kind))).toEqual(new Set(['bad_output']));
    expect(errors).toHaveLength(Object.keys(BODIES).length - 1);
    expect(workspace.readLines('docs.results.jsonl')).toMatchObject([
      { id: 'good', output: { code: 'aaa' } },
    ]);

    const failures = await workspace.run(['failures']);
    const shown = await workspace.run(['results', '--only', 'all', '-o', '-']);
    const files = workspace.read('docs.errors.jsonl') + workspace.read('docs.results.jsonl');
    for (const text of [end.stderr, failures.stdout, shown.stdout, files]) {
      expect(text).not.toContain('\u001b[31mRED');
      expect(steeringIn(text)).toEqual([]);
    }
    const messages = errors.map(({ error }) => error?.message).join();
    const [{ model = '', request_id: requestId = '' } = {}] =
      workspace.readLines<Record<string, string>>('docs.results.jsonl');
    for (const text of [end.stderr, failures.stdout, messages, model, requestId])
      expect(text).not.toContain(KEY);
  });

  it('leaves a signal heard, whatever all answers at once do', async () => {
    workspace.writeDocuments(
      'docs.jsonl',
      Array.from({ length: 40 }, (_, index) => ({ id: index, text: 'a pattern without end' })),
    );
    const program = run('--concurrency', '20', '--no-guard');
    await waitFor('answers that are refused', () => program.stderr().includes('bad_output'));
    program.kill('SIGTERM');
    const end = await program.ended;
    expect(end.exitCode, end.stderr).toBe(130);
  });

  it('has no helper in the names of runs and files, in errors or in hints', async () => {
    const name = `notes${ESCAPES}`;
    workspace.writeDocuments(`${name}.jsonl`, [{ id: 'a', text: 'good' }]);
    const { port } = server.address() as AddressInfo;
    const own = { environment: { OPENAI_API_KEY: KEY, FORCE_COLOR: '1', NO_COLOR: '' } };
    const url = `http://127.0.0.1:${port}/v1`;
    const harmed: string[] = [];
    for (const args of [
      ['run', `${name}.jsonl`, '--base-url', url, '--model', ESCAPES],
      ['run', 'docs.jsonl', '--base-url', url, '--name', `line\nerror: ${ESCAPES}`, '--limit-less'],
      ['run', `none${ESCAPES}.jsonl`, '--base-url', url],
      ['run', 'docs.jsonl', '--base-url', `${ESCAPES}://x`],
      ['run', 'docs.jsonl', '--base-url', url, '--param', ESCAPES],
      ['run', `${name}.jsonl`, '--base-url', url, '--prompt', `{{${ESCAPES}}}`],
      ['status', name],
      ['status', `none${ESCAPES}`],
      ['failures', name],
      ['results', name],
      ['report', name],
      ['retry', name],
      ['cancel', name, '--yes'],
      ['prune', '--older-than', '0s', '--dry-run'],
      ['check', `${name}.jsonl`, '--prompt', '{{text}}'],
      ['estimate', `${name}.jsonl`, '--prompt', '{{text}}', '--model', ESCAPES],
      ['doctor', '--base-url', url],
    ]) {
      const { stdout, stderr } = await workspace.run(args, own);
      const shown = stdout + stderr;
      const harm = [...steeringIn(shown), ...['\u001b[31mRED', KEY].filter((each) => shown.includes(each))];
      if (harm.length > 0) harmed.push(`${args[0]}: ${harm.join(', ')}: ${JSON.stringify(shown)}`);
    }
    expect(harmed).toEqual([]);
  }, 180_000);
});
