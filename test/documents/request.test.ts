import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../src/core/json.js';
import { isLineProblem } from '../../src/core/line-problem.js';
import { createStoredRequestReader } from '../../src/documents/read.js';
import { modelOf, type RequestSettings, requestHash } from '../../src/documents/request.js';
import type { RenderedRequest } from '../../src/endpoints/rendered-request.js';

const noSettings: RequestSettings = {
  model: null,
  promptTemplate: null,
  systemTemplate: null,
  parameters: {},
  idField: null,
};

function read(line: unknown, settings: Partial<RequestSettings> = {}) {
  // Through JSON, as settings come out of the store.
  const stored = JSON.parse(JSON.stringify({ ...noSettings, ...settings })) as RequestSettings;
  return createStoredRequestReader(stored)(typeof line === 'string' ? line : JSON.stringify(line));
}

function rendered(line: unknown, settings: Partial<RequestSettings> = {}): RenderedRequest {
  const request = read(line, settings);
  if (isLineProblem(request)) throw new Error(request.reason);
  return request;
}

function bodyOf(line: unknown, settings: Partial<RequestSettings> = {}): unknown {
  return JSON.parse(rendered(line, settings).bodyJson);
}

const user = (content: Json) => ({ role: 'user', content });
const system = (content: Json) => ({ role: 'system', content });

describe('the request of a record', () => {
  it('is its rendered template with model, system message and parameters', () => {
    const settings = {
      model: 'm',
      promptTemplate: 'Classify "{{text}}"',
      systemTemplate: 'Be brief.',
      parameters: { temperature: 0, max_tokens: 5 },
    };
    const request = rendered({ text: 'so\n"so"' }, settings);
    expect(JSON.parse(request.bodyJson)).toEqual({
      model: 'm',
      messages: [system('Be brief.'), user('Classify "so\n"so""')],
      temperature: 0,
      max_tokens: 5,
    });
    expect(request).toMatchObject({
      endpoint: 'chat',
      model: 'm',
      outputCap: 5,
      inputText: 'Be brief.\nClassify "so\n"so""',
    });
  });

  it.each([
    [{ text: 't', prompt: 'p', content: 'c' }, 'p'],
    [{ document: 'd', content: 'c', text: 't' }, 't'],
    [{ document: 'd', content: 'c' }, 'c'],
    [{ id: 'x', document: 'd', title: 'y' }, 'd'],
    [{ input: 'i', language: 'de' }, 'i'],
    [{ prompt: 5, text: 't' }, 't'],
    [{ prompt: null, text: 't' }, 't'],
  ])('of %j without a template sends %s', (line, text) => {
    expect(bodyOf(line)).toEqual({ model: modelOf({ model: null }), messages: [user(text)] });
  });

  it('names the fields seen and the template to use when there is none to send', () => {
    expect(read({ id: 1, stars: 5, review: 'fine' })).toEqual({
      reason:
        "none of the fields prompt, text, content, document, input is a string; the fields are: id, stars, review; name the one to send in a prompt: '…{{review}}…'",
    });
    expect(read({})).toMatchObject({ reason: expect.stringContaining("a prompt: '…{{field}}…'") });
  });

  it('renders a system template for each document', () => {
    const settings = { systemTemplate: 'Answer in {{language}}.' };
    const read = createStoredRequestReader({ ...noSettings, ...settings });
    const systems = ['de', 'fr', 'fr', 'de'].map((language) => {
      const request = read(JSON.stringify({ text: 'x', language })) as RenderedRequest;
      return (JSON.parse(request.bodyJson) as { messages: unknown[] }).messages[0];
    });
    expect(systems).toEqual(['de', 'fr', 'fr', 'de'].map((language) => system(`Answer in ${language}.`)));
    expect(read('{"text":"x"}')).toMatchObject({ field: 'language' });
  });

  it('puts exact digits into the text', () => {
    expect(bodyOf('{"id":9007199254740993}', { promptTemplate: 'Look up {{id}}' })).toMatchObject({
      messages: [user('Look up 9007199254740993')],
    });
  });

  it.each([
    [
      'an empty text',
      { text: '' },
      {},
      { reason: 'the field text, which is the message, is empty', field: 'text' },
    ],
    ['a blank text', { text: ' \n\u00a0' }, {}, { field: 'text' }],
    [
      'a template that renders to nothing',
      { text: '' },
      { promptTemplate: ' {{text}} ' },
      { reason: 'the rendered prompt is empty' },
    ],
    ['a field the template wants', { text: 'x' }, { promptTemplate: '{{title}}' }, { field: 'title' }],
  ])('is refused for %s', (_name, line, settings, problem) => {
    expect(read(line, settings)).toMatchObject(problem);
  });

  it('lets an escape in a text be a text', () => {
    const text = '\u0000\u2028\\"{{x}}</s>😀';
    expect(bodyOf({ text }, { promptTemplate: '{{text}}' })).toMatchObject({ messages: [user(text)] });
  });
});

