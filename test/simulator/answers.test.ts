import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { simulatedAnswer, textTokens } from '../../src/simulator/answer.js';
import type { SimulatorOptions } from '../../src/simulator/options.js';
import { chatBody, json, type RawReply, send, simulate } from './raw-call.js';

describe('simulatedAnswer', () => {
  it('carries the first 12 hexadecimal digits of the SHA-256 of the messages', () => {
    const body = chatBody('A document.');
    const expected = createHash('sha256').update(JSON.stringify(body['messages'])).digest('hex').slice(0, 12);
    expect(simulatedAnswer(body).fingerprint).toBe(expected);
    expect(simulatedAnswer(body).text).toContain(expected);
  });

  it('depends on every message and on nothing else but the output cap', () => {
    const text = (body: Parameters<typeof simulatedAnswer>[0]): string => simulatedAnswer(body).text;
    expect(text(chatBody('one'))).toBe(text(chatBody('one', { temperature: 0.5, model: 'other' })));
    expect(text(chatBody('one'))).not.toBe(text(chatBody('two')));
    const system = { role: 'system', content: 'Be brief.' };
    const user = { role: 'user', content: 'one' };
    expect(text({ model: 'm', messages: [system, user] })).not.toBe(text({ model: 'm', messages: [user] }));
  });

  it('says as many tokens as it is long', () => {
    for (const outputTokens of [12, 16, 100, 5_000]) {
      const answer = simulatedAnswer(chatBody('A document.'), { outputTokens });
      expect(answer.completionTokens).toBe(outputTokens);
      expect(textTokens(answer.text)).toBe(outputTokens);
    }
  });

  it('keeps to the output cap of the request, with the fingerprint whole', () => {
    const options = { outputTokens: 500 };
    expect(simulatedAnswer(chatBody('x', { max_tokens: 100 }), options).completionTokens).toBe(100);
    expect(simulatedAnswer(chatBody('x', { max_completion_tokens: 50 }), options).completionTokens).toBe(50);
    const tiny = simulatedAnswer(chatBody('x', { max_tokens: 1 }), options);
    expect(tiny.completionTokens).toBe(1);
    expect(tiny.text).toContain(tiny.fingerprint);
  });

  it('draws lengths from all of a range, each document its own', () => {
    const lengths = Array.from(
      { length: 200 },
      (_, index) =>
        simulatedAnswer(chatBody(`${index}`), { outputTokens: { min: 20, max: 23 } }).completionTokens,
    );
    expect([...new Set(lengths)].sort()).toEqual([20, 21, 22, 23]);
  });

  it('counts prompts by its rule of thumb: 4 bytes a token, 3 for a message, 3 for the reply', () => {
    expect(simulatedAnswer(chatBody('12345678')).promptTokens).toBe(2 + 3 + 3);
    expect(simulatedAnswer(chatBody('123456789')).promptTokens).toBe(3 + 3 + 3);
    expect(simulatedAnswer(chatBody('日本語で')).promptTokens).toBe(3 + 3 + 3);
    const content = [
      { type: 'text', text: '1234' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    ];
    expect(simulatedAnswer({ model: 'm', messages: [{ role: 'user', content }] }).promptTokens).toBe(
      1 + 85 + 3 + 3,
    );
    const file = { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=' } };
    expect(simulatedAnswer({ model: 'm', messages: [{ role: 'user', content: [file] }] }).promptTokens).toBe(
      1_000 + 3 + 3,
    );
  });
});

describe('two servers with one seed', () => {
  const options: SimulatorOptions = {
    seed: 7,
    outputTokens: { min: 15, max: 60 },
    errorRate: { '500': 0.2, '429': 0.2, empty: 0.1, reset: 0.1 },
  };
  const documents = Array.from({ length: 60 }, (_, index) => chatBody(`document ${index}`));

  /** What does not depend on when a call came: all but its number. */
  function essence(reply: RawReply): string {
    return `${reply.status} ${reply.text.replace(/"id":"[^"]*"/, '')}`;
  }

  it('say the same of every document, in whatever order they come', async () => {
    const [first, second] = [await simulate(options), await simulate(options)];
    const forwards: string[] = [];
    for (const body of documents) forwards.push(essence(await send(first, body)));
    const backwards: string[] = [];
    for (const body of documents.toReversed()) backwards.push(essence(await send(second, body)));
    expect(backwards.toReversed()).toEqual(forwards);
    expect(new Set(forwards.map((text) => text.slice(0, 4))).size).toBeGreaterThan(2);
  });

  it('another seed meets other documents with faults', async () => {
    const [first, second] = [await simulate(options), await simulate({ ...options, seed: 8 })];
    const statuses = async (simulator: typeof first): Promise<(number | null)[]> =>
      Promise.all(documents.map(async (body) => (await send(simulator, body)).status));
    expect(await statuses(first)).not.toEqual(await statuses(second));
  });

  it('without a seed one is drawn from the chance given, and told', async () => {
    const { startSimulator } = await import('../../src/simulator/simulator.js');
    const { FakeClock } = await import('../support/fake-clock.js');
    const simulator = await startSimulator({}, { clock: new FakeClock(), random: () => 0.5 });
    expect(simulator.seed).toBe(2 ** 30);
    await simulator.close();
  });

  it('answers over the wire are those computed without it', async () => {
    const simulator = await simulate({ seed: 7, outputTokens: { min: 15, max: 60 } });
    for (const body of documents.slice(0, 5)) {
      const { text, model, promptTokens, completionTokens } = simulatedAnswer(body, options);
      expect(json(await send(simulator, body))).toMatchObject({
        model,
        choices: [{ message: { content: text } }],
        usage: { prompt_tokens: promptTokens, completion_tokens: completionTokens },
      });
    }
  });
});

describe('extras', () => {
  it('prices put the cost of a call into its usage', async () => {
    const simulator = await simulate({
      prices: { inputMicroUsdPerToken: 0.15, outputMicroUsdPerToken: 0.6 },
    });
    const body = chatBody('A document.');
    const { promptTokens, completionTokens } = simulatedAnswer(body);
    const { cost } = json(await send(simulator, body)).usage;
    expect(cost).toBeCloseTo((promptTokens * 0.15 + completionTokens * 0.6) / 1e6, 12);
  });

  it.each([
    [undefined, 'default'],
    ['auto', 'default'],
    ['default', 'default'],
    ['flex', 'flex'],
    ['priority', 'priority'],
  ])('a request for the tier %s is served by %s, and told so', async (asked, served) => {
    const simulator = await simulate({});
    const body = chatBody('A document.', asked === undefined ? {} : { service_tier: asked });
    expect(json(await send(simulator, body)).service_tier).toBe(served);
  });

  it('answers can be padded', async () => {
    const simulator = await simulate({ responseBytes: 20_000 });
    const reply = await send(simulator, chatBody('A document.'));
    expect(reply.text.length).toBeGreaterThanOrEqual(20_000);
    expect(json(reply).choices[0].message.content).toBe(simulatedAnswer(chatBody('A document.')).text);
  });
});
