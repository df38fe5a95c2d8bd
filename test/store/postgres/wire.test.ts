import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fromStoredText, toStoredText, toWire } from '../../../src/store/postgres/wire.js';

/** Texts in which what must be written otherwise is frequent. */
const text = fc.string({
  unit: fc.constantFrom('\0', '\u001a', '0', 's', 'a', '\\', 'u0000', '\ud83d\ude00'),
});

it('gives every text back as it was, and tells two texts apart', () => {
  fc.assert(
    fc.property(text, text, (one, other) => {
      expect(toStoredText(one)).not.toContain('\0');
      expect(fromStoredText(toStoredText(one))).toBe(one);
      expect(toStoredText(one) === toStoredText(other)).toBe(one === other);
    }),
  );
});

it('writes texts in lists and objects as those that stand alone', () => {
  fc.assert(
    fc.property(fc.array(text), (texts) => {
      expect(JSON.parse(String(toWire(texts)))).toEqual(texts.map(toStoredText));
    }),
  );
});
