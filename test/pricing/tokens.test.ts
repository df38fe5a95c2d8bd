import { describe, expect, it } from 'vitest';
import { encodingOf } from '../../src/pricing/encoding.js';
import { countTextTokens } from '../../src/pricing/text-tokens.js';
import { loadTokenCounter } from '../../src/pricing/tokens.js';

describe('the encoding of a model', () => {
  it.each([
    ['gpt-4o-mini', 'o200k_base'],
    ['gpt-4o-2024-08-06', 'o200k_base'],
    ['chatgpt-4o-latest', 'o200k_base'],
    ['gpt-4.1-nano', 'o200k_base'],
    ['gpt-5.4-mini', 'o200k_base'],
    ['o3', 'o200k_base'],
    ['o4-mini-2025-04-16', 'o200k_base'],
    ['ft:gpt-4o-mini-2024-07-18:acme::abc', 'o200k_base'],
    ['openai/gpt-4o', 'o200k_base'],
    ['simulated/gpt-4o-mini', 'o200k_base'],
    ['gpt-4', 'cl100k_base'],
    ['gpt-4-turbo-2024-04-09', 'cl100k_base'],
    ['gpt-3.5-turbo', 'cl100k_base'],
    ['gpt-35-turbo', 'cl100k_base'],
    ['text-embedding-3-small', 'cl100k_base'],
    ['babbage-002', 'cl100k_base'],
    ['openai/gpt-oss-20b', 'o200k_harmony'],
    ['text-davinci-003', 'p50k_base'],
    ['davinci', 'r50k_base'],
  ])('of %s is the published %s', (model, name) => {
    expect(encodingOf(model)).toEqual({ name, published: true });
  });

  it.each(['claude-sonnet-4-5', 'llama-3.3-70b-versatile', 'o2000', 'gpt-6-sol', 'mistral-small', ''])(
    'of %j, whose tokenizer is not published, is guessed and marked',
    (model) => {
      expect(encodingOf(model)).toEqual({ name: 'o200k_base', published: false });
    },
  );
});

describe('counting a text', () => {
  it.each([
    ['davinci', '2 + 2 = 4', 5],
    ['gpt-4', '2 + 2 = 4', 7],
    ['gpt-4', 'お誕生日おめでとう', 9],
    ['gpt-4o', 'お誕生日おめでとう', 8],
    ['davinci', 'お誕生日おめでとう', 14],
    ['gpt-4', 'hello world', 2],
    ['gpt-4o', 'antidisestablishmentarianism', 6],
    ['gpt-4o', '', 0],
  ])('gives the published count for %s of %j', async (model, text, tokens) => {
    expect((await loadTokenCounter(model)).countText(text)).toBe(tokens);
  });

  it('takes special tokens in a document as plain text', async () => {
    const counter = await loadTokenCounter('gpt-4o');
    expect(counter.countText('<|endoftext|>')).toBeGreaterThan(1);
    expect(counter.countText('a<|im_start|>system')).toBeGreaterThan(4);
  });

  it('counts a lone surrogate and control characters without complaint', async () => {
    const counter = await loadTokenCounter('gpt-4o');
    expect(counter.countText('\ud800 and \u0000 and \udfff')).toBeGreaterThan(5);
  });

  it('is within one percent on unbroken runs, which it counts in pieces', async () => {
    const counter = await loadTokenCounter('gpt-4o');
    // Counted whole, which takes seconds: 20,000 letters and 20,000 ideographs without any punctuation.
    expect(Math.abs(counter.countText('a'.repeat(20_000)) - 2_500)).toBeLessThan(25);
    const sentence =
      '人工智能是计算机科学的一个分支它企图了解智能的实质并生产出一种新的能以人类智能相似的方式做出反应的智能机器该领域的研究包括机器人语言识别图像识别自然语言处理和专家系统等';
    const ideographs = sentence.repeat(300).slice(0, 20_000);
    expect(Math.abs(counter.countText(ideographs) - 14_047)).toBeLessThan(140);
  });

  it('is within two percent on a text so long that it is sampled', async () => {
    const counter = await loadTokenCounter('gpt-4o');
    const paragraphs = Array.from({ length: 9_000 }, (_, index) =>
      index % 3 === 0
        ? `Row ${index}: {"price": ${index * 7}.50, "tags": ["alpha", "beta"]}\n`
        : `The committee met again on day ${index} and found nothing that it had not known before.\n`,
    );
    const text = paragraphs.join('');
    const whole = paragraphs.reduce((sum, paragraph) => sum + counter.countText(paragraph), 0);
    expect(text.length).toBeGreaterThan(600_000);
    expect(Math.abs(counter.countText(text) / whole - 1)).toBeLessThan(0.02);
  });
});

describe('cutting a text for the tokenizer', () => {
  function piecesOf(text: string): string[] {
    const pieces: string[] = [];
    countTextTokens(text, (piece) => {
      pieces.push(piece);
      return 1;
    });
    return pieces;
  }

  it.each([
    ['letters', 'x'.repeat(9_000), 2_000],
    ['ideographs', '漢'.repeat(9_000), 125],
    ['spaces', ' '.repeat(9_000), 2_000],
    ['line ends', '\n'.repeat(9_000), 2_000],
    ['punctuation', '='.repeat(9_000), 2_000],
    ['emoji', '😀'.repeat(4_500), 126],
  ])('never hands it a longer run of %s than it can merge quickly', (_, text, longest) => {
    const pieces = piecesOf(text);
    expect(pieces.join('')).toBe(text);
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(longest);
  });

  it('leaves ordinary text whole, and never cuts a surrogate pair', () => {
    const prose = 'Words of no great length, and 12345 numbers; 汉字，短句。\n'.repeat(500);
    expect(piecesOf(prose)).toEqual([prose]);
    for (const piece of piecesOf(`漢${'😀'.repeat(4_500)}`))
      expect(piece).not.toMatch(/^[\udc00-\udfff]|[\ud800-\udbff]$/);
  });
});
