import { describe, expect, it } from 'vitest';
import { createRedactor } from '../../../src/core/redact.js';
import { readAnswer } from '../../../src/provider/openai/answer.js';

const context = { url: 'http://127.0.0.1/v1/chat/completions', nowMs: 0, redact: createRedactor([]) };
const CALL = '{"id":"c1","type":"function","function":{"name":"f","arguments":"{\\"n\\":1}"}}';

/** @param choice JSON text of the first choice's members */
function read(choice: string, { more = '', isUtf8 = true, usage = '{}' } = {}) {
  const content = `{"id":"x", "choices": [ {${choice}}${more} ], "usage":${usage}}`;
  const received = { status: 200, headers: new Headers(), content, isUtf8 };
  const reply = readAnswer({ endpoint: 'chat', bodyJson: '{}', parts: 1 }, received, context);
  if (reply.ok) return reply.parts[0];
  const { kind, message, partialOutputJson } = reply.failure;
  return { kind, message, partialOutputJson };
}

describe('what an answer holds beside its text', () => {
  it.each<[string, string, string, string]>([
    ['tool calls', `"message":{"content":null,"tool_calls":[${CALL}]}`, `[${CALL}]`, ''],
    [
      'tool calls with text beside them',
      `"message":{"content":"Let me see.","tool_calls":[${CALL}]}`,
      'Let me see.',
      '',
    ],
    ['reasoning (DeepSeek, vLLM)', '"message":{"content":"4","reasoning_content":"2 and 2"}', '4', '2 and 2'],
    ['reasoning (OpenRouter)', '"message":{"content":"4","reasoning":"2 and 2"}', '4', '2 and 2'],
    [
      'reasoning (Mistral)',
      '"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"2 and 2"}]},{"type":"text","text":"4"}]}',
      '4',
      '2 and 2',
    ],
    ['annotations', '"message":{"content":"4","annotations":[{"type":"url_citation"}]}', '4', ''],
    ['sound', '"message":{"content":null,"audio":{"id":"a","data":"UklG","transcript":"four"}}', 'four', ''],
    ['pictures alone', '"message":{"content":"","images":[{"type":"image_url"}]}', '', ''],
    ['a field that nobody knows', '"message":{"content":"4","grounding":{"n": 1.0}}', '4', ''],
  ])('is its message as it came: %s', (_what, choice, output, reasoning) => {
    const message = choice.slice('"message":'.length);
    const thought = reasoning === '' ? '' : `,"reasoning":"${reasoning}"`;
    expect(read(choice)).toMatchObject({ text: output, detailsJson: `{"message":${message}${thought}}` });
  });

  it('is its logprobs too, number for number', () => {
    const logprobs = '{"content":[{"token":"4","logprob":-0.0,"bytes":[52]}],"refusal":null}';
    expect(read(`"message":{"content":"4"},"logprobs":${logprobs}`)).toMatchObject({
      text: '4',
      detailsJson: `{"message":{"content":"4"},"logprobs":${logprobs}}`,
    });
  });

  it('is all choices where there are several; the first is the output', () => {
    const [one, other] = ['"message":{"content":"4"}', ',{"message":{"content":"four"}}'];
    expect(read(one, { more: other })).toMatchObject({
      text: '4',
      detailsJson: `{"message":{"content":"4"},"choices":[ {${one}}${other} ]}`,
    });
  });

  it('is nothing where the server only fills in what a message may have', () => {
    const message =
      '{"role":"assistant","content":"4","refusal":null,"annotations":[],"audio":null,"function_call":null,' +
      '"tool_calls":[],"reasoning_content":null,"reasoning":"","provider_specific_fields":{"x":null},"prefix":false}';
    expect(read(`"message":${message},"logprobs":null`)).not.toHaveProperty('detailsJson');
  });
});

describe('an answer that failed', () => {
  it.each<[string, string, string, string, string | undefined]>([
    [
      'a tool call',
      `"message":{"content":"","tool_calls":[${CALL}]},"finish_reason":"length"`,
      'truncated',
      'The tool call was cut off at the length limit',
      `{"content":"","tool_calls":[${CALL}]}`,
    ],
    [
      'reasoning',
      '"message":{"content":"","reasoning_content":"2 and"},"finish_reason":"length"',
      'truncated',
      'There was only reasoning, no text, before the length limit',
      '{"content":"","reasoning_content":"2 and"}',
    ],
    [
      'text after reasoning',
      '"message":{"content":"fo","reasoning_content":"2 and 2"},"finish_reason":"length"',
      'truncated',
      'The answer was cut off at its length limit',
      '{"content":"fo","reasoning_content":"2 and 2"}',
    ],
    [
      'text alone',
      '"message":{"content":"fo","refusal":null},"finish_reason":"length","logprobs":{"content":[{}]}',
      'truncated',
      'The answer was cut off at its length limit',
      '"fo"',
    ],
    [
      'nothing',
      '"message":{"content":null},"finish_reason":"length"',
      'truncated',
      'No text came before the length limit',
      undefined,
    ],
    [
      'a refusal with text beside it',
      '"message":{"content":"Here is","refusal":"I cannot"},"finish_reason":"stop"',
      'refused',
      'The model refused: I cannot',
      '{"content":"Here is","refusal":"I cannot"}',
    ],
    [
      'reasoning that led nowhere',
      '"message":{"content":"","reasoning":"Hm"},"finish_reason":"stop"',
      'bad_output',
      'The answer is empty: only reasoning came, no text',
      '{"content":"","reasoning":"Hm"}',
    ],
  ])('says what it was and keeps it: %s', (_what, choice, kind, message, partialOutputJson) => {
    expect(read(choice)).toEqual({ kind, message, partialOutputJson });
  });

  it('counts reasoning that the server does not show', () => {
    const usage =
      '{"prompt_tokens":9,"completion_tokens":64,"completion_tokens_details":{"reasoning_tokens":64}}';
    expect(read('"message":{"content":""},"finish_reason":"length"', { usage })).toMatchObject({
      message: 'There was only reasoning, no text, before the length limit',
    });
  });

  it('keeps every choice of several', () => {
    const choice = '"message":{"content":"fo"},"finish_reason":"length"';
    expect(read(choice, { more: ',{"message":{"content":"four"}}' })).toMatchObject({
      partialOutputJson: `[ {${choice}},{"message":{"content":"four"}} ]`,
    });
  });
});

describe('an answer whose bytes are not UTF-8', () => {
  it('is no good answer, and what could be read of it is kept', () => {
    expect(read('"message":{"content":"caf\ufffd"},"finish_reason":"stop"', { isUtf8: false })).toEqual({
      kind: 'bad_output',
      message: 'The answer cannot be read whole; some of its bytes are not UTF-8',
      partialOutputJson: '"caf\ufffd"',
    });
  });

  it('is told beside what else is wrong with it', () => {
    expect(
      read('"message":{"content":"caf\ufffd"},"finish_reason":"length"', { isUtf8: false }),
    ).toMatchObject({
      kind: 'truncated',
      message: 'The answer was cut off at its length limit; some of its bytes are not UTF-8',
    });
  });

  it('may hold the replacement character as a character of its own', () => {
    expect(read('"message":{"content":"caf\ufffd"}')).toMatchObject({ ok: true, text: 'caf\ufffd' });
  });
});