describe('the request of a line that is one', () => {
  it('keeps what the line says and fills the rest', () => {
    const line = { messages: [user('x')], temperature: 1, top_k: 3 };
    const settings = { model: 'm', parameters: { temperature: 0, top_p: 0.5 } };
    expect(bodyOf(line, settings)).toEqual({
      messages: [user('x')],
      temperature: 1,
      top_k: 3,
      model: 'm',
      top_p: 0.5,
    });
    expect(bodyOf({ ...line, model: 'own' }, settings)).toMatchObject({ model: 'own' });
    expect(bodyOf(line)).toMatchObject({ model: modelOf({ model: null }) });
  });

  it('never says the cap on the answer twice', () => {
    const parameters = { max_tokens: 10 };
    const capped = rendered({ messages: [user('x')], max_completion_tokens: 7 }, { parameters });
    expect(JSON.parse(capped.bodyJson)).not.toHaveProperty('max_tokens');
    expect(capped.outputCap).toBe(7);
    expect(rendered({ messages: [user('x')] }, { parameters }).outputCap).toBe(10);
    expect(rendered({ messages: [user('x')] }).outputCap).toBeNull();
  });

  it('makes a user message of a prompt', () => {
    expect(bodyOf({ model: 'm', prompt: 'p' })).toEqual({ model: 'm', messages: [user('p')] });
  });

  it('gets the system message only where it has none', () => {
    const settings = { systemTemplate: 'Be brief.' };
    const messagesOf = (messages: unknown) =>
      (bodyOf({ messages }, settings) as { messages: unknown }).messages;
    expect(messagesOf([user('x')])).toEqual([system('Be brief.'), user('x')]);
    expect(messagesOf([system('own'), user('x')])).toEqual([system('own'), user('x')]);
    expect(messagesOf([{ role: 'developer', content: 'own' }, user('x')])).toHaveLength(2);
    expect(bodyOf({ model: 'm', prompt: 'p' }, settings)).toMatchObject({
      messages: [system('Be brief.'), user('p')],
    });
  });

  it('is not rendered through the prompt template', () => {
    expect(bodyOf({ messages: [user('x')] }, { promptTemplate: 'Classify {{text}}' })).toMatchObject({
      messages: [user('x')],
    });
  });

  it('gives the text of all parts for estimates', () => {
    const parts = [
      { type: 'text', text: 'b' },
      { type: 'image_url', image_url: { url: 'data:…' } },
    ];
    expect(
      rendered({ messages: [system('a'), user(parts), { role: 'assistant', tool_calls: [] }] }).inputText,
    ).toBe('a\nb');
  });

  it.each([
    ['messages that are no list', { messages: 'x' }, { field: 'messages' }],
    ['no message', { messages: [] }, { reason: 'messages must be a list of at least one message' }],
    ['a message that is no object', { messages: [user('x'), 'y'] }, { field: 'messages.1' }],
    ['a message without role', { messages: [{ content: 'x' }] }, { field: 'messages.0' }],
    ['a prompt that is no text', { model: 'm', prompt: 5 }, { field: 'prompt' }],
    ['an empty prompt', { model: 'm', prompt: ' ' }, { field: 'prompt' }],
    [
      'a stream',
      { messages: [user('x')], stream: true },
      { reason: expect.stringContaining('stream must be left out'), field: 'stream' },
    ],
    [
      'several answers',
      { messages: [user('x')], n: 2 },
      { reason: 'n must be 1: one answer a document is kept', field: 'n' },
    ],
    ['a model that is no name', { messages: [user('x')], model: 4 }, { field: 'model' }],
    [
      'a stream in a body',
      { custom_id: 'a', body: { messages: [user('x')], stream: true } },
      { field: 'body.stream' },
    ],
  ])('is refused for %s', (_name, line, problem) => {
    expect(read(line)).toMatchObject(problem);
  });

  it('sends a field called __proto__ as the field it is', () => {
    const line = '{"messages":[{"role":"user","content":"x"}],"model":"m","__proto__":{"max_tokens":5}}';
    const request = rendered(line);
    expect(request.bodyJson).toBe(line);
    expect(request.outputCap).toBeNull();
  });
});

