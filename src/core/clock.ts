/**
 * Time and chance. The only module that reads a clock, sets a timer or draws a random number; everything
 * else is given a `Clock` and a `Random`, so that tests can hold minutes of rate limits in an instant.
 */

/**
 * Ends a wait or a call before its time: what is used of an `AbortSignal` for that. It takes longer to make one than to
 * make most of a call ready, so that something lighter may stand in for it.
 */
export interface EndSignal {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export interface Clock {
  /** Wall time in milliseconds since the epoch. May jump; only for what is stored or shown. */
  now(): number;
  /** Milliseconds that never run backwards; for limits, deadlines and latencies. */
  monotonicMs(): number;
  /** Resolves after `delayMs`, or at once when `signal` aborts; never rejects. */
  sleep(delayMs: number, signal?: EndSignal): Promise<void>;
  /** Calls back once after `delayMs`; the returned function cancels. Does not keep the process alive. */
  after(delayMs: number, callback: () => void): () => void;
}

/** The reason to end a sleep with `abort`, many times a second: without one, each abort makes an exception with its stack. */
export const WOKEN = 'woken';

/** Uniform in [0, 1). */
export type Random = () => number;

/** Node clamps longer timers to 1 ms, which would turn a long wait into a busy loop. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep(delayMs, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const finish = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', finish);
        resolve();
      };
      const timer = setTimeout(finish, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS));
      signal?.addEventListener('abort', finish, { once: true });
    });
  },
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/**
 * Resolves once the event loop has looked at input, output and signals, which work without a wait of its own would
 * keep from being heard. No time: there is nothing in it for a test to hold.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

export const systemRandom: Random = () => Math.random();
