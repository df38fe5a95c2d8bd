/** A clock that stands still until it is advanced; minutes of waiting pass in an instant, in the right order. */
import type { Clock } from '../../src/core/clock.js';

interface Timer {
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

export class FakeClock implements Clock {
  #elapsedMs = 0;
  #wallOffsetMs: number;
  #order = 0;
  readonly #timers = new Set<Timer>();

  constructor(startMs = 1_750_000_000_000) {
    this.#wallOffsetMs = startMs;
  }

  now(): number {
    return this.#wallOffsetMs + this.#elapsedMs;
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  /** Moves the wall clock as an administrator would; monotonic time and timers do not notice. */
  jumpWallClock(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const finish = (): void => {
        cancel();
        signal?.removeEventListener('abort', finish);
        resolve();
      };
      const cancel = this.after(delayMs, finish);
      signal?.addEventListener('abort', finish, { once: true });
    });
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer: Timer = { dueMs: this.#elapsedMs + Math.max(0, delayMs), order: this.#order++, callback };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Runs every timer due within `byMs`, each at its own time, and lets what it started settle before the next. */
  async advance(byMs: number): Promise<void> {
    const untilMs = this.#elapsedMs + byMs;
    await settle();
    for (;;) {
      const next = [...this.#timers]
        .filter((timer) => timer.dueMs <= untilMs)
        .sort((a, b) => a.dueMs - b.dueMs || a.order - b.order)[0];
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#elapsedMs = Math.max(this.#elapsedMs, next.dueMs);
      next.callback();
      await settle();
    }
    this.#elapsedMs = untilMs;
  }
}

/** Lets promises and already readable input and output run; real input and output may need several turns. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
