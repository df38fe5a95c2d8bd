/**
 * Waits out trouble with the store that may pass: a disk that is full until somebody makes room, a lock that another
 * program holds. Everything else, and what does not pass within the limit, is the caller's to deal with.
 */
import type { Clock } from '../core/clock.js';
import { LlmBatchError } from '../core/errors.js';

const PASSING = new Set(['STORE_FULL', 'STORE_BUSY']);
const PAUSE_MS = 1_000;

export function mayPass(error: unknown): error is LlmBatchError {
  return error instanceof LlmBatchError && PASSING.has(error.code);
}

export interface StoreTroubleOptions {
  readonly clock: Clock;
  /** How long to keep trying. */
  readonly limitMs: number;
  /** The error when trouble begins, null when a later try has worked. */
  readonly onChange: (error: LlmBatchError | null) => void;
}

export class StoreTrouble {
  readonly #options: StoreTroubleOptions;
  readonly #impatience = new AbortController();
  #isActive = false;
  /** Who try again. */
  #waiting = 0;

  constructor(options: StoreTroubleOptions) {
    this.#options = options;
  }

  /** Nothing new should be sent meanwhile. */
  get isActive(): boolean {
    return this.#isActive;
  }

  /** From now on nothing is tried twice. */
  giveUp(): void {
    this.#impatience.abort();
  }

  /**
   * Tries until it works.
   * @param goOn asked after each failure that may pass; false gives up
   * @throws the store's last error
   */
  async waitOut<Value>(attempt: () => Promise<Value>, goOn: () => boolean = () => true): Promise<Value> {
    const { clock, limitMs } = this.#options;
    const { signal } = this.#impatience;
    const giveUpAtMs = clock.monotonicMs() + limitMs;
    let tries = 0;
    try {
      for (;;) {
        const beganInTrouble = this.#isActive;
        try {
          const value = await attempt();
          // What began before the trouble says nothing of its end, nor does what needs less room than others that wait.
          if (beganInTrouble && this.#waiting === Math.min(tries, 1)) this.#change(null);
          return value;
        } catch (error) {
          if (!mayPass(error)) throw error;
          this.#change(error);
          if (!goOn() || signal.aborted || clock.monotonicMs() >= giveUpAtMs) throw error;
        }
        if (tries === 0) this.#waiting += 1;
        tries += 1;
        await clock.sleep(PAUSE_MS, signal);
      }
    } finally {
      if (tries > 0) this.#waiting -= 1;
    }
  }

  #change(error: LlmBatchError | null): void {
    const isActive = error !== null;
    if (isActive === this.#isActive) return;
    this.#isActive = isActive;
    this.#options.onChange(error);
  }
}