describe("a request's hash", () => {
  const textValue = fc.string({ unit: 'grapheme', maxLength: 6 }).map((text) => `.${text}`);
  const record = fc.record({ id: fc.integer(), text: textValue, title: textValue });
  const whole = fc.record({
    id: fc.integer(),
    messages: fc.array(fc.record({ role: fc.constantFrom('user', 'system'), content: textValue }), {
      minLength: 1,
      maxLength: 2,
    }),
    temperature: fc.constantFrom(0, 1),
  });
  const settings = fc.record({
    model: fc.constantFrom(null, 'm'),
    promptTemplate: fc.constantFrom(null, '{{text}}', '{{title}}{{text}}', '{{text}} '),
    systemTemplate: fc.constantFrom(null, 'S', '{{id}}'),
    parameters: fc.constantFrom({}, { temperature: 0 }),
    idField: fc.constant(null),
  });

  it.each([
    ['records', record],
    ['requests', whole],
  ])('of %s is the same exactly when the bodies are', (_name, line: fc.Arbitrary<{ id: number }>) => {
    fc.assert(
      fc.property(line, line, settings, settings, fc.boolean(), (one, other, first, second, sameLine) => {
        const left = rendered(one, first);
        const right = rendered(sameLine ? { ...one, id: other.id } : other, second);
        expect(requestHash(left) === requestHash(right)).toBe(left.bodyJson === right.bodyJson);
      }),
      { numRuns: 1_000 },
    );
  });

  it('stays the same from version to version, or finished answers would be paid for again', () => {
    const settings = { systemTemplate: 'Be brief.', parameters: { temperature: 0 } };
    expect(requestHash(rendered({ text: 'Käse' }, settings))).toBe('sha256:WiEXri8w1jtm6RI78qgcS2');
    expect(requestHash(rendered({ messages: [user('Käse')] }, settings))).toBe(
      'sha256:nX_8XMDBoDXKh0NYSHziv2',
    );
  });

  it('is not changed by id, metadata or priority, and is by the order of a schema', () => {
    const hash = (line: unknown): string => requestHash(rendered(line));
    const line = { id: 'a', messages: [user('x')], metadata: 1, priority: 2 };
    expect(hash({ ...line, id: 'b', metadata: 3, priority: 4 })).toBe(hash(line));
    const withSchema = (properties: object) => ({ messages: [user('x')], response_format: { properties } });
    expect(hash(withSchema({ a: 1, b: 2 }))).not.toBe(hash(withSchema({ b: 2, a: 1 })));
  });
});
