import { describe, expect, it } from 'vitest';
import { FAILURE_KINDS, type FailureKind } from '../../src/core/failure.js';
import { backoffMs, decideRetry, haltsRun, type RetryDecision } from '../../src/core/retry-decision.js';

const policy = { maxAttempts: 5, maxWaitMs: 60_000 };
const half = (): number => 0.5;

function decide(
  kind: FailureKind,
  attempts = 0,
  more: {
    retryAfterMs?: number;
    throttledSinceMs?: number;
    trouble?: { isCharged: boolean; failures: number };
  } = {},
) {
  const { throttledSinceMs = null, trouble = null, ...failure } = more;
  return decideRetry(
    { kind, message: 'it failed', ...failure },
    { attempts, throttledSinceMs, trouble },
    policy,
    100_000,
    half,
  );
}

describe('what becomes of a failed call', () => {
  const expected: Record<FailureKind, RetryDecision['action']> = {
    rate_limited: 'release',
    overloaded: 'retry',
    network: 'retry',
    timeout: 'retry',
    bad_output: 'retry',
    truncated: 'fail',
    content_filtered: 'fail',
    refused: 'fail',
    invalid_request: 'fail',
    too_large: 'fail',
    quota_exhausted: 'halt',
    auth: 'halt',
    not_found: 'halt',
    poison: 'fail',
  };

  it.each(FAILURE_KINDS)('a first %s is treated as the table says', (kind) => {
    expect(decide(kind).action).toBe(expected[kind]);
    expect(haltsRun(kind)).toBe(expected[kind] === 'halt');
  });

  it('the fifth attempt of five is the last', () => {
    expect(decide('network', 3).action).toBe('retry');
    expect(decide('network', 4).action).toBe('fail');
  });

  it('bad output is tried three times in all, since every try costs', () => {
    expect(decide('bad_output', 1).action).toBe('retry');
    expect(decide('bad_output', 2).action).toBe('fail');
  });

  it("a retry waits at least as long as the server's word", () => {
    expect(decide('overloaded', 0, { retryAfterMs: 30_000 })).toEqual({ action: 'retry', delayMs: 30_000 });
  });

  it('a server that is overloaded is given longer than a connection that broke', () => {
    expect(decide('overloaded')).toEqual({ action: 'retry', delayMs: 1_025 });
    expect(decide('network')).toEqual({ action: 'retry', delayMs: 275 });
  });

  it.each(['overloaded', 'network', 'timeout'] as const)(
    'however chance falls, one that ended as %s does not come back in the same instant',
    (kind) => {
      for (const attempts of [0, 1, 2, 3]) {
        const failure = { kind, message: 'it failed' };
        const decision = decideRetry(
          failure,
          { attempts, throttledSinceMs: null, trouble: null },
          policy,
          0,
          () => 0,
        );
        expect(decision).toMatchObject({ action: 'retry' });
        expect('delayMs' in decision && decision.delayMs).toBeGreaterThanOrEqual(50);
      }
    },
  );

  it.each([Number.NaN, -5, Number.POSITIVE_INFINITY])(
    'a senseless wait of %s is not believed',
    (retryAfterMs) => {
      const decision = decide('network', 0, { retryAfterMs });
      expect(decision.action).toBe('retry');
      expect(decision).toHaveProperty('delayMs', 275);
    },
  );

  it('trouble that is not charged to the document sends it back, later with each failure, for so long', () => {
    const trouble = { isCharged: false, failures: 1 };
    expect(decide('network', 4, { trouble })).toMatchObject({ action: 'release' });
    expect(decide('network', 0, { trouble: { ...trouble, failures: 3 } })).toEqual({
      action: 'release',
      delayMs: 1_025,
    });
    expect(decide('network', 0, { trouble, throttledSinceMs: 40_000 }).action).toBe('fail');
    expect(decide('network', 4, { trouble: { ...trouble, isCharged: true } }).action).toBe('fail');
  });

  it('what this machine is short of uses no attempt, is tried ever seldomer, and fails after the longest wait', () => {
    const short = (waitedMs: number | null) =>
      decideRetry(
        { kind: 'network', message: 'no descriptors', isUnsent: true, shortOf: 'connections' },
        { attempts: 4, throttledSinceMs: waitedMs === null ? null : 1_000_000 - waitedMs, trouble: null },
        { ...policy, maxWaitMs: 3_600_000 },
        1_000_000,
        half,
      );
    expect([null, 0, 20_000, 900_000].map(short)).toEqual([
      { action: 'release', delayMs: 1_000 },
      { action: 'release', delayMs: 1_000 },
      { action: 'release', delayMs: 5_000 },
      { action: 'release', delayMs: 60_000 },
    ]);
    expect(short(3_600_000)).toEqual({ action: 'fail' });
  });

  it('throttling sends a task back until the longest wait is over, then it fails', () => {
    expect(decide('rate_limited', 0, { throttledSinceMs: 41_000 }).action).toBe('release');
    expect(decide('rate_limited', 0, { throttledSinceMs: 40_000 }).action).toBe('fail');
  });
});

describe('back-off', () => {
  it('doubles its ceiling with every attempt and stays under a minute', () => {
    const almostOne = (): number => 1 - Number.EPSILON;
    expect([0, 1, 2, 3].map((attempts) => Math.round(backoffMs(attempts, 500, almostOne)))).toEqual([
      500, 1_000, 2_000, 4_000,
    ]);
    expect(backoffMs(1_000, 500, almostOne)).toBeLessThanOrEqual(60_000);
  });

  it('is spread over the whole range, so that tasks that failed together do not return together', () => {
    expect(backoffMs(3, 500, () => 0)).toBe(50);
    expect(backoffMs(3, 500, half)).toBe(2_025);
  });
});
