/** Budgets over the whole engine and a real store, on a clock that stands still. */
import { describe, expect, it } from 'vitest';
import type { Lane } from '../../src/engine/lane.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import type { BudgetSettings } from '../../src/runs/run-settings.js';
import type { SimulatorOptions } from '../../src/simulator/options.js';
import { FakeClock } from '../support/fake-clock.js';
import { type JudgedProvider, judgedProvider } from '../support/judged-provider.js';
import { seededRandom } from '../support/seeded-random.js';
import { StoredRun } from '../support/stored-run.js';

/** Ten cents an answer token, input free, so that a call with a cap of one token costs exactly 0.10. */
const MICRO_USD_PER_TOKEN = 100_000;

const NO_BUDGET: BudgetSettings = { maxCostMicroUsd: null, maxTokensTotal: null, maxFailures: null };

function laneOver(server: JudgedProvider, outputCap: number): Lane {
  return {
    name: 'lane',
    weight: 1,
    provider: server,
    limiter: createLimiter({ requestsPerMinute: null, tokensPerMinute: null, random: () => 0.5 }),
    costOf: (_model, usage) => usage.outputTokens * MICRO_USD_PER_TOKEN,
    mostOf: (_model, _input, cap) => (cap ?? outputCap) * MICRO_USD_PER_TOKEN,
  };
}

async function drained(
  documents: number,
  budget: Partial<BudgetSettings>,
  options: { readonly concurrency: number; readonly server?: SimulatorOptions; readonly outputCap: number },
) {
  const clock = new FakeClock();
  const server = judgedProvider(
    { latencyMs: { min: 5, max: 90 }, outputTokens: 1, ...options.server },
    clock,
  );
  const texts = Array.from({ length: documents }, (_, index) => `Document number ${index + 1}.`);
  const run = await StoredRun.of(texts, { concurrency: options.concurrency }, clock, {
    ...NO_BUDGET,
    ...budget,
  });
  try {
    const report = await run.executeOver([laneOver(server, options.outputCap)], seededRandom(5));
    return { ...report, calls: server.arrivals.length };
  } finally {
    await run.remove();
  }
}

describe('a run under a cap', () => {
  it('of 1.00 at 0.10 a call sends exactly ten of fifty, and says why it stopped', async () => {
    const { end, summary, run, calls } = await drained(
      50,
      { maxCostMicroUsd: 1_000_000 },
      { concurrency: 50, outputCap: 1 },
    );
    expect(calls).toBe(10);
    expect(end).toEqual({ reason: 'limit_reached', limit: 'cost' });
    expect(summary.costMicroUsd).toBe(1_000_000);
    expect(summary.counts).toMatchObject({ completed: 10, ready: 40, failed: 0 });
    expect(run.haltReason).toBe('limit_reached: cost');
  });

  it('on failures stops when more documents have failed than the user accepts', async () => {
    const { end, summary } = await drained(
      200,
      { maxFailures: { documents: 3 } },
      { concurrency: 1, outputCap: 1, server: { errorRate: { refuse: 1 } } },
    );
    expect(end).toEqual({ reason: 'limit_reached', limit: 'failures' });
    expect(summary.counts.failed).toBeGreaterThan(3);
    expect(summary.counts.failed).toBeLessThan(10);
  });
});
