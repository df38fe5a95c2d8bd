import { describe, expect, it } from 'vitest';
import { type PaceLimits, runDuration, type Workload } from '../../../src/runs/estimate/run-duration.js';

const unlimited: PaceLimits = {
  requestsPerMinute: null,
  tokensPerMinute: null,
  requestsPerDay: null,
  concurrency: 10,
};
const work: Workload = { calls: 1_000, inputTokens: 100_000, outputTokens: 20_000 };
const latency = { baseMs: 500, msPerOutputToken: 25 };

describe('how long a run takes', () => {
  it('is latency by open calls where nothing else holds it back', () => {
    // 20 tokens an answer: a second a call, ten at a time.
    expect(runDuration(work, unlimited, latency)).toEqual({ ms: 100_000, heldBackBy: 'concurrency' });
  });

  it('is one call where all can be open at once', () => {
    expect(runDuration({ ...work, calls: 5, outputTokens: 100 }, unlimited, latency).ms).toBe(1_000);
    expect(runDuration({ calls: 0, inputTokens: 0, outputTokens: 0 }, unlimited, latency).ms).toBe(0);
  });

  it.each<[what: string, limits: Partial<PaceLimits>, ms: number, heldBackBy: string]>([
    // A minute for each whole window but the last, and then the calls of the last.
    ['300 requests a minute', { requestsPerMinute: 300 }, 3 * 60_000 + 10_000, 'requests'],
    ['500 requests a minute', { requestsPerMinute: 500 }, 100_000 / 2 + 60_000, 'requests'],
    ['more requests than there are', { requestsPerMinute: 1_000 }, 100_000, 'concurrency'],
    ['30,000 tokens a minute', { tokensPerMinute: 30_000 }, 3 * 60_000 + 25_000, 'tokens'],
    ['400 requests a day', { requestsPerDay: 400 }, 2 * 86_400_000 + 20_000, 'requests_per_day'],
    [
      'two limits, of which the tighter rules',
      { requestsPerMinute: 300, tokensPerMinute: 10_000 },
      668_333,
      'tokens',
    ],
  ])('with %s', (_, limits, ms, heldBackBy) => {
    const duration = runDuration(work, { ...unlimited, ...limits }, latency);
    expect(Math.round(duration.ms / 1_000)).toBe(Math.round(ms / 1_000));
    expect(duration.heldBackBy).toBe(heldBackBy);
  });
});
