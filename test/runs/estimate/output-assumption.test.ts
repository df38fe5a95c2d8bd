import { expect, it } from 'vitest';
import { assumeOutput } from '../../../src/runs/estimate/output-assumption.js';

it.each<[what: string, args: Parameters<typeof assumeOutput>, low: number, high: number, basis: string]>([
  ['what the user says', ['gpt-4o-mini', null, { low: 5, high: 9 }], 5, 9, 'given'],
  ['what the user says, within the cap', ['gpt-4o-mini', 7, { low: 5, high: 9 }], 5, 7, 'given'],
  ['its cap, or a short answer that stops before it', ['gpt-4o-mini', 800, null], 50, 800, 'cap'],
  ['a cap that is shorter than a short answer', ['gpt-4o-mini', 5, null], 5, 5, 'cap'],
  ['a cap, however little a model that reasons says', ['gpt-5-mini', 200, null], 200, 200, 'cap'],
  ['a range', ['gpt-4o-mini', null, null], 50, 500, 'assumed'],
  ['a wider one for models that reason', ['gpt-5-mini', null, null], 300, 3_000, 'assumed'],
  ['the same by way of a gateway', ['openai/o4-mini', null, null], 300, 3_000, 'assumed'],
  ['the usual one for their chat variants', ['gpt-5-chat-latest', null, null], 50, 500, 'assumed'],
])('an answer is taken to be as long as %s', (_, args, low, high, basis) => {
  expect(assumeOutput(...args)).toEqual({ low, high, basis });
});
