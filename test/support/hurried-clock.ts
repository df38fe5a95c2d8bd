/**
 * A clock that goes several times as fast as the real one, for waits beside real sockets: where answers come over a
 * network, a clock that stands still would let a time-out pass before the answer could be here. Whatever the test
 * brings together must go by the same one, the server too.
 */
import { type Clock, systemClock } from '../../src/core/clock.js';

export function hurriedClock(times: number): Clock {
  const startMs = systemClock.now();
  const startedAtMs = systemClock.monotonicMs();
  const monotonicMs = (): number => (systemClock.monotonicMs() - startedAtMs) * times;
  // Timers may fire a millisecond early, which is `times` milliseconds here.
  const real = (delayMs: number): number => Math.ceil(Math.max(0, delayMs) / times) + 1;
  return {
    now: () => Math.floor(startMs + monotonicMs()),
    monotonicMs,
    sleep: (delayMs, signal) => systemClock.sleep(real(delayMs), signal),
    after: (delayMs, callback) => systemClock.after(real(delayMs), callback),
  };
}
