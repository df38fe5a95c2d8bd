/** Which endpoint a line goes to, and which lines go nowhere rather than to the wrong one. */
import { describe, expect, it } from 'vitest';
import { createStoredRequestReader } from '../../src/documents/read.js';
import type { RequestSettings } from '../../src/documents/request.js';

const MESSAGES = [{ role: 'user', content: 'Hello' }];

function read(line: object, settings: Partial<RequestSettings> = {}) {
  const all = { model: 'm', promptTemplate: null, systemTemplate: null, parameters: {}, idField: null };
  return createStoredRequestReader({ ...all, ...settings })(JSON.stringify(line));
}

const batchLine = (url: string, body: object) => ({ custom_id: 'a', method: 'POST', url, body });
const EMBEDDING = { model: 'bge-m3', input: 'Hello' };

describe('a line that shows its endpoint', () => {
  it.each([
    ['by its url', batchLine('/v1/embeddings', { model: 'own', input: 'Hello' }), 'embeddings'],
    [
      'by its url as Azure writes it',
      batchLine('/embeddings', { model: 'own', input: 'Hello' }),
      'embeddings',
    ],
    ['by a field of its own', { model: 'own', input: 'Hello', encoding_format: 'base64' }, 'embeddings'],
    ['by the length it asks for', { model: 'own', input: 'Hello', dimensions: 8 }, 'embeddings'],
    ['by its model', EMBEDDING, 'embeddings'],
    ['in the body of a line without url', { custom_id: 'a', body: EMBEDDING }, 'embeddings'],
    ['by its messages, whatever else it has', { messages: MESSAGES, input: 'x', dimensions: 8 }, 'chat'],
    ['by its prompt', { model: 'm', prompt: 'Hello' }, 'chat'],
    ['as a record, by nothing', { text: 'Hello', dimensions: 8 }, 'chat'],
    ['as a record whose input is data', { input: 'Hello', output: 'Bye' }, 'chat'],
  ])('%s', (_how, line, endpoint) => {
    expect(read(line)).toMatchObject({ endpoint });
  });

  it.each([
    ['responses', { model: 'gpt-4o-mini', input: 'Hello' }, '/v1/responses'],
    [
      'responses with items',
      { model: 'gpt-4o-mini', input: MESSAGES, max_output_tokens: 16 },
      '/v1/responses',
    ],
    ['completions', { model: 'm', prompt: ['a', 'b'] }, '/v1/completions'],
    ['completions by their model', { model: 'gpt-3.5-turbo-instruct', prompt: 'a' }, '/v1/completions'],
    ['moderations', { model: 'omni-moderation-latest', input: 'Hello' }, '/v1/moderations'],
    [
      'responses in a body',
      { custom_id: 'a', body: { model: 'gpt-4o-mini', input: 'Hello' } },
      '/v1/responses',
    ],
    ['responses by its url', batchLine('/v1/responses', { model: 'm', input: 'Hello' }), '/v1/responses'],
  ])('that is not there yet is told so: %s', (_what, line, url) => {
    expect(read(line)).toMatchObject({
      reason: expect.stringMatching(new RegExp(`${url}\\b.* not supported`)),
    });
  });
});

describe('a run that names its endpoint', () => {
  it.each([
    ['a record', { text: 'Hello' }, { model: 'm', input: 'Hello' }],
    ['a record whose text is called input', { input: 'Hello' }, { model: 'm', input: 'Hello' }],
    ['any input with a model', { model: 'own', input: 'Hello' }, { model: 'own', input: 'Hello' }],
    ['a list of inputs', { input: ['a', 'b'] }, { model: 'm', input: ['a', 'b'] }],
    ['a body without url', { custom_id: 'a', body: { input: 'Hello' } }, { model: 'm', input: 'Hello' }],
  ])('sends there %s', (_what, line, body) => {
    const request = read(line, { endpoint: 'embeddings' });
    if ('reason' in request) throw new Error(request.reason);
    expect(JSON.parse(request.bodyJson)).toEqual({ ...body, encoding_format: 'float' });
  });

  it.each([
    [
      'messages',
      { messages: MESSAGES },
      'embeddings',
      'is a request for chat, and the run is for embeddings',
    ],
    [
      'a url',
      batchLine('/v1/embeddings', EMBEDDING),
      'chat',
      'url "/v1/embeddings" is for embeddings, and the run is for chat',
    ],
    ['an embedding', EMBEDDING, 'chat', 'is a request for embeddings, and the run is for chat'],
  ] as const)('takes no line of another: %s', (_what, line, endpoint, reason) => {
    expect(read(line, { endpoint })).toMatchObject({ reason });
  });

  it('renders the template as the text, and takes what is no request for data', () => {
    const settings = { endpoint: 'embeddings', promptTemplate: '{{title}}: {{input}}' } as const;
    const request = read({ title: 'A', input: 'Hello', model: 'XPS' }, settings);
    expect(request).toMatchObject({ endpoint: 'embeddings', model: 'm', inputText: 'A: Hello' });
  });
});

describe('a line of another endpoint than the run is for', () => {
  it('names its own model', () => {
    expect(read(batchLine('/v1/embeddings', { input: 'Hello' }))).toMatchObject({ field: 'body.model' });
  });

  it.each([
    ['parameters', { parameters: { temperature: 0 } }],
    ['a system message', { systemTemplate: 'Be brief.' }],
  ])('gets none of its %s, and is told so', (_what, settings) => {
    expect(read(EMBEDDING, settings)).toMatchObject({ reason: expect.stringContaining('is for chat') });
  });
});
