/**
 * The throttle against every kind of server, after the first minute: how much of what is possible it uses, and how
 * many calls it has refused beyond the server's own chance. `THROTTLE_MATRIX=all` plays every case (minutes) and
 * prints the whole table; the first minute is told apart in it.
 */
import { afterAll, describe, expect, test } from 'vitest';
import {
  allCases,
  type Case,
  type Figures,
  MOST_REFUSED_BEYOND,
  nameOf,
  play,
  shortfallOf,
  wanted,
} from './throttle-matrix.js';

const playsAll = process.env['THROTTLE_MATRIX'] === 'all';
const rows: string[] = [];

/** Chance of two sizes and kinds stands for all of them, with open calls that are fixed. */
function isPlayed({ chance, concurrency }: Case): boolean {
  if (playsAll || chance === null) return true;
  if (concurrency === 'auto') return false;
  return (chance.share === 0.05 && chance.status === 429) || (chance.share === 0.1 && chance.status === 503);
}

function rowOf(each: Case, { used, refusedBeyond, firstMinute }: Figures): string {
  const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
  const first = `${firstMinute.letIn} let in, ${firstMinute.refused} refused`;
  return `| ${nameOf(each)} | ${percent(used)} | ${percent(refusedBeyond)} | ${first} |`;
}

const cases = [...allCases()].filter(isPlayed).map((each) => [nameOf(each), each] as const);

describe('the throttle', () => {
  test.each(cases)('before %s', (_name, each) => {
    const { figures } = play(each, 100);
    rows.push(rowOf(each, figures));
    if (playsAll) return;
    const { used, refusedBeyond } = shortfallOf(each);
    expect(figures.used).toBeGreaterThanOrEqual(wanted(each) - used);
    expect(figures.refusedBeyond).toBeLessThanOrEqual(MOST_REFUSED_BEYOND + refusedBeyond);
  });

  test.each([
    ['no limit (429) + 10 % of 503, fixed, declared', 14],
    ['hidden 10 s of 100 (503) + 10 % of 503, fixed, declared', 8],
  ])('sees through a slow-down that was kept by chance: %s, seed %i', (name, seed) => {
    const each = [...allCases()].find((one) => nameOf(one) === name);
    if (each === undefined) throw new Error(`no case of the name ${name}`);
    expect(play(each, seed).figures.used).toBeGreaterThanOrEqual(wanted(each));
  });

  afterAll(() => {
    if (!playsAll) return;
    console.log(
      ['| server | used | refused beyond chance | first minute |', '|---|---|---|---|', ...rows].join('\n'),
    );
  });
});
