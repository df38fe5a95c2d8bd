/**
 * The time by which tasks are due and leases end. It is stored as wall time, since it outlives the process, and wall
 * clocks are set: by hand, by NTP, by a virtual machine that wakes up. While a store is open, its time therefore goes
 * on by the monotonic clock from the wall time at which it was opened, so that a jump neither freezes what is delayed
 * nor releases it all at once. A clock that was set back between two processes shows as nothing being due for longer
 * than any wait that is ever asked for; time then moves on to the first task.
 */
import type { Clock } from '../../core/clock.js';
import { LONGEST_RETRY_DELAY_MS } from '../../core/retry.js';

export class Schedule {
  readonly #clock: Clock;
  #aheadMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#aheadMs = clock.now() - clock.monotonicMs();
  }

  /** Milliseconds since the epoch, as far as due times go. */
  now(): number {
    return this.#clock.monotonicMs() + this.#aheadMs;
  }

  /** How long until a task is due, 0 when it is. */
  waitMs(dueAtMs: number): number {
    const waitMs = dueAtMs - this.now();
    if (waitMs <= LONGEST_RETRY_DELAY_MS) return Math.max(0, waitMs);
    this.#aheadMs += waitMs;
    return 0;
  }
}
