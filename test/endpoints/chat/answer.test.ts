import { describe, expect, it } from 'vitest';
import type { FailureKind } from '../../../src/core/failure.js';
import type { Json } from '../../../src/core/json.js';
import { createRedactor } from '../../../src/core/redact.js';
import { readAnswer } from '../../../src/provider/openai/answer.js';

const context = {
  url: 'https://api.example.test/v1/chat/completions',
  nowMs: 0,
  redact: createRedactor([]),
};
const USAGE = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };

function read(content: string | Json, headers: Record<string, string> = {}) {
  return readAnswer(
    { endpoint: 'chat', bodyJson: '{}', parts: 1 },
    {
      status: 200,
      headers: new Headers({ 'content-type': 'application/json', ...headers }),
      content: typeof content === 'string' ? content : JSON.stringify(content),
      isUtf8: true,
    },
    context,
  );
}

function completion(message: Json, finishReason: Json = 'stop', more: { [key: string]: Json } = {}): Json {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    model: 'model-2026',
    choices: [{ index: 0, message, finish_reason: finishReason }],
    usage: USAGE,
    ...more,
  };
}

describe('an answer', () => {
  it('holds text, model, finish reason, usage, request id, limits and the body itself', () => {
    const body = completion({ role: 'assistant', content: 'positive', refusal: null }, 'stop', {
      error: null,
    });
    expect(
      read(body, {
        'x-request-id': 'req_1',
        'x-ratelimit-remaining-requests': '5',
      }),
    ).toEqual({
      ok: true,
      parts: [
        {
          ok: true,
          outputJson: '"positive"',
          text: 'positive',
          finishReason: 'stop',
          responseJson: JSON.stringify(body),
        },
      ],
      model: 'model-2026',
      usage: {
        inputTokens: 9,
        outputTokens: 3,
        cachedTokens: 0,
        reasoningTokens: 0,
        answeredBy: 'model-2026',
      },
      costMicroUsd: null,
      httpStatus: 200,
      requestId: 'req_1',
      hints: { requests: { remaining: 5 } },
    });
  });

  it.each<[string, Json, string, string]>([
    ['a finish reason nobody knows', completion({ content: 'x' }, 'eos_token'), 'x', 'eos_token'],
    ['no finish reason', completion({ content: 'x' }, null), 'x', 'unknown'],
    ['no usage', { choices: [{ message: { content: 'x' } }] }, 'x', 'unknown'],
    ['an empty refusal', completion({ content: 'x', refusal: '' }), 'x', 'stop'],
    ['white space alone', completion({ content: '\n' }), '\n', 'stop'],
    ['NUL and half a surrogate pair', completion({ content: 'a\u0000b\ud800c' }), 'a\u0000b\ud800c', 'stop'],
    [
      'content in parts, reasoning among them',
      completion({
        content: [
          { type: 'thinking', thinking: [] },
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      }),
      'ab',
      'stop',
    ],
    [
      'tool calls',
      completion(
        {
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"n":1}' } }],
        },
        'tool_calls',
      ),
      '[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\\"n\\":1}"}}]',
      'tool_calls',
    ],
    [
      'a function call',
      completion({ content: null, function_call: { name: 'f', arguments: '{}' } }, 'function_call'),
      '{"name":"f","arguments":"{}"}',
      'function_call',
    ],
  ])('may come with %s', (_what, body, output, finishReason) => {
    expect(read(body)).toMatchObject({ ok: true, parts: [{ text: output, finishReason }] });
  });

  it('may stand behind blank lines that kept the connection open', () => {
    expect(read(`\n\n\n${JSON.stringify(completion({ content: 'x' }))}`)).toMatchObject({
      ok: true,
      parts: [{ text: 'x' }],
    });
  });
});

