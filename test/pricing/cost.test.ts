import { calcPrice } from '@pydantic/genai-prices';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { BilledUsage } from '../../src/core/usage.js';
import { costMicroUsd, worstCaseMicroUsd } from '../../src/pricing/cost.js';
import { attoOfUsd, attoPerTokenOfMillion, microUsdOfAtto } from '../../src/pricing/money.js';
import { loadPackagedPrices } from '../../src/pricing/packaged-prices.js';
import {
  type ModelPrice,
  type PriceBook,
  type StatedRates,
  tokenRates,
} from '../../src/pricing/price-book.js';

const standard = { tier: 'standard' } as const;
const nowMs = Date.parse('2026-11-15T12:00:00Z');
let book: PriceBook;

beforeAll(async () => {
  book = await loadPackagedPrices();
});

function usage(inputTokens: number, outputTokens: number, more: Partial<BilledUsage> = {}): BilledUsage {
  return { inputTokens, outputTokens, cachedTokens: 0, reasoningTokens: 0, ...more };
}

/** A price by hand, in US dollars per million tokens. */
function price(
  perMillion: Partial<Record<keyof StatedRates, number>>,
  above: readonly { inputTokens: number; input: number; output: number }[] = [],
  limits: Partial<Pick<ModelPrice, 'contextWindowTokens' | 'maxOutputTokens'>> = {},
): ModelPrice {
  const rate = (usd: number | undefined) => (usd === undefined ? null : attoPerTokenOfMillion(usd));
  const base = tokenRates({
    input: rate(perMillion.input),
    output: rate(perMillion.output),
    cachedInput: rate(perMillion.cachedInput),
    cacheWrite: rate(perMillion.cacheWrite),
    reasoning: rate(perMillion.reasoning),
    perRequest: perMillion.perRequest === undefined ? null : attoOfUsd(perMillion.perRequest),
  });
  const bands = above.map(({ inputTokens, input, output }) => ({
    inputTokens,
    rates: tokenRates({ input: rate(input), output: rate(output) }),
  }));
  return {
    model: 'by-hand',
    table: { source: 'test', date: null },
    tiers: { standard: { base, above: bands }, batch: null, flex: null, priority: null },
    contextWindowTokens: null,
    maxOutputTokens: null,
    ...limits,
  };
}

function packaged(model: string): ModelPrice {
  const found = book.priceOf(model, { baseUrl: null, nowMs });
  if (found === null) throw new Error(`${model} has no price`);
  return found;
}

describe('amounts of money', () => {
  it.each([
    [0.15, 150_000_000_000n],
    [0.075, 75_000_000_000n],
    [1e-6, 1_000_000n],
    [150, 150_000_000_000_000n],
    [0, 0n],
    // A float's noise is far below a millionth of a millionth of a dollar.
    [0.18000000000000002, 180_000_000_000n],
    [0.16666666666666666, 166_666_666_667n],
  ])('are exact: $%s for a million tokens', (usd, atto) => {
    expect(attoPerTokenOfMillion(usd)).toBe(atto);
  });

  it('round half up to micro-dollars', () => {
    expect(microUsdOfAtto(attoOfUsd(0.00014))).toBe(140);
    expect(microUsdOfAtto(attoOfUsd(1.5e-6))).toBe(2);
    expect(microUsdOfAtto(attoOfUsd(1.4999e-6))).toBe(1);
    expect(microUsdOfAtto(attoOfUsd(1_234.567891))).toBe(1_234_567_891);
  });
});

