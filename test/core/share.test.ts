import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shareBill } from '../../src/core/share.js';

const USAGE = { inputTokens: 101, outputTokens: 7, cachedTokens: 3, reasoningTokens: 0 };

describe('the shares of a bill', () => {
  it('are whole tokens that add up to it, whatever the weights', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(10_000), { minLength: 1, maxLength: 200 }),
        fc.nat(1_000_000),
        (weights, tokens) => {
          const shares = shareBill({ ...USAGE, inputTokens: tokens }, 12.5, weights);
          const input = shares.map(({ usage }) => usage?.inputTokens ?? Number.NaN);
          expect(input.every((each) => Number.isInteger(each) && each >= 0)).toBe(true);
          expect(input.reduce((sum, each) => sum + each, 0)).toBe(tokens);
          expect(shares.reduce((sum, { costMicroUsd }) => sum + (costMicroUsd ?? 0), 0)).toBeCloseTo(12.5, 6);
        },
      ),
    );
  });

  it('follow the weights', () => {
    const shares = shareBill({ ...USAGE, inputTokens: 100 }, 8, [1, 3]);
    expect(shares.map(({ usage }) => usage?.inputTokens)).toEqual([25, 75]);
    expect(shares.map(({ costMicroUsd }) => costMicroUsd)).toEqual([2, 6]);
  });

  it('are the whole of it for a single document, and equal where nothing tells the documents apart', () => {
    expect(shareBill(USAGE, 8, [0])).toEqual([{ usage: USAGE, costMicroUsd: 8 }]);
    expect(shareBill(null, 8, [0, 0]).map(({ costMicroUsd }) => costMicroUsd)).toEqual([4, 4]);
  });

  it('are unknown where the bill is', () => {
    expect(shareBill(null, null, [1, 2])).toEqual([
      { usage: null, costMicroUsd: null },
      { usage: null, costMicroUsd: null },
    ]);
  });
});
