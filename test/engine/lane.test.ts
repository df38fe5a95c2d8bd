import { describe, expect, it } from 'vitest';
import { type Admission, Gate, type Lane } from '../../src/engine/lane.js';
import { createLimiter } from '../../src/limiter/limiter.js';
import type { Provider } from '../../src/provider/provider.js';
import { FakeClock } from '../support/fake-clock.js';

const noProvider: Provider = {
  send: () => Promise.reject(new Error('the gate sends nothing')),
  probe: () => Promise.reject(new Error('the gate asks nothing')),
  close: async () => undefined,
};

function lane(name: string, limits: { rpm?: number; tpm?: number }): Lane {
  const limiter = createLimiter({
    requestsPerMinute: limits.rpm ?? null,
    tokensPerMinute: limits.tpm ?? null,
    marginMs: 0,
    random: () => 0.5,
  });
  return { name, weight: 1, limiter, provider: noProvider, costOf: () => null, mostOf: () => null };
}

function gateOver(...lanes: Lane[]) {
  const clock = new FakeClock();
  const gate = new Gate(lanes, clock, false);
  const log: string[] = [];
  const ask = (label: string, tokens = 1): void => {
    void gate.admit({ requests: 1, tokens }).then((admission: Admission) => {
      if (admission.admitted) {
        admission.lane.limiter.sent(admission.grant, clock.monotonicMs());
        log.push(`${label} by ${admission.lane.name} at ${clock.monotonicMs()}`);
      } else log.push(`${label} ${admission.impossible ? 'impossible' : 'sent back'}`);
    });
  };
  return { clock, gate, log, ask };
}

describe('the gate', () => {
  it('lets ten of ten go at once under 10 RPM and the eleventh when the oldest leaves the minute', async () => {
    const { clock, log, ask } = gateOver(lane('a', { rpm: 10 }));
    for (let number = 1; number <= 11; number += 1) ask(`${number}`);
    await clock.advance(59_999);
    expect(log).toHaveLength(10);
    expect(log.every((line) => line.endsWith('at 0'))).toBe(true);
    await clock.advance(1);
    expect(log[10]).toBe('11 by a at 60000');
  });

  it('keeps the order of asking: small calls do not overtake a large one that waits', async () => {
    const { clock, log, ask } = gateOver(lane('a', { tpm: 100 }));
    ask('first', 60);
    ask('large', 90);
    ask('small', 1);
    await clock.advance(0);
    expect(log).toEqual(['first by a at 0']);
    await clock.advance(60_000);
    expect(log.slice(1)).toEqual(['large by a at 60000', 'small by a at 60000']);
  });

  it('takes the lane that is free', async () => {
    const { clock, log, ask } = gateOver(lane('a', { rpm: 1 }), lane('b', { rpm: 2 }));
    for (const label of ['1', '2', '3']) ask(label);
    await clock.advance(0);
    expect(log).toEqual(['1 by a at 0', '2 by b at 0', '3 by b at 0']);
  });

  it('shares calls between free lanes by their weight', async () => {
    const { clock, log, ask } = gateOver({ ...lane('a', {}), weight: 3 }, lane('b', {}));
    for (let number = 0; number < 40; number += 1) ask(`${number}`);
    await clock.advance(0);
    expect(log.filter((line) => line.includes('by a'))).toHaveLength(30);
  });

  it('gives the work of a lane that is set aside to the others', async () => {
    const first = lane('a', { rpm: 1 });
    const { clock, gate, log, ask } = gateOver(first, lane('b', { rpm: 1 }));
    for (const label of ['1', '2', '3']) ask(label);
    await clock.advance(0);
    expect(gate.setAside(first)).toBe(1);
    await clock.advance(60_000);
    expect(log).toEqual(['1 by a at 0', '2 by b at 0', '3 by b at 60000']);
    expect(log.length).toBe(3);
  });

  it('sends everybody back when no lane is left', async () => {
    const only = lane('a', { rpm: 1 });
    const { clock, gate, log, ask } = gateOver(only);
    ask('1');
    ask('2');
    await clock.advance(0);
    expect(gate.setAside(only)).toBe(0);
    await clock.advance(0);
    expect(log).toEqual(['1 by a at 0', '2 sent back']);
  });

  it('says at once that a call larger than every whole limit can never go', async () => {
    const { clock, log, ask } = gateOver(lane('a', { tpm: 100 }));
    ask('huge', 101);
    await clock.advance(0);
    expect(log).toEqual(['huge impossible']);
  });

  it('goes on as soon as a correction gives room back, without waiting for the minute', async () => {
    const only = lane('a', { tpm: 100 });
    const { clock, gate, log, ask } = gateOver(only);
    const first = await gate.admit({ requests: 1, tokens: 80 });
    ask('second', 50);
    await clock.advance(1_000);
    expect(log).toEqual([]);
    if (!first.admitted) throw new Error('the first call must be admitted');
    only.limiter.commit(first.grant, 10, clock.monotonicMs());
    gate.poke();
    await clock.advance(0);
    expect(log).toEqual(['second by a at 1000']);
  });

  it('sends everybody back when it closes and leaves no timer behind', async () => {
    const { clock, gate, log, ask } = gateOver(lane('a', { rpm: 1 }));
    ask('1');
    ask('2');
    await clock.advance(0);
    expect(gate.hold?.blockedBy).toBe('requests');
    gate.close();
    await clock.advance(0);
    expect(log).toEqual(['1 by a at 0', '2 sent back']);
    expect(clock.pendingTimers).toBe(0);
  });
});
