/**
 * Whatever comes from outside (documents, answers, configuration, stores, tables): no crash, nothing that takes two
 * seconds, nothing that steers the terminal, no file outside the folder, no byte to another host.
 */
import { mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { wayOutOf } from '../../src/commands/error-words.js';
import { LlmBatchError } from '../../src/core/errors.js';
import { escapedJson, gated, printable, shortLine } from '../../src/core/foreign-text.js';
import { createRedactor } from '../../src/core/redact.js';
import { createStoredRequestReader } from '../../src/documents/read.js';
import { openApart } from '../../src/input/apart.js';
import { readAnswer } from '../../src/provider/openai/answer.js';
import { readErrorObject } from '../../src/provider/openai/error-body.js';
import { createOutputCheck } from '../../src/runs/output-check.js';
import { PLAIN_APPEARANCE } from '../../src/ui/colours.js';
import { renderError } from '../../src/ui/error.js';
import { runInProcess } from '../support/in-process.js';
import { temporaryFolder } from '../support/program.js';
import { samplePng } from '../support/sample-images.js';
import { steeringIn } from '../support/terminal.js';

const KEY = 'sk-live-Zq7Lm2Xw9Rt4Yb8Nc3Vd6';
/** Of processor time, so that a busy machine is no hang. */
const MOST_MS = 2_000;

let folder: ReturnType<typeof temporaryFolder>;

beforeAll(() => {
  folder = temporaryFolder();
  mkdirSync(join(folder.path, 'in'));
  writeFileSync(join(folder.path, 'secret.png'), samplePng(9, 9));
  writeFileSync(join(folder.path, 'in', 'a.png'), samplePng(3, 3));
  symlinkSync('../secret.png', join(folder.path, 'in', 'link.png'));
  symlinkSync('..', join(folder.path, 'in', 'up'));
});

afterAll(() => folder.remove());

/** Words that mean something to somebody on the way. */
const trap = fc.constantFrom(
  '\u001b[31m',
  '\u001b[2J',
  '\u001b]0;t\u0007',
  '\u009b2J',
  '\u202e',
  '\u2066',
  '\u061c',
  '\r',
  '\n',
  '\u2028',
  '\u0000',
  '\ud800',
  '```json\n',
  '```',
  '{{',
  '}}',
  '{{text}}',
  '[[[[',
  '{"a":',
  '"',
  '\\',
  '__proto__',
  'constructor',
  '../secret.png',
  'link.png',
  'up/secret.png',
  'a.png',
  '/etc/passwd',
  'file:///etc/passwd',
  KEY,
  '=1+1',
  '1e999',
  '9007199254740993',
);
const hostileText = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: trap },
      { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
      fc.tuple(trap, fc.nat(3_000)).map(([text, times]) => text.repeat(times)),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(''));
const names = fc.oneof(
  fc.constantFrom('id', 'text', 'photo', 'messages', 'model', 'tools', 'body', 'custom_id', 'url', 'method'),
  fc.constantFrom('metadata', 'priority', 'choices', 'message', 'content', 'error', 'usage', 'finish_reason'),
  hostileText,
);
const hostileJson = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    hostileText,
    fc.double(),
    fc.constantFrom(null, true, [], {}),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(names, tie('value')), { maxLength: 5 }).map((members) => Object.fromEntries(members)),
  ),
})).value;

async function everyTime<Value>(
  arbitrary: fc.Arbitrary<Value>,
  numRuns: number,
  check: (value: Value) => Promise<void> | void,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(arbitrary, async (value) => {
      const before = process.cpuUsage();
      await check(value);
      const { user, system } = process.cpuUsage(before);
      expect((user + system) / 1_000).toBeLessThan(MOST_MS);
    }),
    { numRuns, interruptAfterTimeLimit: 20_000 },
  );
}

describe('what is printed', () => {
  it('steers no terminal, and JSON says what it said', async () => {
    await everyTime(hostileText, 300, (text) => {
      expect(steeringIn(gated(text, true))).toEqual([]);
      expect(steeringIn(gated(text, false))).toEqual([]);
      for (const line of [printable(text), shortLine(text, 100)]) {
        expect(steeringIn(line)).toEqual([]);
        expect(line).not.toContain('\n');
      }
      const json = escapedJson(JSON.stringify(text));
      expect(steeringIn(json)).toEqual([]);
      expect(JSON.parse(json)).toBe(text);
    });
  });
});

