import { expect, it } from 'vitest';
import type { RunEvent } from '../../src/core/event.js';
import { pacedEvents } from '../../src/core/paced-events.js';
import { FakeClock } from '../support/fake-clock.js';

const clock = new FakeClock();
const failure = { kind: 'rate_limited', message: 'slow down' } as const;
const THROTTLED: RunEvent = { type: 'throttled', lane: 'a', failure };
const SHORT: RunEvent = { type: 'machine_short', lane: 'a', failure };
const OTHER: RunEvent = { type: 'lane_up', lane: 'a', downForMs: 1 };

/** How many of an event are passed on that comes each second of a minute. */
async function passedOnInAMinute(event: RunEvent, verbose = false): Promise<number> {
  let passedOn = 0;
  const tell = pacedEvents(() => (passedOn += 1), clock, verbose);
  for (let second = 0; second < 60; second += 1) {
    tell(event);
    await clock.advance(1_000);
  }
  return passedOn;
}

it('of a storm of refusals one in ten seconds is told, of a machine that is short of something one a minute', async () => {
  expect(await passedOnInAMinute(THROTTLED)).toBe(6);
  expect(await passedOnInAMinute(SHORT)).toBe(1);
  expect(await passedOnInAMinute(OTHER)).toBe(60);
});

it('each refusal is told to whoever wants every failed call, what the machine is short of is not', async () => {
  expect(await passedOnInAMinute(THROTTLED, true)).toBe(60);
  expect(await passedOnInAMinute(SHORT, true)).toBe(1);
});
