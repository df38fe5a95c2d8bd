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
    ['by its input and its model', { model: 'gpt-4o-mini', input: 'Hello' }, 'responses'],
    ['by its input and its cap', { model: 'm', input: MESSAGES, max_output_tokens: 16 }, 'responses'],
    ['by its url', batchLine('/v1/responses', { model: 'm', input: 'Hello' }), 'responses'],
    ['in a body', { custom_id: 'a', body: { model: 'gpt-4o-mini', input: 'Hello' } }, 'responses'],
    ['by a list of prompts', { model: 'm', prompt: ['a', 'b'] }, 'completions'],
    ['by a field that chat has not', { model: 'm', prompt: 'a', echo: true }, 'completions'],
    ['by the model', { model: 'gpt-3.5-turbo-instruct', prompt: 'a' }, 'completions'],
    ['by the url', batchLine('/v1/completions', { model: 'm', prompt: 'Hello' }), 'completions'],
    ['by its model', { model: 'omni-moderation-latest', input: 'Hello' }, 'moderations'],
    ['by a url without a model', batchLine('/v1/moderations', { input: 'Hello' }), 'moderations'],
  ])('%s, of the later ones: %j', (_how, line, endpoint) => {
    expect(read(line, { model: null })).toMatchObject({ endpoint });
  });

  it('and to no other than those that are known', () => {
    expect(read(batchLine('/v1/images/generations', { model: 'm', prompt: 'A cat' }))).toMatchObject({
      reason: expect.stringMatching(/not supported; only \/v1\/chat\/completions, .*\/v1\/moderations are/),
    });
  });

  it('beside a prompt that does not use it only where no record would look so', () => {
    const settings = { promptTemplate: 'About {{title}}', requestsAsTheyAre: true };
    expect(read({ title: 'A', model: 'm', input: MESSAGES }, settings)).toMatchObject({
      endpoint: 'responses',
    });
    expect(read({ title: 'A', model: 'XPS', input: 'HDMI' }, settings)).toMatchObject({ endpoint: 'chat' });
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
    ['moderations', { model: 'm', input: 'Hello' }],
    ['moderations', { input: ['a', 'b'] }],
    ['completions', { model: 'm', prompt: 'Hello' }],
    ['completions', { prompt: [[1, 2]] }],
    ['responses', { input: MESSAGES }],
  ] as const)('takes for %s what shows no endpoint of its own: %j', (endpoint, line) => {
    expect(read(line, { endpoint })).toMatchObject({ endpoint });
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
    [
      'a moderation',
      { model: 'omni-moderation-latest', input: 'x' },
      'responses',
      'is a request for moderations, and the run is for responses',
    ],
    [
      'prompts',
      { prompt: ['a'], model: 'm' },
      'chat',
      'is a request for completions, and the run is for chat',
    ],
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
