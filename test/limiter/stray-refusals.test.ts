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

  it('is told apart among a few calls already: the document waits, not the lane', () => {
    const limiter = lane();
    drive(limiter, 20, () => false);
    const reservation = limiter.reserve(COST, 100);
    if (!reservation.granted) throw new Error('nothing holds this call back');
    limiter.sent(reservation.grant, 100);
    expect(limiter.throttled(1_000, 101, reservation.grant)).toBe('stray');
    expect(limiter.reserve(COST, 102).granted).toBe(true);
  });

  it('of one call in twenty, whatever the speed, costs hardly any of it', () => {
    const waitedMs = drive(lane(), 10_000, (call) => call % 20 === 10);
    expect(waitedMs).toBeLessThan(0.15 * 10_000 * 4);
  });

  it('is the rule where nothing else was answered: the lane pauses', () => {
    const limiter = lane();
    const reservation = limiter.reserve(COST, 0);
    if (!reservation.granted) throw new Error('nothing holds this call back');
    limiter.sent(reservation.grant, 0);
    expect(limiter.throttled(1_000, 1, reservation.grant)).toBe('slowed');
    expect(limiter.reserve(COST, 1_000).granted).toBe(false);
    expect(limiter.reserve(COST, 1_001).granted).toBe(true);
  });

  it('by half of the last calls pauses the lane, as long as the longest wait that one of them named', () => {
    const limiter = lane();
    drive(limiter, 100, () => false);
    const burst = Array.from({ length: 16 }, () => {
      const reservation = limiter.reserve(COST, 1_000);
      if (!reservation.granted) throw new Error('nothing holds this call back');
      limiter.sent(reservation.grant, 1_000);
      return reservation.grant;
    });
    const effects = burst.map((grant, index) => limiter.throttled(index === 0 ? 9_000 : 1_000, 1_010, grant));
    expect(effects).toEqual([...Array(7).fill('stray'), ...Array(9).fill('slowed')]);
    expect(limiter.snapshot(1_010).pausedForMs).toBe(9_000);
  });
});
