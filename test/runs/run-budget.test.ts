/** What a run may spend and how much of it may fail. */
import { describe, expect, it } from 'vitest';
import type { RunSummary } from '../../src/core/run-summary.js';
import type { Lane } from '../../src/engine/lane.js';
import { checkBudget, createRunBudget, failureLimit } from '../../src/runs/run-budget.js';
import type { BudgetSettings } from '../../src/runs/run-settings.js';
import { summary } from '../ui/sample-run.js';

const CAPS: BudgetSettings = { maxCostMicroUsd: null, maxTokensTotal: null, maxFailures: null };
const BOUNDS = { model: 'm', mostInputTokens: 100, outputCap: 50, serviceTier: null };

/** A lane on which every call costs at most this. */
function laneAt(most: number | null): Lane {
  return { mostOf: () => most } as unknown as Lane;
}

const UNSPENT: RunSummary = {
  ...summary,
  usage: { inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 },
  costMicroUsd: 0,
};

function budgetOf(caps: Partial<BudgetSettings>, lanes: readonly Lane[], spent: Partial<RunSummary> = {}) {
  const budget = createRunBudget({ ...CAPS, ...caps }, lanes, { ...UNSPENT, ...spent });
  if (budget === null) throw new Error('there must be a budget');
  return budget;
}

describe('a budget', () => {
  it('is none without a cap', () => {
    expect(createRunBudget(CAPS, [laneAt(1)], UNSPENT)).toBeNull();
  });

  it('sets aside what a call costs on the dearest lane, since any may take it', () => {
    const budget = budgetOf({ maxCostMicroUsd: 1_000 }, [laneAt(30), laneAt(70), laneAt(50)]);
    expect(budget.mostOf(BOUNDS)).toEqual({ costMicroUsd: 70, tokens: 150 });
  });

  it('of tokens alone asks for no price', () => {
    const budget = budgetOf({ maxTokensTotal: 1_000 }, [laneAt(null)]);
    expect(budget.mostOf(BOUNDS)).toEqual({ costMicroUsd: 0, tokens: 150 });
  });

  it('of cost stops a call whose price one lane does not know', () => {
    const budget = budgetOf({ maxCostMicroUsd: 1_000 }, [laneAt(30), laneAt(null)]);
    expect(() => budget.mostOf(BOUNDS)).toThrowError(
      expect.objectContaining({ code: 'PRICE_UNKNOWN', exitCode: 4 }),
    );
  });

  it.each([
    ['has cost', { costMicroUsd: 60 }],
    ['may have cost', { inDoubt: { calls: 1, withoutUsage: 0, tokens: 0, costMicroUsd: 60 } }],
  ])('has left of the money what no earlier call %s', async (_, spent) => {
    const most = { costMicroUsd: 50, tokens: 0 };
    const budget = budgetOf({ maxCostMicroUsd: 100 }, [laneAt(1)], spent);
    expect(await budget.admit(most)).toEqual({ exhausted: 'cost' });
    expect(await budget.admit({ ...most, costMicroUsd: 40 })).toBe('granted');
  });

  it.each([
    ['has used', { usage: { ...UNSPENT.usage, inputTokens: 40, outputTokens: 20 } }],
    ['may have used', { inDoubt: { calls: 1, withoutUsage: 0, tokens: 60, costMicroUsd: 0 } }],
  ])('has left of the tokens what no earlier call %s', async (_, spent) => {
    const budget = budgetOf({ maxTokensTotal: 100 }, [laneAt(1)], spent);
    expect(await budget.admit({ costMicroUsd: 0, tokens: 50 })).toEqual({ exhausted: 'tokens' });
    expect(await budget.admit({ costMicroUsd: 0, tokens: 40 })).toBe('granted');
  });

  it('gives back what a call has not needed', async () => {
    const budget = budgetOf({ maxTokensTotal: 100 }, [laneAt(1)]);
    const most = { costMicroUsd: 0, tokens: 90 };
    expect(await budget.admit(most)).toBe('granted');
    const next = budget.admit(most);
    budget.settle(most, { costMicroUsd: 0, tokens: 10 });
    expect(await next).toBe('granted');
  });
});

describe('a cap on cost', () => {
  it('is refused before the first call where one lane has no price', () => {
    const caps = { ...CAPS, maxCostMicroUsd: 1 };
    const asked = { model: 'm', outputCap: null, serviceTier: null };
    const refused = expect.objectContaining({ code: 'PRICE_UNKNOWN', exitCode: 2 });
    expect(() => checkBudget(caps, [laneAt(1), laneAt(null)], asked)).toThrowError(refused);
    expect(() => checkBudget(caps, [laneAt(1)], asked)).not.toThrow();
    expect(() => checkBudget(CAPS, [laneAt(null)], asked)).not.toThrow();
  });
});

describe('a limit on failures', () => {
  it('in documents is passed by one more', () => {
    const tooMany = failureLimit({ documents: 3 });
    expect([tooMany?.(0, 3), tooMany?.(0, 4)]).toEqual([false, true]);
  });

  it('as a share says nothing of the first documents, and is exact from then on', () => {
    const tooMany = failureLimit({ share: 0.1 });
    expect(tooMany?.(0, 49)).toBe(false);
    expect(tooMany?.(45, 5)).toBe(false);
    expect(tooMany?.(44, 6)).toBe(true);
  });

  it('is none where none was asked for', () => {
    expect(failureLimit(null)).toBeNull();
  });
});
