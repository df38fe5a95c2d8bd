import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/core/json.js';
import { simulatedVector } from '../../src/simulator/embeddings.js';
import { json, type RawReply, send, simulate } from './raw-call.js';

const PATH = { path: '/v1/embeddings' };

function body(input: JsonObject['x'], extra: JsonObject = {}): JsonObject {
  return { model: 'text-embedding-3-small', input: input ?? null, ...extra };
}

/** `[index, vector]` in the order of the answer. */
function vectorsOf(reply: RawReply): [unknown, unknown][] {
  const { data } = json(reply) as unknown as { data: { index: unknown; embedding: unknown }[] };
  return data.map(({ index, embedding }) => [index, embedding]);
}

describe('a simulated embedding', () => {
  it('is made of the text alone, as long as asked, and another for another text', async () => {
    const simulator = await simulate();
    // It has no choices to be one of, so nobody looks at `n`.
    const reply = await send(simulator, body(['one', 'two'], { dimensions: 5, n: 2 }), PATH);
    expect(json(reply)).toMatchObject({ object: 'list', model: 'simulated/text-embedding-3-small' });
    expect(vectorsOf(reply)).toEqual([
      [0, simulatedVector('one', 5)],
      [1, simulatedVector('two', 5)],
    ]);
    expect(simulatedVector('one', 5)).not.toEqual(simulatedVector('two', 5));
    for (const member of simulatedVector('one', 1_000)) expect(Math.abs(member)).toBeLessThanOrEqual(1);
  });

  it('costs a token for four bytes of text, or as many as are sent', async () => {
    const simulator = await simulate();
    const usage = async (input: JsonObject['x']) => json(await send(simulator, body(input), PATH))['usage'];
    expect(await usage('12345678')).toEqual({ prompt_tokens: 2, total_tokens: 2 });
    expect(await usage(['12345', '1'])).toEqual({ prompt_tokens: 3, total_tokens: 3 });
    expect(await usage([[1, 2, 3], [4]])).toEqual({ prompt_tokens: 4, total_tokens: 4 });
  });

  it.each<[string, JsonObject]>([
    ['no model', { input: 'x' }],
    ['no input', { model: 'm' }],
    ['an empty text', body('')],
    ['no texts', body([])],
    ['an empty text among others', body(['x', ''])],
    ['more than 2,048 inputs', body(Array.from({ length: 2_049 }, () => 'x'))],
    ['a text above 8,192 tokens', body('x'.repeat(4 * 8_193))],
    ['more than 300,000 tokens together', body(Array.from({ length: 40 }, () => 'x'.repeat(4 * 8_000)))],
    ['base64', body('x', { encoding_format: 'base64' })],
  ])('is refused with 400 for %s', async (_what, request) => {
    expect((await send(await simulate(), request, PATH)).status).toBe(400);
  });
});

describe('what a text of a call can ask for', () => {
  it('moves all vectors, each with its index', async () => {
    const reply = await send(await simulate(), body(['a', 'b', 'c [[simulate:shuffled]]']), PATH);
    const found = vectorsOf(reply);
    expect(found.map(([index]) => index)).not.toEqual([0, 1, 2]);
    expect(found.find(([index]) => index === 1)).toEqual([1, simulatedVector('b')]);
  });

  it.each<[string, unknown[]]>([
    ['missing-index', [0, 2]],
    ['unknown-index', [0, 3, 2]],
    ['doubled-index', [0, 1, 2, 1]],
  ])('%s touches its own vector alone', async (name, indexes) => {
    const reply = await send(await simulate(), body(['a', `b [[simulate:${name}]]`, 'c']), PATH);
    const found = vectorsOf(reply);
    expect(found.map(([index]) => index)).toEqual(indexes);
    expect(found[0]).toEqual([0, simulatedVector('a')]);
  });

  it('shortens its vector', async () => {
    const reply = await send(await simulate(), body(['a', 'b [[simulate:length]]']), PATH);
    expect(vectorsOf(reply).map(([, vector]) => (vector as unknown[]).length)).toEqual([32, 16]);
  });

  it('fails the whole call, as a bad document does with real servers', async () => {
    const reply = await send(await simulate(), body(['a', 'b [[simulate:bad-request]]']), PATH);
    expect(reply.status).toBe(400);
  });
});

it('the books know each text of a call, and count calls once', async () => {
  const simulator = await simulate();
  await send(simulator, body(['a', 'b']), PATH);
  await send(simulator, body(['b', 'c']), PATH);
  await send(simulator, body('c [[simulate:bad-request]]'), PATH);
  expect(simulator.books()).toMatchObject({
    calls: 3,
    accepted: 2,
    documents: 4,
    repeatedCalls: 1,
    repeatedAccepted: 1,
    promptTokens: 4,
    completionTokens: 0,
  });
});