describe('a document', () => {
  it('becomes a request or a bad line, and reaches no file outside its folder', async () => {
    const inside = realpathSync(join(folder.path, 'in'));
    const read = createStoredRequestReader({
      model: 'm',
      promptTemplate: '{{text}} {{image photo}}',
      systemTemplate: null,
      parameters: {},
      imageFolder: inside,
      allowAnyPath: false,
      requestsAsTheyAre: false,
      idField: null,
    });
    const line = fc.oneof(
      hostileText,
      hostileJson.map((value) => JSON.stringify(value) ?? ''),
      fc
        .tuple(hostileText, hostileText, hostileJson)
        .map(([text, photo, rest]) => JSON.stringify({ ...(rest as object), text, photo })),
      trap.map((photo) => JSON.stringify({ text: 'x', photo })),
    );
    await everyTime(line, 300, (text) => {
      const request = read(text);
      if ('reason' in request) return;
      JSON.parse(request.bodyJson);
      for (const { file } of request.attachments) {
        if (file !== null) expect(realpathSync(file.absolutePath).startsWith(inside)).toBe(true);
      }
    });
  });
});

describe('an answer', () => {
  const context = { url: 'http://127.0.0.1/v1', nowMs: 0, redact: createRedactor([KEY]) };

  it('is read, checked or refused, in words that are clean', async () => {
    const checks = [
      createOutputCheck({ kind: 'json' }),
      createOutputCheck({
        kind: 'schema',
        schema: { type: 'object', additionalProperties: { type: ['object', 'number'] }, maxProperties: 1 },
      }),
      createOutputCheck({
        kind: 'schema',
        schema: { additionalProperties: { $ref: '#' }, minProperties: 1 },
      }),
    ];
    const answer = fc.oneof(
      hostileText,
      hostileJson.map((value) => JSON.stringify(value) ?? ''),
      fc
        .tuple(hostileText, hostileText, hostileJson)
        .map(([content, model, more]) =>
          JSON.stringify({ choices: [{ message: { content }, finish_reason: model }], model, more }),
        ),
      fc.tuple(hostileJson, hostileJson, hostileText).map(([index, embedding, model]) =>
        JSON.stringify({
          data: [
            { index: 0, embedding: [1] },
            { index, embedding },
          ],
          model,
        }),
      ),
    );
    await everyTime(fc.tuple(answer, hostileText), 200, async ([content, requestId]) => {
      const headers = { get: (name: string) => (name === 'x-request-id' ? requestId : null) };
      const received = { status: 200, headers, isUtf8: true, content };
      const chat = readAnswer({ endpoint: 'chat', bodyJson: '{}', parts: 1 }, received, context);
      const bodyJson = '{"input":["a","b"]}';
      const vectors = readAnswer({ endpoint: 'embeddings', bodyJson, parts: 2 }, received, context);
      const words = [chat, vectors].flatMap((reply) =>
        reply.ok
          ? [
              reply.model,
              reply.requestId ?? '',
              ...reply.parts.map((part) => (part.ok ? part.finishReason : part.failure.message)),
            ]
          : [reply.failure.message, reply.failure.code ?? '', reply.failure.requestId ?? ''],
      );
      for (const text of words) {
        expect(steeringIn(text)).toEqual([]);
        expect(text).not.toContain(KEY);
      }
      const part = chat.ok ? chat.parts[0] : undefined;
      readErrorObject(content);
      for (const check of checks) await check?.(part?.ok ? (part.text ?? '') : content);
    });
  });
});

