import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Budget, type BudgetAnswer, type Spending } from '../../src/engine/budget.js';

const dollars = (usd: number): Spending => ({ costMicroUsd: Math.round(usd * 1_000_000), tokens: 0 });
const NOTHING = dollars(0);

function capped(usd: number): Budget {
  return new Budget({ maxCostMicroUsd: usd * 1_000_000, maxTokens: null }, NOTHING);
}

/** Lets promises that can resolve do so. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a budget', () => {
  it('of 1.00 at 0.10 a call sends exactly ten, however many ask at once', async () => {
    const budget = capped(1);
    const answers: BudgetAnswer[] = [];
    for (let call = 0; call < 50; call += 1)
      void budget.admit(dollars(0.1)).then((answer) => answers.push(answer));
    await settled();
    expect(answers).toEqual(Array(10).fill('granted'));
    for (let call = 0; call < 10; call += 1) budget.settle(dollars(0.1), dollars(0.1));
    await settled();
    expect(answers.filter((answer) => answer === 'granted')).toHaveLength(10);
    expect(answers.filter((answer) => typeof answer === 'object')).toHaveLength(40);
  });

  it('waits for open calls that may turn out cheaper than was set aside', async () => {
    const budget = capped(1);
    expect(await budget.admit(dollars(0.9))).toBe('granted');
    const second = budget.admit(dollars(0.5));
    budget.settle(dollars(0.9), dollars(0.2));
    expect(await second).toBe('granted');
  });

  it('counts what earlier processes of the run have spent', async () => {
    const budget = new Budget({ maxCostMicroUsd: 1_000_000, maxTokens: null }, dollars(0.95));
    expect(await budget.admit(dollars(0.1))).toEqual({ exhausted: 'cost' });
  });

  it('holds tokens to their cap as well', async () => {
    const budget = new Budget({ maxCostMicroUsd: null, maxTokens: 1_000 }, NOTHING);
    expect(await budget.admit({ costMicroUsd: 0, tokens: 900 })).toBe('granted');
    budget.settle({ costMicroUsd: 0, tokens: 900 }, { costMicroUsd: 0, tokens: 800 });
    expect(await budget.admit({ costMicroUsd: 0, tokens: 201 })).toEqual({ exhausted: 'tokens' });
    expect(await budget.admit({ costMicroUsd: 0, tokens: 200 })).toBe('granted');
  });

  it('sends everybody back when it closes', async () => {
    const budget = capped(1);
    await budget.admit(dollars(1));
    const waiting = budget.admit(dollars(1));
    budget.close();
    expect(await waiting).toBe('closed');
  });

  it('is never passed, whatever calls cost up to what was set aside for them', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 1_000 }),
        fc.array(
          fc.record({
            most: fc.integer({ min: 1, max: 300 }),
            share: fc.double({ min: 0, max: 1, noNaN: true }),
          }),
          {
            minLength: 1,
            maxLength: 60,
          },
        ),
        async (cap, calls) => {
          const budget = new Budget({ maxCostMicroUsd: cap, maxTokens: null }, NOTHING);
          const open: { most: Spending; actual: Spending }[] = [];
          for (const { most, share } of calls) {
            const reserved = { costMicroUsd: most, tokens: 0 };
            const actual = { costMicroUsd: Math.floor(most * share), tokens: 0 };
            void budget.admit(reserved).then((answer) => {
              if (answer === 'granted') open.push({ most: reserved, actual });
            });
          }
          await settled();
          for (let next = open.shift(); next !== undefined; next = open.shift()) {
            budget.settle(next.most, next.actual);
            expect(budget.spent.costMicroUsd).toBeLessThanOrEqual(cap);
            await settled();
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});