describe('HTTP 200 that is no answer', () => {
  it.each<[string, Json]>([
    ['cut off', completion({ content: 'po' }, 'length', { service_tier: 'flex' })],
    ['filtered', completion({ content: '' }, 'content_filter', { service_tier: 'flex' })],
    ['refused', completion({ content: null, refusal: 'No.' }, 'stop', { service_tier: 'flex' })],
    ['empty', completion({ content: '' }, 'stop', { service_tier: 'flex' })],
    ['an error beside its usage', { error: 'it broke', usage: USAGE, service_tier: 'flex' }],
  ])('was billed by the tier that answered: %s', (_what, body) => {
    expect(read(body)).toMatchObject({ ok: false, usage: { inputTokens: 9, serviceTier: 'flex' } });
  });

  it.each<[string, string | Json, FailureKind, string?]>([
    ['HTML', '<!doctype html><title>Sign in</title>', 'network'],
    ['an empty body', '', 'network'],
    ['blank lines', '\n\n', 'network'],
    ['truncated JSON', '{"choices":[{"message":{"content":"po', 'network'],
    ['a text', 'upstream busy', 'network'],
    ['a stream', 'data: {"choices":[]}\n\n', 'network'],
    ['null', 'null', 'bad_output'],
    ['a JSON text', '"hello"', 'bad_output'],
    ['an empty list', '[]', 'bad_output'],
    ['no choices', { usage: USAGE }, 'bad_output'],
    ['empty choices', { choices: [], usage: USAGE }, 'bad_output'],
    ['choices that are none', { choices: [null] }, 'bad_output'],
    ['no message', { choices: [{ finish_reason: 'stop' }] }, 'bad_output'],
    ['empty content', completion({ content: '' }), 'bad_output'],
    ['content null', completion({ content: null }), 'bad_output'],
    ['empty tool calls', completion({ content: null, tool_calls: [] }, 'tool_calls'), 'bad_output'],
    ['an error with a status', { error: { code: 502, message: 'Upstream' } }, 'overloaded'],
    ['an error of money', { error: { code: 402, message: 'Credits' }, choices: [] }, 'quota_exhausted'],
    [
      'an error in a list',
      [{ error: { code: 429, message: 'Slow', status: 'RESOURCE_EXHAUSTED' } }],
      'rate_limited',
    ],
    ['an error as text', { error: 'it broke' }, 'bad_output'],
    ['a flat error', { object: 'error', message: 'busy', type: 'overloaded_error' }, 'overloaded'],
    [
      'an error in the choice',
      { choices: [{ finish_reason: 'error', error: { code: 429, message: 'Slow' } }] },
      'rate_limited',
    ],
    ['the length limit', completion({ content: 'part of' }, 'length'), 'truncated', 'part of'],
    ['the length limit before any text', completion({ content: '' }, 'length'), 'truncated'],
    ["the context's end (Mistral)", completion({ content: 'part' }, 'model_length'), 'truncated', 'part'],
    ['the content filter', completion({ content: 'so' }, 'content_filter'), 'content_filtered', 'so'],
    [
      'the content filter, without a message',
      { choices: [{ finish_reason: 'content_filter' }] },
      'content_filtered',
    ],
    ['the content filter, with its reason', completion({}, 'content_filter: OTHER'), 'content_filtered'],
    ['a refusal', completion({ content: null, refusal: 'I cannot' }), 'refused', 'I cannot'],
    ['a model that broke off (OpenRouter)', completion({ content: 'half' }, 'error'), 'overloaded', 'half'],
    [
      'no resources (DeepSeek)',
      completion({ content: 'half' }, 'insufficient_system_resource'),
      'overloaded',
      'half',
    ],
  ])('%s', (_what, content, kind, partialOutput) => {
    const reply = read(content);
    expect(reply).toMatchObject({ ok: false, failure: { kind, httpStatus: 200 } });
    const partialOutputJson = partialOutput === undefined ? undefined : JSON.stringify(partialOutput);
    expect('failure' in reply && reply.failure.partialOutputJson).toBe(partialOutputJson);
  });

  it.each([
    ['the length limit', completion({ content: 'part' }, 'length')],
    ['a refusal', completion({ refusal: 'no' })],
    ['empty content', completion({ content: '' })],
    ['an error beside it', { error: { code: 502 }, usage: USAGE }],
  ])('counts what was billed: %s', (_what, body) => {
    expect(read(body)).toMatchObject({ ok: false, usage: { inputTokens: 9, outputTokens: 3 } });
  });

  it('tells a stream that nobody can read from a page that a gateway made', () => {
    expect(read('data: {}\n\n', { 'content-type': 'text/event-stream' })).toMatchObject({
      failure: { kind: 'invalid_request', message: expect.stringContaining('stream') },
    });
    expect(read('<!doctype html><title>Sign in</title>')).toMatchObject({
      failure: { message: 'The answer is an HTML page: Sign in' },
    });
  });
});