describe('a folder of somebody else', () => {
  let server: Server;
  let foreign: Server;
  let strangers = 0;

  beforeAll(async () => {
    server = createServer((request, response) => {
      request.resume();
      const content = '\u001b[2J\u202e done';
      const model = `m\u001b]0;${KEY}\u0007`;
      request.on('end', () =>
        response.end(JSON.stringify({ model, choices: [{ message: { content }, finish_reason: 'stop' }] })),
      );
    });
    foreign = createServer((_request, response) => {
      strangers += 1;
      response.end('{}');
    });
    foreign.on('connection', () => {
      strangers += 1;
    });
    for (const each of [server, foreign])
      await new Promise<void>((resolve) => each.listen(0, '127.0.0.1', resolve));
  });

  afterAll(() => {
    for (const each of [server, foreign]) each.close();
  });

  const urlOf = (each: Server): string => `http://127.0.0.1:${(each.address() as AddressInfo).port}/v1`;

  /** Every verb that shows something, over one folder. */
  async function look(path: string, verbs: readonly (readonly string[])[]): Promise<void> {
    for (const verb of verbs) {
      let shown: string;
      try {
        const end = await runInProcess(verb, {
          folder: path,
          environment: { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: urlOf(server) },
        });
        expect([0, 2, 3, 4, 5], `${verb.join(' ')}: ${end.stderr}`).toContain(end.exitCode);
        shown = gated(end.stdout + end.stderr, false);
      } catch (error) {
        if (!(error instanceof LlmBatchError)) throw error;
        shown = renderError(error, PLAIN_APPEARANCE, false, wayOutOf).join('\n');
      }
      expect(steeringIn(shown)).toEqual([]);
      expect(shown).not.toContain(KEY);
    }
  }

  const SHOWING = [['status'], ['status', '--json'], ['failures'], ['results', '-o', '-']] as const;

  it('has documents that are sent to nobody but the server that was named', async () => {
    await everyTime(fc.array(hostileJson, { maxLength: 6 }), 12, async (values) => {
      const own = temporaryFolder();
      try {
        const at = urlOf(foreign);
        const documents = values.map((value, index) => ({
          ...(value as object),
          id: index,
          text: 'x',
          url: at,
          base_url: at,
          body: { base_url: at, messages: [] },
          webhook_url: at,
        }));
        const lines = documents.map((each) => `${JSON.stringify(each)}\n`).join('');
        writeFileSync(join(own.path, 'docs.jsonl'), `{"text":"first"}\n${lines}`);
        const run = ['run', 'docs.jsonl', '--prompt', '{{text}}', '--skip-bad-lines', '--max-attempts', '1'];
        await look(own.path, [run, ...SHOWING]);
        expect(strangers).toBe(0);
      } finally {
        own.remove();
      }
    });
  });

  it('has a configuration that is taken or refused', async () => {
    const settings = fc.constantFrom(
      'model',
      'prompt',
      'rpm',
      'timeout',
      'timeoutMs',
      'query',
      'schema',
      'prices',
      'db',
    );
    const config = fc.oneof(
      hostileText,
      fc
        .array(fc.tuple(fc.oneof(settings, names), hostileJson), { maxLength: 4 })
        .map((members) => JSON.stringify(Object.fromEntries(members))),
    );
    await everyTime(config, 15, async (text) => {
      const own = temporaryFolder();
      try {
        writeFileSync(join(own.path, 'llm-batch.config.json'), text);
        writeFileSync(join(own.path, 'docs.jsonl'), '{"id":1,"text":"x"}\n');
        await look(own.path, [['check', 'docs.jsonl'], ['status']]);
      } finally {
        own.remove();
      }
    });
  });

  it('has a store that is read or refused, whatever its bytes are', async () => {
    const origin = temporaryFolder();
    try {
      writeFileSync(join(origin.path, 'docs.jsonl'), '{"id":1,"text":"x"}\n{"id":2,"text":"y"}\n');
      await look(origin.path, [['run', 'docs.jsonl', '--prompt', '{{text}}']]);
      const sound = readFileSync(join(origin.path, 'llm-batch.db'));
      const changes = fc.array(fc.tuple(fc.nat(sound.length - 1), fc.nat(255)), {
        minLength: 1,
        maxLength: 40,
      });
      await everyTime(changes, 15, async (changed) => {
        const own = temporaryFolder();
        try {
          const bytes = Buffer.from(sound);
          for (const [at, byte] of changed) bytes[at] = byte;
          writeFileSync(join(own.path, 'llm-batch.db'), bytes);
          await look(own.path, SHOWING);
        } finally {
          own.remove();
        }
      });
    } finally {
      origin.remove();
    }
  });

  it('has tables that are read or refused, whatever their bytes are', async () => {
    const sound = Buffer.from(
      parquetWriteBuffer({
        columnData: [
          { name: 'id', data: Array.from({ length: 300 }, (_, index) => index % 7), type: 'INT32' },
          {
            name: 'text',
            data: Array.from({ length: 300 }, (_, index) => `word ${index % 5}`),
            type: 'STRING',
          },
        ],
      }),
    );
    const changes = fc.array(fc.tuple(fc.nat(sound.length - 1), fc.nat(255)), {
      minLength: 1,
      maxLength: 12,
    });
    await everyTime(changes, 12, async (changed) => {
      const bytes = Buffer.from(sound);
      for (const [at, byte] of changed) bytes[at] = byte;
      writeFileSync(join(folder.path, 'in.parquet'), bytes);
      try {
        const source = await openApart({
          format: 'parquet',
          path: 'in.parquet',
          cwd: folder.path,
          query: null,
          mostMemoryBytes: 300_000_000,
        });
        try {
          for await (const page of source.records({})) expect(page.length).toBeGreaterThan(0);
        } finally {
          await source.close();
        }
      } catch (error) {
        expect(error).toBeInstanceOf(LlmBatchError);
      }
    });
  });
});
