/** Vectors that are compared with each other later have to be of one length, whichever calls they came in. */
import type { CheckOutput } from '../engine/prepared-task.js';

/**
 * @returns makes the check of an output: it is refused where others of its key are more often of another size. A first
 *   one that is wrong passes, and holds nobody up
 */
export function createLikeOthers(): (key: string, sizeOf: (outputJson: string) => number) => CheckOutput {
  const countsByKey = new Map<string, Map<number, number>>();
  return (key, sizeOf) => async (outputJson) => {
    const counts = countsByKey.get(key) ?? new Map<number, number>();
    countsByKey.set(key, counts);
    const size = sizeOf(outputJson);
    const count = (counts.get(size) ?? 0) + 1;
    counts.set(size, count);
    const [usual, most] = [...counts].reduce((one, other) => (other[1] > one[1] ? other : one));
    if (count >= most) return { outputJson };
    return { problem: `The vector has ${size} numbers, where others of this run have ${usual}` };
  };
}