describe('the cost of a call', () => {
  it('is input and output at their rates', () => {
    expect(costMicroUsd(usage(1_000_000, 1_000_000), packaged('gpt-4o-mini'), standard)).toBe(750_000);
    expect(costMicroUsd(usage(1_000, 200), packaged('gpt-4o'), standard)).toBe(4_500);
    expect(costMicroUsd(usage(1_000_000, 0), packaged('text-embedding-3-small'), standard)).toBe(20_000);
  });

  it('counts cached, written and reasoning tokens once, at their own rates', () => {
    const rates = price({ input: 4, cachedInput: 1, cacheWrite: 5, output: 10, reasoning: 20 });
    const spent = usage(1_000, 500, { cachedTokens: 300, cacheWriteTokens: 200, reasoningTokens: 100 });
    expect(costMicroUsd(spent, rates, standard)).toBe(500 * 4 + 300 * 1 + 200 * 5 + 400 * 10 + 100 * 20);
  });

  it('rounds half a micro-dollar up, once for the whole sum', () => {
    const rates = price({ input: 0.5, output: 0.25 });
    expect(costMicroUsd(usage(1, 0), rates, standard)).toBe(1);
    expect(costMicroUsd(usage(0, 1), rates, standard)).toBe(0);
    expect(costMicroUsd(usage(1, 1), rates, standard)).toBe(1);
    expect(costMicroUsd(usage(1, 2), rates, standard)).toBe(1);
    expect(costMicroUsd(usage(3, 0), rates, standard)).toBe(2);
  });

  it('moves to the dearer rates as a whole when the prompt is over the threshold', () => {
    const rates = price({ input: 1, output: 2 }, [{ inputTokens: 1_000, input: 10, output: 20 }]);
    expect(costMicroUsd(usage(1_000, 10), rates, standard)).toBe(1_020);
    expect(costMicroUsd(usage(1_001, 10), rates, standard)).toBe(10_210);
    // 271,999 tokens are the last at the base rate.
    const long = packaged('gpt-5.4');
    expect(costMicroUsd(usage(271_999, 0), long, standard)).toBe(679_998);
    expect(costMicroUsd(usage(272_000, 0), long, standard)).toBe(1_360_000);
  });

  it('includes the fee that some models charge per request', () => {
    const withFee = price({ input: 1, output: 1, perRequest: 0.005 });
    expect(costMicroUsd(usage(0, 0), withFee, standard)).toBe(5_000);
    const sonar = book.priceOf('sonar', { baseUrl: 'https://api.perplexity.ai', nowMs });
    expect(sonar !== null && costMicroUsd(usage(1_000, 100), sonar, standard)).toBe(12_000 + 1_100);
  });

  it('is unknown, never zero, if a rate that is needed is missing', () => {
    const inputOnly = price({ input: 1 });
    expect(costMicroUsd(usage(10, 0), inputOnly, standard)).toBe(10);
    expect(costMicroUsd(usage(10, 1), inputOnly, standard)).toBeNull();
    expect(costMicroUsd(usage(10, 1), price({ input: 1, output: 1 }), { tier: 'batch' })).toBeNull();
  });

  it('takes usage that does not add up for what it can mean', () => {
    const rates = price({ input: 4, cachedInput: 1, output: 10, reasoning: 20 });
    expect(costMicroUsd(usage(100, 10, { cachedTokens: 500 }), rates, standard)).toBe(200);
    expect(costMicroUsd(usage(0, 10, { reasoningTokens: 50 }), rates, standard)).toBe(200);
    const overlapping = usage(100, 0, { cachedTokens: 60, cacheWriteTokens: 60 });
    expect(costMicroUsd(overlapping, price({ input: 4, cachedInput: 1, cacheWrite: 5 }), standard)).toBe(
      60 + 40 * 5,
    );
    expect(costMicroUsd(usage(-5, Number.NaN), rates, standard)).toBe(0);
  });

  it('is what the price package computes itself, within its rounding', () => {
    const models = ['gpt-4o', 'gpt-4o-mini', 'gpt-5', 'o3', 'gpt-5.4', 'gpt-5.6-luna', 'gpt-6-sol'];
    const tokens = fc.integer({ min: 0, max: 600_000 });
    fc.assert(
      fc.property(
        fc.constantFrom(...models),
        tokens,
        tokens,
        fc.double({ min: 0, max: 1, noNaN: true }),
        (model, input, output, share) => {
          const cachedTokens = Math.floor(input * share);
          const theirs = calcPrice(
            { input_tokens: input, output_tokens: output, cache_read_tokens: cachedTokens },
            model,
            { providerId: 'openai', timestamp: new Date(nowMs) },
          );
          const ours = costMicroUsd(usage(input, output, { cachedTokens }), packaged(model), standard);
          expect(Math.abs((ours ?? Number.NaN) - (theirs?.total_price ?? Number.NaN) * 1e6)).toBeLessThan(
            0.51,
          );
        },
      ),
    );
  });
});

