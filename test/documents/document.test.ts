import { describe, expect, it } from 'vitest';
import { createDocumentParser } from '../../src/documents/document.js';

function parse(
  line: unknown,
  rules: { promptTemplate?: string; idField?: string; requestsAsTheyAre?: boolean } = {},
) {
  const parser = createDocumentParser({
    promptTemplate: null,
    idField: null,
    requestsAsTheyAre: false,
    ...rules,
  });
  return parser(typeof line === 'string' ? line : JSON.stringify(line));
}

const messages = [{ role: 'user', content: 'Hello' }];
const batchLine = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body: { messages } };

describe('the form of a line without a template', () => {
  it.each([
    ['a Batch API line', batchLine, 'batch_line'],
    ['a Batch API line without method and url', { custom_id: 'a', body: { messages } }, 'batch_line'],
    [
      'a Batch API line without custom_id',
      { method: 'POST', url: '/v1/chat/completions', body: { messages } },
      'batch_line',
    ],
    ['messages', { messages }, 'request'],
    ['a prompt with a model', { model: 'm', prompt: 'Hello' }, 'request'],
    ['an input with dimensions', { input: 'Hello', dimensions: 5 }, 'request'],
    ['an input among data', { input: 'Hello', output: 'Bye' }, 'record'],
    ['a prompt alone', { prompt: 'Hello' }, 'record'],
    ['a prompt among data', { id: 1, prompt: 'Hello', store: 'Berlin', user: 'kim' }, 'record'],
    ['data with a model', { text: 'A good laptop', model: 'XPS 13' }, 'record'],
    ['data with a body of text', { custom_id: 'a', body: 'A good laptop' }, 'record'],
    ['data with a body object', { id: 1, body: { text: 'x' } }, 'record'],
  ])('takes %s as %s', (_name, line, form) => {
    expect(parse(line)).toMatchObject({ form });
  });
});

describe('the form of a line with a template', () => {
  it.each([
    ['a record', { text: 'x' }, '{{text}}', 'record'],
    ['a prompt with a model, which are data then', { prompt: 'x', model: 'XPS 13' }, '{{prompt}}', 'record'],
    ['a whole request', { messages }, '{{text}}', 'request'],
    ['a Batch API line', batchLine, '{{text}}', 'batch_line'],
    ['messages the template names as data', { messages }, 'Sum up: {{messages}}', 'record'],
    ['one message the template names', { messages }, 'Sum up: {{messages.0.content}}', 'record'],
    ['a body the template names as data', { custom_id: 'a', body: { text: 'x' } }, '{{body.text}}', 'record'],
    ['messages that are no list', { messages: 'x' }, '{{text}}', 'record'],
  ])('takes %s as it is meant where requests go as they are', (_name, line, promptTemplate, form) => {
    expect(parse(line, { promptTemplate, requestsAsTheyAre: true })).toMatchObject({ form });
  });

  it.each([
    ['a whole request', { text: 'x', messages, model: 'dear', service_tier: 'priority', tools: [] }],
    ['a Batch API line', { ...batchLine, text: 'x' }],
    [
      'a Batch API line without custom_id',
      { text: 'x', url: '/v1/chat/completions', method: 'POST', body: {} },
    ],
    [
      'a url of nowhere',
      { text: 'x', custom_id: 'a', url: '/v1/files', method: 'DELETE', body: { messages } },
    ],
  ])('takes %s as a record like any other, for documents must not choose what is sent', (_name, line) => {
    expect(parse(line, { promptTemplate: '{{text}}' })).toMatchObject({ form: 'record', request: null });
  });
});

describe('a parsed line', () => {
  it('sends all of a request but the fields of this program', () => {
    const line = {
      id: 1,
      custom_id: 'a',
      metadata: { b: 2 },
      priority: 3,
      sku: 'x',
      model: 'm',
      messages,
      top_k: 5,
    };
    expect(parse(line, { idField: 'sku' })).toMatchObject({
      request: { model: 'm', messages, top_k: 5 },
      priority: 3,
      metadataJson: '{"b":2}',
    });
    expect(Object.keys((parse(line, { idField: 'sku' }) as { request: object }).request)).toEqual([
      'model',
      'messages',
      'top_k',
    ]);
  });

  it('sends the body of a Batch API line as it is, its metadata too', () => {
    const body = { messages, metadata: { kept: 'yes' }, model: 'm' };
    expect(parse({ ...batchLine, body, metadata: 'carried' })).toMatchObject({
      request: body,
      metadataJson: '"carried"',
    });
  });

  it('carries metadata of any kind with every digit', () => {
    expect(
      parse('{"text":"x","metadata":{"id":12345678901234567890,"n":[-9007199254740993]}}'),
    ).toMatchObject({
      metadataJson: '{"id":12345678901234567890,"n":[-9007199254740993]}',
    });
    expect(parse({ text: 'x', metadata: 0 })).toMatchObject({ metadataJson: '0' });
    expect(parse({ text: 'x', metadata: null })).toMatchObject({ metadataJson: null });
    expect(parse({ text: 'x' })).toMatchObject({ metadataJson: null });
  });

  it.each([
    ['a whole number', 7, 7],
    ['a negative number', -2, -2],
    ['digits as text', '12', 12],
    ['a word in a record, which is data', 'high', null],
    ['a fraction in a record, which is data', 0.5, null],
    ['nothing', undefined, null],
  ])('reads %s as priority', (_name, priority, expected) => {
    expect(parse({ text: 'x', priority })).toMatchObject({ priority: expected });
  });

  it('takes the last of two fields with one name', () => {
    expect(parse('{"text":"first","text":"last"}')).toMatchObject({ fields: { text: 'last' } });
  });

  it('keeps a field called __proto__ a field, also in what is sent', () => {
    const parsed = parse('{"messages":[{"role":"user","content":"x"}],"__proto__":{"stream":true},"id":1}');
    expect(JSON.stringify((parsed as { request: object }).request)).toBe(
      '{"messages":[{"role":"user","content":"x"}],"__proto__":{"stream":true}}',
    );
  });
});

