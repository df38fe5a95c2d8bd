import { describe, expect, it } from 'vitest';
import { createLimiter, type Limiter } from '../../src/limiter/limiter.js';

const COST = { requests: 1, tokens: 10 };

function lane(): Limiter {
  return createLimiter({ requestsPerMinute: null, tokensPerMinute: null, random: () => 0.5 });
}

/** One call a few milliseconds after the other; `refuse` names those that the server turns away. */
function drive(limiter: Limiter, calls: number, refuse: (call: number) => boolean): number {
  let nowMs = 0;
  let waitedMs = 0;
  for (let call = 0; call < calls; call += 1) {
    nowMs += 4;
    for (;;) {
      const reservation = limiter.reserve(COST, nowMs);
      if (reservation.granted) {
        limiter.sent(reservation.grant, nowMs);
        limiter.commit(reservation.grant, 10, nowMs + 1);
        if (refuse(call)) limiter.throttled(1_000, nowMs + 1, reservation.grant);
        else limiter.succeeded(nowMs + 1, reservation.grant);
        break;
      }
      if (reservation.impossible) throw new Error(reservation.reason);
      waitedMs += reservation.waitMs;
      nowMs += reservation.waitMs;
    }
  }
  return waitedMs;
}

describe('a refusal now and then', () => {
  it('among thousands of calls does not slow the lane down', () => {
    expect(drive(lane(), 10_000, (call) => call > 1_000 && call % 400 === 0)).toBe(0);
  });

  it('is told apart from a throttle: only the refused call has to wait', () => {
    const limiter = lane();
    drive(limiter, 1_000, () => false);
    const reservation = limiter.reserve(COST, 4_010);
    if (!reservation.granted) throw new Error('nothing holds this call back');
    limiter.sent(reservation.grant, 4_010);
    expect(limiter.throttled(1_000, 4_011, reservation.grant)).toBe('stray');
    expect(limiter.reserve(COST, 4_012).granted).toBe(true);
  });

  it('that comes more often pauses the lane as before', () => {
    expect(drive(lane(), 2_000, (call) => call > 1_000 && call % 20 === 0)).toBeGreaterThan(1_000);
  });

  it('before many calls were let in pauses the lane: it may be the rule', () => {
    const limiter = lane();
    drive(limiter, 50, () => false);
    const reservation = limiter.reserve(COST, 210);
    if (!reservation.granted) throw new Error('nothing holds this call back');
    limiter.sent(reservation.grant, 210);
    expect(limiter.throttled(1_000, 211, reservation.grant)).toBe('slowed');
    expect(limiter.reserve(COST, 212).granted).toBe(false);
  });
});
