import { expect, it } from 'vitest';
import { createLikeOthers } from '../../src/runs/like-others.js';

const lengthOf = (json: string): number => (JSON.parse(json) as number[]).length;

it('a vector of another length than most others of its key is refused, and holds none of them up', async () => {
  const likeOthers = createLikeOthers();
  const problems: unknown[] = [];
  for (const vector of ['[1]', '[1,2]', '[3,4]', '[5,6]', '[7]', '[8,9]']) {
    const checked = await likeOthers('a', lengthOf)(vector);
    problems.push('problem' in checked ? checked.problem : null);
  }
  const refused = 'The vector has 1 numbers, where others of this run have 2';
  expect(problems).toEqual([null, null, null, null, refused, null]);
  expect(await likeOthers('b', lengthOf)('[1]')).toEqual({ outputJson: '[1]' });
});
