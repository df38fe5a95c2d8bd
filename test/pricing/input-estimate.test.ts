import { describe, expect, it } from 'vitest';
import { createInputEstimator } from '../../src/pricing/input-estimate.js';

const text = 'The battery lasts two days and the screen is bright.';

describe('the input estimate', () => {
  it('follows a server that charges more than expected', () => {
    const estimator = createInputEstimator(8);
    const before = estimator.inputTokens(text);
    estimator.observe(text, before * 3);
    expect(estimator.inputTokens(text)).toBe(before * 3);
  });

  it('comes down to what a server charges that counts less, but stays with the largest of late', () => {
    const estimator = createInputEstimator(8);
    const before = estimator.inputTokens(text);
    estimator.observe(text, Math.round(before * 0.8));
    estimator.observe(text, Math.round(before * 0.6));
    expect(estimator.inputTokens(text)).toBeGreaterThanOrEqual(Math.round(before * 0.8));
    expect(estimator.inputTokens(text)).toBeLessThan(before);
  });

  it('takes what is no text by its own rule, and learns of both together', () => {
    const estimator = createInputEstimator(8);
    const before = estimator.inputTokens(text);
    expect(estimator.inputTokens(text, 765)).toBe(before + 765);
    estimator.observe(text, (before + 765) * 2, 765);
    expect(estimator.inputTokens(text, 765)).toBe((before + 765) * 2);
  });

  it('forgets one odd document again', () => {
    const estimator = createInputEstimator(8);
    const before = estimator.inputTokens(text);
    estimator.observe(text, before * 10);
    for (let answer = 0; answer < 64; answer += 1) estimator.observe(text, before);
    expect(estimator.inputTokens(text)).toBe(before);
  });

  it.each([0, -1, Number.NaN])('does not believe a usage of %s', (usage) => {
    const estimator = createInputEstimator(8);
    const before = estimator.inputTokens(text);
    estimator.observe(text, usage);
    expect(estimator.inputTokens(text)).toBe(before);
  });
});
