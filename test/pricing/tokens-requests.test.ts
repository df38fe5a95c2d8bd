import { beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/core/json.js';
import { loadTokenCounter, type TokenCounter } from '../../src/pricing/tokens.js';

let gpt4o: TokenCounter;
let reasoning: TokenCounter;
let claude: TokenCounter;

beforeAll(async () => {
  gpt4o = await loadTokenCounter('gpt-4o-mini');
  reasoning = await loadTokenCounter('o4-mini');
  claude = await loadTokenCounter('claude-haiku-4-5');
});

const task = [
  { role: 'system', content: 'Finish the given task' },
  { role: 'user', content: 'Say hello world' },
];

describe('the tokens of a chat completion', () => {
  it('are those that a server was observed to count, framing included', () => {
    // Reported from the live API for o4-mini: 17 prompt tokens.
    expect(reasoning.countRequest('chat', { messages: task })).toEqual({
      tokens: 17,
      exact: true,
      images: 0,
      uncountedParts: 0,
    });
    expect(gpt4o.countRequest('chat', { messages: task }).tokens).toBe(18);
  });

  it('are three a message, one a name, and three for the answer beside the text', () => {
    const text = (value: string): number => gpt4o.countText(value);
    const { tokens } = gpt4o.countRequest('chat', {
      messages: [{ role: 'user', name: 'ada', content: 'Good morning to you' }],
    });
    expect(tokens).toBe(3 + text('user') + 1 + text('ada') + text('Good morning to you') + 3);
  });

  it('count the text of content parts like text', () => {
    const parts = [
      { type: 'text', text: 'Good morning' },
      { type: 'text', text: ' to you' },
    ];
    const asParts = gpt4o.countRequest('chat', { messages: [{ role: 'user', content: parts }] });
    const asText = gpt4o.countRequest('chat', {
      messages: [{ role: 'user', content: 'Good morning to you' }],
    });
    expect(asParts).toEqual(asText);
  });

  it('are an estimate for a model of another vendor', () => {
    expect(claude.exact).toBe(false);
    expect(claude.countRequest('chat', { messages: task }).exact).toBe(false);
  });

  it('are an estimate where a text is too long to count whole', () => {
    const content = 'It rained, and it went on raining. '.repeat(12_000);
    const counted = gpt4o.countRequest('chat', { messages: [{ role: 'user', content }] });
    expect(counted.exact).toBe(false);
    expect(counted.tokens).toBeGreaterThan(90_000);
  });

  it('include tools, by the published recipe, and are an estimate then', () => {
    const tool = {
      type: 'function',
      function: {
        name: 'set_alarm',
        description: 'Sets an alarm.',
        parameters: {
          type: 'object',
          properties: {
            hour: { type: 'integer', description: 'Hour of the day.' },
            sound: { type: 'string', description: 'What to play', enum: ['bell', 'bird'] },
          },
        },
      },
    };
    const text = (value: string): number => gpt4o.countText(value);
    const expected =
      gpt4o.countRequest('chat', { messages: task }).tokens +
      (7 + text('set_alarm:Sets an alarm')) +
      3 +
      (3 + text('hour:integer:Hour of the day')) +
      (3 + text('sound:string:What to play') - 3 + (3 + text('bell')) + (3 + text('bird'))) +
      12;
    expect(gpt4o.countRequest('chat', { messages: task, tools: [tool] })).toEqual({
      tokens: expected,
      exact: false,
      images: 0,
      uncountedParts: 0,
    });
  });

  it('include the schema of a structured answer and the fields deep inside it', () => {
    const schema = (fields: number): JsonObject => ({
      type: 'json_schema',
      json_schema: {
        name: 'answer',
        schema: {
          type: 'object',
          properties: Object.fromEntries(
            Array.from({ length: fields }, (_, index) => [`field_${index}`, { type: 'string' }]),
          ),
        },
      },
    });
    const plain = gpt4o.countRequest('chat', { messages: task });
    const small = gpt4o.countRequest('chat', { messages: task, response_format: schema(1) });
    const large = gpt4o.countRequest('chat', { messages: task, response_format: schema(30) });
    expect(small.exact).toBe(false);
    expect(small.tokens).toBeGreaterThan(plain.tokens + 10);
    expect(large.tokens).toBeGreaterThan(small.tokens + 29 * 5);
  });

  it('count calls of functions in the conversation', () => {
    const call = {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'call_1', type: 'function', function: { name: 'set_alarm', arguments: '{"hour":7}' } },
      ],
    };
    const without = gpt4o.countRequest('chat', { messages: [{ role: 'assistant', content: null }] }).tokens;
    const { tokens } = gpt4o.countRequest('chat', { messages: [call] });
    expect(tokens).toBe(without + 3 + gpt4o.countText('set_alarm') + gpt4o.countText('{"hour":7}'));
  });

  it('name the parts that nobody can count before they are sent', () => {
    const content = [
      { type: 'text', text: 'Listen' },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
      { type: 'file', file: { file_id: 'file-1' } },
    ];
    const counted = gpt4o.countRequest('chat', { messages: [{ role: 'user', content }] });
    expect(counted).toMatchObject({ uncountedParts: 2, exact: false });
    expect(counted.tokens).toBe(
      gpt4o.countRequest('chat', { messages: [{ role: 'user', content: 'Listen' }] }).tokens,
    );
  });

  it('are counted as far as possible in a body of the wrong shape', () => {
    const bodies: JsonObject[] = [
      {},
      { messages: 'hello' },
      { messages: [null, 7, 'x', [], { role: 3, content: { text: 'x' } }] },
      { messages: task, tools: { a: 1 }, response_format: 'json' },
      { messages: [{ role: 'user', content: [null, 3, { type: 'text' }, { type: 'image_url' }] }] },
      { messages: task, tools: [{ type: 'function', function: { parameters: { properties: { a: 1 } } } }] },
    ];
    for (const body of bodies) expect(gpt4o.countRequest('chat', body).tokens).toBeGreaterThanOrEqual(3);
  });
});
