import { describe, expect, it } from 'vitest';
import type { BilledUsage } from '../../src/core/usage.js';
import { billedMicroUsd, isWithinBound, tierOfServiceTier, worstCaseAtTier } from '../../src/pricing/cost.js';
import { attoPerTokenOfMillion } from '../../src/pricing/money.js';
import { type ModelPrice, type PriceTier, type RateTable, tokenRates } from '../../src/pricing/price-book.js';

function at(usdPerMillion: number): RateTable {
  const rate = attoPerTokenOfMillion(usdPerMillion);
  return { base: tokenRates({ input: rate, output: rate }), above: [] };
}

/** 2 dollars a million tokens at the standard tier. */
function price(tiers: Partial<Record<PriceTier, RateTable>> = {}): ModelPrice {
  return {
    model: 'by-hand',
    table: { source: 'test', date: null },
    tiers: { standard: at(2), batch: null, flex: null, priority: null, ...tiers },
    contextWindowTokens: null,
    maxOutputTokens: null,
  };
}

function usage(serviceTier: string | null): BilledUsage {
  const tokens = { inputTokens: 600, outputTokens: 400, cachedTokens: 0, reasoningTokens: 0 };
  return serviceTier === null ? tokens : { ...tokens, serviceTier };
}

describe('the tier that an answer names', () => {
  it.each([
    [null, 'standard'],
    ['default', 'standard'],
    ['auto', 'standard'],
    ['on_demand', 'standard'],
    ['scale', 'standard'],
    ['flex', 'flex'],
    ['priority', 'priority'],
    ['fast', 'priority'],
    ['ultrafast', null],
  ])('%s is priced as %s', (serviceTier, tier) => {
    expect(tierOfServiceTier(serviceTier)).toBe(tier);
  });

  it.each([
    [null, 2_000],
    ['default', 2_000],
    ['scale', 2_000],
    ['flex', 1_000],
    ['priority', 4_000],
  ])('%s decides what the call cost', (serviceTier, microUsd) => {
    expect(billedMicroUsd(usage(serviceTier), price({ flex: at(1), priority: at(4) }))).toBe(microUsd);
  });

  it.each(['priority', 'flex', 'ultrafast'])(
    '%s leaves the cost unknown if the table has no price for it',
    (serviceTier) => {
      expect(billedMicroUsd(usage(serviceTier), price())).toBeNull();
    },
  );
});

describe('the most that a request can cost', () => {
  const most = (serviceTier: string | null, tiers?: Partial<Record<PriceTier, RateTable>>): number | null =>
    worstCaseAtTier(600, 400, serviceTier, price(tiers));

  it('is at standard rates for flex, which may be answered at the standard tier', () => {
    expect(most('flex', { flex: at(1) })).toBe(2_000);
    expect(most('flex')).toBe(2_000);
  });

  it('is at the rates of a tier that is dearer than standard, whatever it is', () => {
    expect(most('priority', { priority: at(4) })).toBe(4_000);
    expect(most('fast', { priority: at(4) })).toBe(4_000);
    expect(most('flex', { flex: at(3) })).toBe(3_000);
    expect(most('priority', { priority: at(1) })).toBe(2_000);
  });

  it('is unknown for priority without a price, and for a tier that nobody knows', () => {
    expect(most('priority')).toBeNull();
    expect(most('fast')).toBeNull();
    expect(most('ultrafast', { priority: at(4) })).toBeNull();
  });

  it('is that of priority for auto, if its price is known, since a project may be set to it', () => {
    expect(most('auto', { priority: at(4) })).toBe(4_000);
    expect(most('auto')).toBe(2_000);
  });

  it('is at standard rates if no tier is asked for, or the default one', () => {
    expect(most(null, { priority: at(4) })).toBe(2_000);
    expect(most('default', { priority: at(4) })).toBe(2_000);
  });

  it.each([
    [null, null, true],
    ['flex', 'default', true],
    [null, 'flex', true],
    ['priority', 'priority', true],
    ['fast', 'priority', true],
    [null, 'priority', false],
    ['auto', 'priority', false],
    ['flex', 'ultrafast', false],
  ])('for %s still bounds a call of unknown price that %s has answered: %s', (asked, answered, holds) => {
    expect(isWithinBound(asked, answered)).toBe(holds);
  });
});
