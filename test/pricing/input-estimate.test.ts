import { describe, expect, it } from 'vitest';
import { createInputEstimator } from '../../src/pricing/input-estimate.js';

const text = 'The battery lasts two days and the screen is bright.';

describe('the input estimate', () => {
  it('follows a server that charges more than expected', () => {
    const estimator = createInputEstimator(8);
    const measured = estimator.measure(text);
    const before = measured.tokens();
    measured.observe(before * 3);
    expect(measured.tokens()).toBe(before * 3);
  });

  it('comes down to what a server charges that counts less, but stays with the largest of late', () => {
    const estimator = createInputEstimator(8);
    const measured = estimator.measure(text);
    const before = measured.tokens();
    measured.observe(Math.round(before * 0.8));
    measured.observe(Math.round(before * 0.6));
    expect(measured.tokens()).toBeGreaterThanOrEqual(Math.round(before * 0.8));
    expect(measured.tokens()).toBeLessThan(before);
  });

  it('takes what is no text by its own rule, and learns of both together', () => {
    const estimator = createInputEstimator(8);
    const measured = estimator.measure(text);
    const before = measured.tokens();
    const withImage = estimator.measure(text, 765);
    expect(withImage.tokens()).toBe(before + 765);
    withImage.observe((before + 765) * 2);
    expect(withImage.tokens()).toBe((before + 765) * 2);
  });

  it('forgets one odd document again', () => {
    const estimator = createInputEstimator(8);
    const measured = estimator.measure(text);
    const before = measured.tokens();
    measured.observe(before * 10);
    for (let answer = 0; answer < 64; answer += 1) measured.observe(before);
    expect(measured.tokens()).toBe(before);
  });

  it.each([0, -1, Number.NaN])('does not believe a usage of %s', (usage) => {
    const estimator = createInputEstimator(8);
    const measured = estimator.measure(text);
    const before = measured.tokens();
    measured.observe(usage);
    expect(measured.tokens()).toBe(before);
  });
});