const rate = fc.integer({ min: 0, max: 200_000_000 }).map((micro) => micro / 1e6);
const tokens = fc.integer({ min: 0, max: 5_000_000 });
/** Long prompts cost no less than short ones, as with every model of the tables. */
const anyPrice = fc
  .record({
    input: rate,
    output: rate,
    more: fc.integer({ min: 1, max: 4 }),
    threshold: fc.integer({ min: 1, max: 1_000_000 }),
  })
  .map(({ input, output, more, threshold }) =>
    price({ input, output, cachedInput: input / 2 }, [
      { inputTokens: threshold, input: input * more, output: output * more },
    ]),
  );

describe('whatever the rates and tokens', () => {
  it('more tokens never cost less', () => {
    fc.assert(
      fc.property(anyPrice, tokens, tokens, tokens, tokens, (rates, input, output, moreInput, moreOutput) => {
        const less = costMicroUsd(usage(input, output), rates, standard) ?? Number.NaN;
        const more =
          costMicroUsd(usage(input + moreInput, output + moreOutput), rates, standard) ?? Number.NaN;
        expect(more).toBeGreaterThanOrEqual(less);
      }),
    );
  });

  it('two calls together cost what they cost apart, to within a micro-dollar', () => {
    fc.assert(
      fc.property(rate, rate, tokens, tokens, tokens, tokens, (input, output, a, b, c, d) => {
        const rates = price({ input, output });
        const cost = (of: BilledUsage): number => costMicroUsd(of, rates, standard) ?? Number.NaN;
        const apart = cost(usage(a, b)) + cost(usage(c, d));
        expect(Math.abs(cost(usage(a + c, b + d)) - apart)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('no call costs more than its worst case', () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(
        anyPrice,
        tokens,
        tokens,
        share,
        share,
        share,
        (rates, input, cap, ofInput, ofOutput, cached) => {
          const inputTokens = Math.floor(input * ofInput);
          const spent = usage(inputTokens, Math.floor(cap * ofOutput), {
            cachedTokens: Math.floor(inputTokens * cached),
            cacheWriteTokens: inputTokens,
          });
          const cost = costMicroUsd(spent, rates, standard) ?? Number.NaN;
          expect(cost).toBeLessThanOrEqual(worstCaseMicroUsd(input, cap, rates, standard) ?? Number.NaN);
        },
      ),
    );
  });
});

describe('the worst case of a call', () => {
  it('has all input fresh, or written to a dearer cache, and all the output that is allowed', () => {
    expect(worstCaseMicroUsd(1_000, 100, price({ input: 2, cachedInput: 1, output: 10 }), standard)).toBe(
      3_000,
    );
    const written = price({ input: 2, cacheWrite: 2.5, output: 10, reasoning: 12 });
    expect(worstCaseMicroUsd(1_000, 100, written, standard)).toBe(3_700);
  });

  it('rounds up', () => {
    expect(worstCaseMicroUsd(1, 0, price({ input: 0.01, output: 1 }), standard)).toBe(1);
  });

  it('without a cap, takes the longest answer of the model, or else its whole context', () => {
    const rates = { input: 1, output: 1 };
    expect(
      worstCaseMicroUsd(
        0,
        null,
        price(rates, [], { maxOutputTokens: 500, contextWindowTokens: 9_000 }),
        standard,
      ),
    ).toBe(500);
    expect(worstCaseMicroUsd(0, null, price(rates, [], { contextWindowTokens: 9_000 }), standard)).toBe(
      9_000,
    );
    expect(worstCaseMicroUsd(1_000, null, packaged('gpt-4o-mini'), standard)).toBe(9_981);
  });

  it('is unknown without any bound on the output, or without a price', () => {
    expect(worstCaseMicroUsd(1_000, null, price({ input: 1, output: 1 }), standard)).toBeNull();
    expect(worstCaseMicroUsd(1_000, 10, price({ input: 1 }), standard)).toBeNull();
    expect(worstCaseMicroUsd(1_000, 10, price({ input: 1, output: 1 }), { tier: 'flex' })).toBeNull();
  });

  it('needs no cap for an embedding', () => {
    expect(worstCaseMicroUsd(1_000_000, 0, packaged('text-embedding-3-small'), standard)).toBe(20_000);
  });
});
