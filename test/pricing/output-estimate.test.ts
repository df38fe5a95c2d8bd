import { describe, expect, test } from 'vitest';
import { createOutputEstimator, type OutputEstimator } from '../../src/pricing/output-estimate.js';

function afterAnswers(count: number, outputTokens: (index: number) => number): OutputEstimator {
  const estimator = createOutputEstimator();
  for (let index = 0; index < count; index += 1) estimator.observe(outputTokens(index));
  return estimator;
}

describe('the output reservation', () => {
  test('is the cap before any answer, and a default without a cap', () => {
    expect(createOutputEstimator().outputTokens(4_096)).toBe(4_096);
    expect(createOutputEstimator().outputTokens(null)).toBe(1_024);
  });

  test('follows short answers after ten of them, and is then far below the cap', () => {
    expect(afterAnswers(9, () => 50).outputTokens(4_096)).toBe(4_096);
    const reservation = afterAnswers(10, () => 50).outputTokens(4_096);
    expect(reservation).toBeGreaterThan(50);
    expect(reservation).toBeLessThan(100);
  });

  test('is never above the cap', () => {
    expect(afterAnswers(20, () => 3_000).outputTokens(100)).toBe(100);
  });

  test('is above long answers too, not only above the usual one', () => {
    const estimator = afterAnswers(400, (index) => (index % 50 === 0 ? 900 : 40));
    expect(estimator.outputTokens(null)).toBeGreaterThan(900);
  });

  test('follows the documents when their answers change', () => {
    const estimator = afterAnswers(1_000, (index) => (index < 400 ? 2_000 : 30));
    expect(estimator.outputTokens(null)).toBeLessThan(100);
    for (let index = 0; index < 50; index += 1) estimator.observe(2_000);
    expect(estimator.outputTokens(null)).toBeGreaterThan(2_000);
  });

  test('ignores what is not a count', () => {
    expect(afterAnswers(20, () => Number.NaN).outputTokens(null)).toBe(1_024);
    expect(afterAnswers(20, () => -1).outputTokens(null)).toBe(1_024);
  });
});
