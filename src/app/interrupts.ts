/**
 * Ctrl-C, SIGTERM and SIGHUP as the commands see them: the first asks to stop, the second to stop now. A terminal
 * sends Ctrl-C to the whole process group and `npx` passes it on once more, so repeats within a moment count
 * as one. A terminal that is closed hangs up as often as it likes (its shell, its session and the kernel each do,
 * in their own time), and nobody can mean "now" by it: SIGHUP is never the second.
 */
import type { Clock } from '../core/clock.js';
import type { StopRequests } from '../core/stop-requests.js';

export type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

const SAME_KEYSTROKE_MS = 300;

export class Interrupts implements StopRequests {
  readonly #clock: Clock;
  readonly #listeners = new Set<(count: number) => void>();
  #count = 0;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How often the user has asked so far. */
  get count(): number {
    return this.#count;
  }

  /** @returns false when nobody listens: there is nothing to bring to a good end, so the process may end at once */
  raise(signal: StopSignal): boolean {
    if (signal === 'SIGHUP' && this.#count > 0) return true;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#lastMs < SAME_KEYSTROKE_MS) return true;
    this.#lastMs = nowMs;
    this.#count += 1;
    for (const listener of this.#listeners) listener(this.#count);
    return this.#listeners.size > 0;
  }

  /** Calls back with 1, 2, …; at once when the user has asked already. @returns stops listening */
  subscribe(listener: (count: number) => void): () => void {
    this.#listeners.add(listener);
    if (this.#count > 0) listener(this.#count);
    return () => this.#listeners.delete(listener);
  }
}
