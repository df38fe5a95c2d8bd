import { expect, it } from 'vitest';
import { Distribution } from '../../../src/runs/estimate/distribution.js';

function figuresOf(values: readonly number[]) {
  const distribution = new Distribution();
  for (const value of values) distribution.add(value);
  return distribution.figures();
}

it('figures of a distribution are values of it', () => {
  expect(figuresOf([])).toEqual({ p50: 0, p95: 0, max: 0 });
  expect(figuresOf([7])).toEqual({ p50: 7, p95: 7, max: 7 });
  expect(figuresOf([9, 1])).toEqual({ p50: 1, p95: 9, max: 9 });
  expect(figuresOf(Array.from({ length: 100 }, (_, index) => 100 - index))).toEqual({
    p50: 50,
    p95: 95,
    max: 100,
  });
});
