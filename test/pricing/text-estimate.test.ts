import { describe, expect, test } from 'vitest';
import { estimateTokens } from '../../src/pricing/input-estimate.js';

/** Token counts by the o200k_base encoding. */
const COUNTED: readonly (readonly [name: string, text: string, tokens: number])[] = [
  [
    'English',
    'The delivery was late and the box had been opened, but the headphones themselves sound wonderful and the battery lasts for two full days of commuting.',
    28,
  ],
  [
    'German',
    'Die Lieferung kam drei Tage zu spät, und die Verpackung war beschädigt. Die Kopfhörer klingen trotzdem großartig; Geschwindigkeitsbegrenzung, Donaudampfschifffahrtsgesellschaft, Überwachungsmöglichkeiten.',
    48,
  ],
  ['French', "La livraison a été très en retard et l'emballage était abîmé, mais le son est excellent.", 22],
  ['Polish', 'Przesyłka dotarła z dużym opóźnieniem, a pudełko było uszkodzone.', 27],
  ['Russian', 'Доставка опоздала на три дня, и коробка была вскрыта, но наушники звучат великолепно.', 26],
  ['Arabic', 'تأخر التسليم ثلاثة أيام وكانت العلبة مفتوحة، لكن صوت السماعات رائع.', 19],
  ['Hindi', 'डिलीवरी तीन दिन देर से हुई और डिब्बा खुला हुआ था।', 18],
  ['Chinese', '快递晚了三天,盒子也被打开过,但是耳机的音质非常好,电池可以用整整两天。', 32],
  [
    'Japanese',
    '配送が三日遅れ、箱も開いていましたが、ヘッドホンの音は素晴らしく、バッテリーは丸二日持ちます。',
    39,
  ],
  [
    'Korean',
    '배송이 사흘이나 늦었고 상자도 열려 있었지만 헤드폰 소리는 훌륭하고 배터리는 이틀 동안 지속됩니다.',
    36,
  ],
  ['emoji', '😀👍🏽🎉🚀👩‍👩‍👧‍👦❤️🇩🇪🇫🇷✅', 29],
  [
    'JSON',
    '{"id":"r-1001","product":{"name":"Kettle","price_cents":3499,"tags":["kitchen","steel"]},"rating":4}',
    34,
  ],
  ['digits', '2021-03-04,17.25,ACME,Gadget,0.031,TRUE', 21],
  ['a UUID', '550e8400-e29b-41d4-a716-446655440000', 18],
];

describe('the cheap token estimate', () => {
  test.each(COUNTED)('is at or above the count for %s, and not far above', (_name, text, tokens) => {
    expect(estimateTokens(text)).toBeGreaterThanOrEqual(tokens * 0.99);
    expect(estimateTokens(text)).toBeLessThanOrEqual(tokens * 4);
  });

  test('of English prose is near a token per four characters', () => {
    const prose = 'I would buy them again, though I hope the company improves its packaging. '.repeat(50);
    expect(estimateTokens(prose)).toBeGreaterThan(prose.length / 5);
    expect(estimateTokens(prose)).toBeLessThan(prose.length / 3);
  });

  test('of nothing is nothing, and of broken text a number', () => {
    expect(estimateTokens('')).toBe(0);
    for (const text of ['\u0000', '\ud800', '\udfff\ud800', '<|endoftext|>', '\u2028', '\ufeff']) {
      expect(estimateTokens(text)).toBeGreaterThan(0);
      expect(Number.isSafeInteger(estimateTokens(text))).toBe(true);
    }
  });

  test('grows with the text', () => {
    const text = 'A 12-word review: naïve, 快递 😀 and <b>bold</b>! '.repeat(20);
    for (let length = 1; length < text.length; length += 1) {
      expect(estimateTokens(text.slice(0, length))).toBeGreaterThanOrEqual(
        estimateTokens(text.slice(0, length - 1)) - 1,
      );
    }
  });

  test('takes ten million characters in one unbroken run in its stride', () => {
    expect(estimateTokens('字'.repeat(10_000_000))).toBeGreaterThan(10_000_000);
  });
});
