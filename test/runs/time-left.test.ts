import { expect, it } from 'vitest';
import { type RecentPace, timeLeftMs } from '../../src/runs/time-left.js';

const UNLIMITED = { requests: 60, tokens: 60_000, requestLimit: null, tokenLimit: null };
const PACE: RecentPace = { settled: 60, overMs: 10_000, left: 600, minute: UNLIMITED };

it('is as long as the documents of late took', () => {
  expect(timeLeftMs(PACE)).toBe(100_000);
});

it.each([
  ['requests', { ...UNLIMITED, requestLimit: 100 }, 6 * 60_000],
  ['tokens', { ...UNLIMITED, tokenLimit: 60_000 }, 10 * 60_000],
])('is never shorter than a limit of %s allows: a first burst says little of the rest', (_of, minute, ms) => {
  expect(timeLeftMs({ ...PACE, minute })).toBe(ms);
});

it('is not told after a handful of documents, or after no time', () => {
  expect(timeLeftMs({ ...PACE, settled: 4 })).toBeNull();
  expect(timeLeftMs({ ...PACE, overMs: 0 })).toBeNull();
});
