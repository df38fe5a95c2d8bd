import { describe, expect, it } from 'vitest';
import { TotalEstimator } from '../../../src/runs/estimate/total-estimator.js';
import { seededRandom } from '../../support/seeded-random.js';

describe('a total from a sample', () => {
  it('is the sum, without an error, where every document was looked at', () => {
    const estimator = new TotalEstimator();
    for (const value of [3, 5, 9]) estimator.add(value * 4, value);
    expect(estimator.estimate({ documents: 3, bytes: 68 })).toEqual({ total: 17, plusMinus: 0 });
    expect(new TotalEstimator().estimate({ documents: 0, bytes: 0 })).toEqual({ total: 0, plusMinus: 0 });
  });

  it('follows the lengths of documents that were not looked at', () => {
    const estimator = new TotalEstimator();
    // Seven tokens and one for each four bytes, without a stray.
    for (const bytes of [40, 80, 120, 400]) estimator.add(bytes, 7 + bytes / 4);
    const { total, plusMinus } = estimator.estimate({ documents: 1_000, bytes: 1_000_000 });
    expect(total).toBeCloseTo(7 * 1_000 + 1_000_000 / 4, 3);
    expect(plusMinus).toBeCloseTo(0, 3);
  });

  it('says nothing of its error after less than three documents', () => {
    const estimator = new TotalEstimator();
    estimator.add(10, 3);
    estimator.add(20, 5);
    expect(estimator.estimate({ documents: 10, bytes: 150 }).plusMinus).toBe(Number.POSITIVE_INFINITY);
  });

  it('copes with documents that are all of one length', () => {
    const estimator = new TotalEstimator();
    for (const value of [1, 2, 3]) estimator.add(10, value);
    expect(estimator.estimate({ documents: 30, bytes: 300 }).total).toBeCloseTo(60, 6);
  });

  it('has the true total within its interval in about 95 of 100 samples', () => {
    const random = seededRandom(7);
    const population = Array.from({ length: 5_000 }, () => {
      // Lengths over two orders of magnitude; a third of the documents takes twice the tokens a byte.
      const bytes = Math.round(50 * 10 ** (2 * random()));
      const tokens = Math.round(8 + (bytes / 4) * (random() < 1 / 3 ? 2 : 1) * (0.8 + 0.4 * random()));
      return { bytes, tokens };
    });
    const bytes = population.reduce((sum, each) => sum + each.bytes, 0);
    const truth = population.reduce((sum, each) => sum + each.tokens, 0);
    const samples = 400;
    let inside = 0;
    let worst = 0;
    for (let sample = 0; sample < samples; sample += 1) {
      const estimator = new TotalEstimator();
      const order = population.map((_, index) => index);
      for (let place = 0; place < 300; place += 1) {
        const other = place + Math.floor(random() * (order.length - place));
        [order[place], order[other]] = [order[other] ?? 0, order[place] ?? 0];
        const document = population[order[place] ?? 0];
        if (document !== undefined) estimator.add(document.bytes, document.tokens);
      }
      const { total, plusMinus } = estimator.estimate({ documents: population.length, bytes });
      if (Math.abs(total - truth) <= plusMinus) inside += 1;
      worst = Math.max(worst, plusMinus / total);
    }
    // Three standard deviations of 400 draws at 95 % are 3.3 %.
    expect(inside / samples).toBeGreaterThan(0.917);
    expect(inside / samples).toBeLessThan(0.983);
    expect(worst).toBeLessThan(0.1);
  });
});