describe('a bad line', () => {
  it.each([
    ['no JSON', 'hello', { reason: 'not JSON: expected a value at character 1, found "h"' }],
    ['a list', '[{"text":"x"}]', { reason: 'a JSON array, where each line must be one JSON object' }],
    ['a string', '"x"', { reason: 'a string, where each line must be one JSON object' }],
    ['a number', '1', { reason: 'a number, where each line must be one JSON object' }],
    ['null', 'null', { reason: 'null, where each line must be one JSON object' }],
    ['a lone high surrogate', '{"a":{"b":["x\\uD83d"]}}', { field: 'a.b.0' }],
    ['a lone low surrogate', '{"a":"\\ude00x"}', { field: 'a' }],
    [
      'a lone surrogate in a name',
      '{"a\\ud83d":1}',
      { reason: expect.stringMatching(/^"a\\ud83d" holds half/) },
    ],
    ['a lone surrogate beside digits', '{"a":"\\ud800123","n":9007199254740993}', { field: 'a' }],
    [
      'a number without bounds',
      '{"a":[1e999]}',
      { reason: 'a.0 is a number beyond all range; write it as a string', field: 'a.0' },
    ],
    [
      'an integer beyond 2^53 in a request',
      '{"messages":[{"role":"user","content":"x"}],"seed":9007199254740993}',
      { reason: 'seed is an integer beyond 2^53 and would be rounded; write it as a string', field: 'seed' },
    ],
    [
      'one in a body',
      '{"custom_id":"a","body":{"messages":[{"n":9007199254740993}]}}',
      { field: 'body.messages.0.n' },
    ],
    [
      'nesting without end',
      `{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`,
      { reason: 'nested too deeply' },
    ],
    [
      'another url',
      { ...batchLine, url: '/v1/images/generations' },
      {
        reason:
          'url "/v1/images/generations" is not supported; only /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/completions, /v1/moderations are',
        field: 'url',
      },
    ],
    [
      'another method',
      { ...batchLine, method: 'GET' },
      { reason: 'method "GET" is not supported; only POST is', field: 'method' },
    ],
    ['a body without messages', { ...batchLine, body: { prompt: 'x' } }, { reason: 'body has no messages' }],
    ['no body', { ...batchLine, body: undefined }, { reason: 'body has no messages' }],
    [
      'a priority that is none',
      { messages, priority: 'high' },
      { reason: 'priority must be a whole number, not "high"', field: 'priority' },
    ],
  ])('is %s', (_name, line, problem) => {
    expect(parse(line)).toMatchObject(problem);
  });

  it('is none of these', () => {
    expect(parse('{"a":"\\ud83d\\ude00 \\\\ud83d","b":"😀"}')).toMatchObject({ fields: { a: '😀 \\ud83d' } });
    expect(parse('{"id":9007199254740993,"text":"x","metadata":9007199254740993}')).toMatchObject({
      fields: { id: 9007199254740993n },
    });
    expect(parse('{"id":9007199254740993,"messages":[],"metadata":9007199254740993}')).toMatchObject({
      form: 'request',
    });
    for (const url of [
      '/chat/completions',
      '/v1/chat/completions/',
      'https://api.openai.com/v1/chat/completions',
      '/openai/deployments/mini/chat/completions?api-version=2024-10-21',
      'https://mine.openai.azure.com/openai/deployments/mini/chat/completions?api-version=2024-10-21',
    ]) {
      expect(parse({ ...batchLine, url }), url).toMatchObject({ form: 'batch_line', endpoint: 'chat' });
    }
  });

  it('is told in few words, however long its values are', () => {
    const { reason } = parse({ ...batchLine, url: 'x'.repeat(100_000) }) as { reason: string };
    expect(reason.length).toBeLessThan(200);
  });
});
