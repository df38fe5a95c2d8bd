import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatAgo,
  formatBytes,
  formatCount,
  formatDuration,
  formatMoney,
  formatPercent,
  formatQuantity,
  formatRate,
  formatRemaining,
  formatTokens,
} from '../../src/ui/numbers.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('numbers', () => {
  it.each([
    [0, '0'],
    [999, '999'],
    [1_000, '1,000'],
    [1_234_567, '1,234,567'],
    [-1_234, '-1,234'],
    [Number.NaN, '–'],
  ])('the count %s is %s', (value, text) => expect(formatCount(value)).toBe(text));

  it('a quantity follows its number', () => {
    expect(formatQuantity(1, 'document')).toBe('1 document');
    expect(formatQuantity(0, 'document')).toBe('0 documents');
    expect(formatQuantity(2_000, 'entry', 'entries')).toBe('2,000 entries');
  });

  it.each([
    [0, '0 ms'],
    [850, '850 ms'],
    [999.7, '1.0 s'],
    [12_345, '12.3 s'],
    [59_970, '1 min 00 s'],
    [4 * MINUTE + 5 * SECOND, '4 min 05 s'],
    [HOUR - 400, '1 h 00 min'],
    [HOUR + 4 * MINUTE, '1 h 04 min'],
    [DAY - 1, '1 d 00 h'],
    [2 * DAY + 3 * HOUR, '2 d 03 h'],
    [-5, '0 ms'],
    [Number.POSITIVE_INFINITY, '–'],
  ])('the duration of %s ms is %s', (value, text) => expect(formatDuration(value)).toBe(text));

  it.each([
    [0, '0 s'],
    [200, '1 s'],
    [8 * SECOND, '8 s'],
    [4 * MINUTE + 5 * SECOND, '4 min 05 s'],
    [42 * MINUTE + 20 * SECOND, '42 min'],
    [59 * MINUTE + 45 * SECOND, '1 h 00 min'],
    [HOUR + 4 * MINUTE, '1 h 04 min'],
  ])('of %s ms, %s remain', (value, text) => expect(formatRemaining(value)).toBe(text));

  it.each([
    [0, 'just now'],
    [5 * MINUTE, '5 min ago'],
    [26 * HOUR, '26 h ago'],
    [12 * DAY, '12 d ago'],
  ])('%s ms is %s', (value, text) => expect(formatAgo(value)).toBe(text));

  it.each([
    [0, '0'],
    [0.44, '0.4'],
    [7.5, '7.5'],
    [8, '8'],
    [9.99, '10'],
    [1_204.4, '1,204'],
  ])('the rate %s is %s', (value, text) => expect(formatRate(value)).toBe(text));

  it.each([
    [0, '$0.00'],
    [17, '$0.000017'],
    [4_200, '$0.0042'],
    [99_999, '$0.1000'],
    [420_000, '$0.42'],
    [1_234_500_000, '$1,234.50'],
    [-420_000, '-$0.42'],
    [0.4, '$0.00'],
    [Number.NaN, '–'],
  ])('%s micro-dollars are %s', (value, text) => expect(formatMoney(value)).toBe(text));

  it.each([
    [999, '999'],
    [1_000, '1.0k'],
    [12_345, '12.3k'],
    [99_960, '100k'],
    [412_345, '412k'],
    [999_950, '1.0M'],
    [4_500_000, '4.5M'],
    [1_200_000_000, '1.2B'],
  ])('%s tokens are %s', (value, text) => expect(formatTokens(value)).toBe(text));

  it.each([
    [812, '812 B'],
    [1_240_000_000, '1.2 GB'],
  ])('%s bytes are %s', (value, text) => expect(formatBytes(value)).toBe(text));

  it.each([
    [0, 3, '0%'],
    [1, 3, '33%'],
    [3, 3, '100%'],
    [996, 999, '99%'],
    [998, 999, '99%'],
    [999, 1_000, '99.9%'],
    [126_000, 300_000, '42.0%'],
    [299_999, 300_000, '99.9%'],
    [300_000, 300_000, '100%'],
    [0, 0, '–'],
  ])('%s of %s is %s', (part, whole, text) => expect(formatPercent(part, whole)).toBe(text));

  it('never say 100% before everything is done, nor a second of 60', () => {
    fc.assert(
      fc.property(fc.nat({ max: 2e9 }), fc.nat({ max: 2e9 }), (one, other) => {
        const [part, whole] = [Math.min(one, other), Math.max(one, other) + 1];
        expect(formatPercent(part, whole)).not.toBe('100%');
        expect(formatDuration(one)).not.toMatch(/\b60(\.0)? (s|min)|\b1000 ms|24 h/);
        expect(formatRemaining(one)).not.toMatch(/\b60 (s|min)|24 h/);
        expect(formatTokens(one).length).toBeLessThanOrEqual(5);
      }),
    );
  });
});
