/** A clock that stands still until it is advanced; minutes of waiting pass in an instant, in the right order. */
import { type Clock, type EndSignal, nextTurn } from '../../src/core/clock.js';

interface Timer {
  readonly dueMs: number;
  readonly callback: () => void;
}

export class FakeClock implements Clock {
  #elapsedMs = 0;
  #wallOffsetMs: number;
  /** In the order in which they were set. */
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

  sleep(delayMs: number, signal?: EndSignal): Promise<void> {
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
    const timer: Timer = { dueMs: this.#elapsedMs + Math.max(0, delayMs), callback };
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
      const next = this.#earliest();
      if (next === null || next.dueMs > untilMs) break;
      this.#fire(next);
      await settle();
    }
    this.#elapsedMs = untilMs;
  }

  /**
   * Runs timer after timer until `work` is done, however long it takes on this clock, but for `withinMs` at most.
   * Where no timer is left, real input and output is waited for.
   */
  async runUntil<Value>(work: Promise<Value>, withinMs = 24 * 3_600_000): Promise<Value> {
    const giveUpMs = this.#elapsedMs + withinMs;
    let done = false;
    const finish = (): void => {
      done = true;
    };
    work.then(finish, finish);
    for (;;) {
      await settle();
      if (done) return work;
      const next = this.#earliest();
      if (next === null) continue;
      if (next.dueMs > giveUpMs) throw new Error(`not done within ${withinMs} ms of the fake clock`);
      this.#fire(next);
    }
  }

  #earliest(): Timer | null {
    let earliest: Timer | null = null;
    for (const timer of this.#timers) {
      if (earliest === null || timer.dueMs < earliest.dueMs) earliest = timer;
    }
    return earliest;
  }

  #fire(timer: Timer): void {
    this.#timers.delete(timer);
    this.#elapsedMs = Math.max(this.#elapsedMs, timer.dueMs);
    timer.callback();
  }
}

/** So that what comes of a disk after one turn has its own in the next. */
const QUIET_TURNS = 2;

/**
 * Lets promises and already readable input and output run, and files be read and written: time does not pass while
 * somebody waits for a disk, nor before what came of it has had its turn. What comes over sockets may need several
 * turns.
 */
async function settle(): Promise<void> {
  for (let quiet = 0; quiet < QUIET_TURNS; ) {
    await nextTurn();
    const isDiskBusy = process
      .getActiveResourcesInfo()
      .some((resource) => /^(FSReq|FileHandle|FILEHANDLE)/.test(resource));
    quiet = isDiskBusy ? 0 : quiet + 1;
  }
}
