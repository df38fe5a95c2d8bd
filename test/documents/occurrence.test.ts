import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OccurrenceCounter } from '../../src/documents/occurrence.js';

describe('OccurrenceCounter', () => {
  it('counts as a map of keys would', () => {
    const key = fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom('', 'a', 'b', 'aa', '\0'));
    fc.assert(
      fc.property(fc.array(key, { maxLength: 200 }), (keys) => {
        const counter = new OccurrenceCounter();
        const seen = new Map<string, number>();
        for (const each of keys) {
          const expected = seen.get(each) ?? 0;
          expect(counter.next(each)).toBe(expected);
          seen.set(each, expected + 1);
        }
      }),
    );
  });

  it.each([
    ['numbers', (index: number) => String(index)],
    ['padded ids', (index: number) => `document-${String(index).padStart(9, '0')}`],
    ['alike at the end', (index: number) => `${index}-of-the-same-file.jsonl`],
    ['long ids', (index: number) => `${'x'.repeat(100)}${index}`],
  ])('tells 100,000 keys apart that are %s', (_name, keyOf) => {
    const counter = new OccurrenceCounter();
    let repeats = 0;
    for (let index = 0; index < 100_000; index += 1) repeats += counter.next(keyOf(index));
    expect(repeats).toBe(0);
    expect(counter.next(keyOf(7))).toBe(1);
    expect(counter.next(keyOf(99_999))).toBe(1);
    expect(counter.next(keyOf(7))).toBe(2);
  });

  it('goes on counting when its table has grown', () => {
    const counter = new OccurrenceCounter();
    for (let time = 0; time < 5; time += 1) counter.next('early');
    for (let index = 0; index < 20_000; index += 1) counter.next(`other-${index}`);
    expect(counter.next('early')).toBe(5);
  });

  it('takes less than 22 MB for a million keys', () => {
    const counter = new OccurrenceCounter();
    let repeats = 0;
    for (let index = 0; index < 1_000_000; index += 1) repeats += counter.next(`document-${index}`);
    expect(counter.bytes).toBeLessThan(22e6);
    // With 32 bits of hash about a hundred keys would be taken for another.
    expect(repeats).toBe(0);
  });
});
