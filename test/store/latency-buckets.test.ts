import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { latencyBucket, latencyQuantileMs, RELATIVE_ERROR } from '../../src/store/latency-buckets.js';

function bucketsOf(latenciesMs: readonly number[]): { bucket: number; calls: number }[] {
  const calls = new Map<number, number>();
  for (const latencyMs of latenciesMs) {
    const bucket = latencyBucket(latencyMs);
    calls.set(bucket, (calls.get(bucket) ?? 0) + 1);
  }
  return [...calls].sort(([a], [b]) => a - b).map(([bucket, count]) => ({ bucket, calls: count }));
}

describe('latency percentiles', () => {
  it('are within the promised error of the exact ones, for any latencies', () => {
    const latencies = fc.array(fc.double({ min: 0.02, max: 900_000, noNaN: true }), { minLength: 1 });
    fc.assert(
      fc.property(latencies, fc.constantFrom(0, 0.5, 0.95, 0.99, 1), (latenciesMs, quantile) => {
        const sorted = [...latenciesMs].sort((a, b) => a - b);
        const exact = sorted[Math.max(1, Math.ceil(quantile * sorted.length)) - 1] ?? 0;
        const found = latencyQuantileMs(bucketsOf(latenciesMs), quantile) ?? 0;
        return Math.abs(found - exact) <= exact * RELATIVE_ERROR * 1.000001;
      }),
    );
  });

  it('are at most two percent off', () => {
    expect(RELATIVE_ERROR).toBeLessThanOrEqual(0.02);
  });

  it('do not exist without calls', () => {
    expect(latencyQuantileMs([], 0.5)).toBeNull();
  });

  it.each([0, -3, Number.NaN, Number.POSITIVE_INFINITY, 1e-9, 1e300])('have a bucket for %d', (latencyMs) => {
    expect(Number.isInteger(latencyBucket(latencyMs))).toBe(true);
  });
});
