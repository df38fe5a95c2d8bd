import { describe, expect, it } from 'vitest';
import { openaiLine } from '../../src/results/openai-line.js';
import { completedRow, failedRow } from './rows.js';

describe('a Batch API output line', () => {
  it('holds the body as the server wrote it, whatever it holds', () => {
    const responseJson =
      '{"id": "x-1", "created": 9007199254740993, "x": 1.0,\n "choices": [{"logprobs": {}}]}';
    expect(openaiLine(completedRow(7, { responseJson }))).toBe(
      `{"id":"batch_req_107","custom_id":"doc-7","response":{"status_code":200,"request_id":"req_7","body":${responseJson.replace('\n', ' ')}},"error":null}`,
    );
  });

  it('of a vector from a shared call is the body that it would have come in alone', () => {
    const row = completedRow(7, {
      outputJson: '[0.5,-1]',
      finishReason: '',
      model: 'text-embedding-3-small',
      usage: { inputTokens: 3, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 },
    });
    expect(JSON.parse(openaiLine(row))).toMatchObject({
      response: {
        body: {
          object: 'list',
          data: [{ object: 'embedding', index: 0, embedding: [0.5, -1] }],
          model: 'text-embedding-3-small',
          usage: { prompt_tokens: 3, total_tokens: 3 },
        },
      },
    });
  });

  it('makes nothing up where a store of an earlier version has kept the text alone', () => {
    const row = completedRow(7, {
      usage: { inputTokens: 31, outputTokens: 12, cachedTokens: 16, reasoningTokens: 8 },
    });
    expect(JSON.parse(openaiLine(row))).toEqual({
      id: 'batch_req_107',
      custom_id: 'doc-7',
      response: {
        status_code: 200,
        request_id: 'req_7',
        body: {
          object: 'chat.completion',
          model: 'gpt-4o-mini-2024-07-18',
          choices: [
            {
              index: 0,
              message: { role: 'assistant', content: 'positive' },
              finish_reason: 'stop',
            },
          ],
          usage: {
            prompt_tokens: 31,
            completion_tokens: 12,
            total_tokens: 43,
            prompt_tokens_details: { cached_tokens: 16 },
            completion_tokens_details: { reasoning_tokens: 8 },
          },
        },
      },
      error: null,
    });
  });

  it.each([
    ['tool_calls', [{ id: 'c1', function: { name: 'f', arguments: '{"a":1}' } }]],
    ['function_call', { name: 'f', arguments: '{}' }],
  ])('tells %s of an earlier version from a text', (finishReason, calls) => {
    const outputJson = JSON.stringify(JSON.stringify(calls));
    expect(
      JSON.parse(openaiLine(completedRow(1, { outputJson, finishReason }))).response.body.choices,
    ).toEqual([
      { index: 0, message: { role: 'assistant', [finishReason]: calls }, finish_reason: finishReason },
    ]);
    const [said] = JSON.parse(openaiLine(completedRow(1, { finishReason }))).response.body.choices;
    expect(said.message).toEqual({ role: 'assistant', content: 'positive' });
  });

  it('writes a structured output as JSON text, the way the server sent it', () => {
    const line = JSON.parse(openaiLine(completedRow(1, { outputJson: '{"mood":"good"}' })));
    expect(line.response.body.choices[0].message.content).toBe('{"mood":"good"}');
  });

  it('leaves usage out where the server gave none', () => {
    expect(JSON.parse(openaiLine(completedRow(1, { usage: null }))).response.body).not.toHaveProperty(
      'usage',
    );
  });

  it('keeps the status and an error body of what the server refused', () => {
    expect(JSON.parse(openaiLine(failedRow(3)))).toEqual({
      id: 'batch_req_103',
      custom_id: 'doc-3',
      response: {
        status_code: 400,
        request_id: 'req_3',
        body: {
          error: { message: 'Invalid value', type: 'invalid_request', param: null, code: 'invalid_value' },
        },
      },
      error: null,
    });
  });

  it('has no response for what never became an answer, and loses no partial text', () => {
    const timedOut = failedRow(3, { kind: 'timeout', httpStatus: null, message: 'no answer within 300 s' });
    expect(JSON.parse(openaiLine(timedOut))).toMatchObject({
      response: null,
      error: { code: 'timeout', message: 'no answer within 300 s' },
    });
    const cutOff = failedRow(3, { kind: 'truncated', httpStatus: 200, partialOutputJson: '"Once"' });
    expect(JSON.parse(openaiLine(cutOff))).toMatchObject({
      response: null,
      error: { code: 'truncated', partial_output: 'Once' },
    });
  });

  it('is one line though the answer holds line separators', () => {
    const outputJson = JSON.stringify('a\u2028b\nc');
    expect(openaiLine(completedRow(1, { outputJson }))).not.toMatch(/[\n\r\u2028]/);
  });
});
