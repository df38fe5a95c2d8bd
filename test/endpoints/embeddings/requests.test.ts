import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/core/json.js';
import { isLineProblem } from '../../../src/core/line-problem.js';
import { ENDPOINTS } from '../../../src/endpoints/endpoints.js';
import type { RenderedRequest } from '../../../src/endpoints/rendered-request.js';

const { embeddings } = ENDPOINTS;

function maker(parameters: JsonObject = {}) {
  return embeddings.createRequests({ model: 'm', parameters });
}

function ofBody(body: JsonObject, parameters: JsonObject = {}): RenderedRequest {
  const request = maker(parameters).ofBody(body, null);
  if (isLineProblem(request)) throw new Error(request.reason);
  return request;
}

function ofRecord(text: string, parameters: JsonObject = {}): RenderedRequest {
  const request = maker(parameters).ofRecord(text, null);
  if (isLineProblem(request)) throw new Error(request.reason);
  return request;
}

describe('an embeddings request', () => {
  it('always asks for numbers, whatever its line says, and generates nothing', () => {
    const request = ofBody({ input: 'Hello', encoding_format: 'base64', user: 'kim' }, { dimensions: 8 });
    expect(JSON.parse(request.bodyJson)).toEqual({
      model: 'm',
      input: 'Hello',
      encoding_format: 'float',
      user: 'kim',
      dimensions: 8,
    });
    expect(request).toMatchObject({ outputCap: 0, inputs: 1, attachments: [] });
    expect(JSON.parse(ofRecord('Hello "you"\n', { dimensions: 8 }).bodyJson)).toEqual({
      model: 'm',
      encoding_format: 'float',
      dimensions: 8,
      input: 'Hello "you"\n',
    });
  });

  it('shares calls with those alike but for the text, records and bodies too', () => {
    const keys = [
      ofRecord('a', { dimensions: 8 }),
      ofRecord('b', { dimensions: 8 }),
      ofBody({ input: 'c', dimensions: 8 }),
      ofBody({ dimensions: 8, input: 'd', model: 'm' }),
    ].map(({ groupKey }) => groupKey);
    expect(new Set(keys).size).toBe(1);
    const others = [ofRecord('a'), ofBody({ input: 'c', dimensions: 9 }), ofBody({ input: 'c', model: 'x' })];
    expect(new Set([keys[0], ...others.map(({ groupKey }) => groupKey)]).size).toBe(4);
  });

  it('goes alone where it is a list of inputs, or tokens', () => {
    expect(ofBody({ input: ['a', 'b', 'c'] })).toMatchObject({ groupKey: null, inputs: 3 });
    expect(ofBody({ input: [1, 2, 3] })).toMatchObject({ groupKey: null, inputs: 1 });
    expect(ofBody({ input: [[1, 2], [3]] })).toMatchObject({ groupKey: null, inputs: 2 });
  });

  it('is another request where the text, the parameters or the model differ', () => {
    const prints = [ofRecord('a'), ofRecord('b'), ofRecord('a', { dimensions: 8 }), ofBody({ input: 'a' })];
    expect(new Set(prints.map(({ fingerprint }) => fingerprint)).size).toBe(4);
  });

  it.each<[string, JsonObject, string]>([
    ['no input', {}, 'input'],
    ['an empty text', { input: ' ' }, 'input'],
    ['an empty list', { input: [] }, 'input'],
    ['an empty text in a list', { input: ['a', ''] }, 'input'],
    ['something else in a list', { input: ['a', { text: 'b' }] }, 'input'],
    ['fractions for tokens', { input: [1.5] }, 'input'],
    ['more inputs than a call takes', { input: Array.from({ length: 2_049 }, () => 'a') }, 'input'],
    ['a length that is none', { input: 'a', dimensions: '8' }, 'dimensions'],
    ['a model that is no name', { input: 'a', model: 4 }, 'model'],
    ['a stream', { input: 'a', stream: true }, 'stream'],
  ])('cannot be made of %s', (_what, body, field) => {
    expect(maker().ofBody(body, null)).toMatchObject({ reason: expect.any(String), field });
  });
});

describe('embeddings requests of one group key', () => {
  it('are one request, whose inputs are theirs in their order', () => {
    const bodies = [ofRecord('a', { dimensions: 8 }), ofBody({ input: 'b', dimensions: 8 })];
    const joined = embeddings.grouping?.join(bodies.map(({ bodyJson }) => bodyJson)) ?? '';
    expect(JSON.parse(joined)).toEqual({
      model: 'm',
      encoding_format: 'float',
      dimensions: 8,
      input: ['a', 'b'],
    });
  });
});
