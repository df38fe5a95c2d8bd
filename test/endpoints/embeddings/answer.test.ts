/** A vector is its document's or nobody's: never that of a neighbour, whatever the server makes of order and index. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../../src/core/json.js';
import { createRedactor } from '../../../src/core/redact.js';
import { readAnswer } from '../../../src/provider/openai/answer.js';

const context = { url: 'http://127.0.0.1/v1/embeddings', nowMs: 0, redact: createRedactor([]) };

function read(data: Json, input: Json, { parts = 1, isUtf8 = true, more = {} as JsonObject } = {}) {
  const body = { object: 'list', data, model: 'm-1', usage: { prompt_tokens: 5, total_tokens: 5 } };
  const bodyJson = JSON.stringify({ model: 'm', input, ...more });
  const received = { status: 200, headers: new Headers(), content: JSON.stringify(body), isUtf8 };
  return readAnswer({ endpoint: 'embeddings', bodyJson, parts }, received, context);
}

const item = (index: Json, embedding: Json): JsonObject => ({ object: 'embedding', index, embedding });

/** What the documents a, b and c of one call get. */
function partsOf(data: Json): (string | undefined)[] {
  const reply = read(data, ['a', 'b', 'c'], { parts: 3 });
  if (!reply.ok) throw new Error(reply.failure.message);
  return reply.parts.map((part) => (part.ok ? part.outputJson : part.failure.message));
}

describe('the answer to one document', () => {
  it('is its vector, with no text and no reason to end', () => {
    expect(read([item(0, [0.1, -2])], 'a')).toMatchObject({
      ok: true,
      parts: [{ ok: true, outputJson: '[0.1,-2]', text: null, finishReason: '' }],
      model: 'm-1',
      usage: { inputTokens: 5, outputTokens: 0 },
    });
  });

  it('is a list of vectors where it has a list of inputs, in the order of these', () => {
    const answer = [item(1, [3, 4]), item(0, [1, 2])];
    expect(read(answer, ['a', 'b'])).toMatchObject({ parts: [{ outputJson: '[[1,2],[3,4]]' }] });
    expect(read([item(0, [1, 2])], ['a'])).toMatchObject({ parts: [{ outputJson: '[[1,2]]' }] });
    expect(read([item(0, [1, 2])], [7, 8])).toMatchObject({ parts: [{ outputJson: '[1,2]' }] });
  });

  it('may leave out the index, for there is no other', () => {
    expect(read([{ embedding: [1] }], 'a')).toMatchObject({ parts: [{ outputJson: '[1]' }] });
    expect(read([{ embedding: [1] }, { embedding: [2] }], 'a')).toMatchObject({ ok: false });
  });

  it.each<[string, Json, Json]>([
    ['no data', null, 'a'],
    ['no vector', [], 'a'],
    ['another index', [item(1, [1])], 'a'],
    ['two vectors', [item(0, [1]), item(0, [1])], 'a'],
    ['base64', [item(0, 'zczMPQ==')], 'a'],
    ['an empty vector', [item(0, [])], 'a'],
    ['a hole in the vector', [item(0, [1, null])], 'a'],
    ['one of several inputs without vector', [item(0, [1])], ['a', 'b']],
    ['vectors of two lengths for one document', [item(0, [1]), item(1, [1, 2])], ['a', 'b']],
  ])('is none, and was billed, with %s', (_what, data, input) => {
    expect(read(data, input)).toMatchObject({
      ok: false,
      failure: { kind: 'bad_output', httpStatus: 200 },
      usage: { inputTokens: 5 },
    });
  });

  it('is none with a number beyond all range, or bytes that are no text', () => {
    expect(read([item(0, [1])], 'a', { isUtf8: false })).toMatchObject({ ok: false });
    const content = '{"data":[{"index":0,"embedding":[1e999]}]}';
    const request = { endpoint: 'embeddings', bodyJson: '{"input":"a"}', parts: 1 } as const;
    const received = { status: 200, headers: new Headers(), content, isUtf8: true };
    expect(readAnswer(request, received, context)).toMatchObject({ failure: { kind: 'bad_output' } });
  });

  it('has the length that was asked for', () => {
    expect(read([item(0, [1, 2])], 'a', { more: { dimensions: 2 } })).toMatchObject({ ok: true });
    expect(read([item(0, [1, 2, 3])], 'a', { more: { dimensions: 2 } })).toMatchObject({
      failure: { kind: 'bad_output', message: expect.stringContaining('3 numbers, where 2 were asked for') },
    });
  });
});

describe('the answer to several documents', () => {
  it('gives each its vector by index, in any order', () => {
    expect(partsOf([item(2, [3]), item(0, [1]), item(1, [2])])).toEqual(['[1]', '[2]', '[3]']);
  });

  it.each<[string, Json, (string | RegExp)[]]>([
    ['missing', [item(0, [1]), item(2, [3])], ['[1]', /no vector for this/, '[3]']],
    ['unknown', [item(0, [1]), item(7, [2]), item(2, [3])], ['[1]', /no vector for this/, '[3]']],
    ['doubled', [item(0, [1]), item(0, [2]), item(2, [3])], [/two vectors/, /no vector/, '[3]']],
    ['left out', [{ embedding: [1] }, item(1, [2]), item(2, [3])], [/no vector/, '[2]', '[3]']],
    ['text', [item('0', [1]), item(1, [2]), item(2, [3])], [/no vector/, '[2]', '[3]']],
    ['negative or broken', [item(-1, [1]), item(0.5, [1]), item(2, [3])], [/no vector/, /no vector/, '[3]']],
  ])('where an index is %s fails whom that leaves without, and nobody else', (_what, data, wanted) => {
    for (const [at, part] of partsOf(data).entries()) {
      const expected = wanted[at] ?? '';
      if (typeof expected === 'string') expect(part).toBe(expected);
      else expect(part).toMatch(expected);
    }
  });

  it('fails a vector of another length than the others have', () => {
    expect(partsOf([item(0, [1, 2]), item(1, [1]), item(2, [3, 4])])).toEqual([
      '[1,2]',
      expect.stringContaining('1 numbers, where the others have 2'),
      '[3,4]',
    ]);
  });

  it('never gives a document another’s vector, whatever is dropped, doubled, moved or renamed', () => {
    const indexes = fc.array(fc.oneof(fc.integer({ min: -1, max: 6 }), fc.constant(null)), { maxLength: 9 });
    const check = (asked: readonly (number | null)[]): void => {
      // The vector says whose it is meant to be.
      const reply = read(
        asked.map((index) => item(index, [index ?? -9])),
        ['a', 'b', 'c', 'd', 'e'],
        { parts: 5 },
      );
      if (!reply.ok) throw new Error(reply.failure.message);
      expect(reply.parts).toHaveLength(5);
      for (const [at, part] of reply.parts.entries()) {
        const own = asked.filter((index) => index === at).length;
        expect(part.ok ? part.outputJson : null).toBe(own === 1 ? `[${at}]` : null);
      }
    };
    fc.assert(fc.property(indexes, check), { numRuns: 500 });
  });
});
