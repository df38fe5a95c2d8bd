/**
 * The journal makes progress durable before anybody acts on it. Calls about to leave and outcomes that came
 * back are collected for a few milliseconds and committed together, because an fsync costs the same for one
 * row as for fifty; whoever waits for an entry learns of it only after that commit.
 *
 * While the disk is full the journal holds what was paid for and tries again. If that does not help it hands
 * the outcomes to `salvage` (a file elsewhere) and fails for good: the engine then stops.
 */
import type { Clock } from '../core/clock.js';
import { LlmBatchError } from '../core/errors.js';
import type { CallStart, Store, TaskOutcome } from '../store/store.js';

/** Long enough to gather a group at full speed, short beside any model's answer. */
const GROUP_WAIT_MS = 4;
const GROUP_LIMIT = 128;
const TROUBLE_PAUSE_MS = 1_000;

export interface JournalOptions {
  readonly store: Pick<Store, 'record'>;
  readonly clock: Clock;
  /** After the commit, in commit order and without tasks whose lease was lost: only now is an outcome progress. */
  readonly onCommitted: (outcomes: readonly TaskOutcome[]) => void;
  /** A commit failed in a way that may pass (disk full, busy); nothing new should be sent until `false`. */
  readonly onTrouble: (trouble: LlmBatchError | null) => void;
  /** Last resort for outcomes that can not be stored. */
  readonly salvage: (outcomes: readonly TaskOutcome[]) => Promise<void>;
  /** How long to keep trying while the store refuses. */
  readonly troubleLimitMs: number;
}

interface PendingStart {
  readonly start: CallStart;
  readonly resolve: (callId: number | null) => void;
  readonly reject: (error: unknown) => void;
}

interface PendingOutcome {
  readonly outcome: TaskOutcome;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const PASSING_TROUBLE = new Set(['STORE_FULL', 'STORE_BUSY']);

export class Journal {
  readonly #options: JournalOptions;
  #starts: PendingStart[] = [];
  #outcomes: PendingOutcome[] = [];
  #running: Promise<void> | null = null;
  #hurry: AbortController | null = null;
  #broken: unknown = null;

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  /**
   * Resolves with the ledger's id once the call is on disk; only then may it be sent. Null while the store can
   * not take it: the call is not made and its task goes back.
   */
  start(start: CallStart): Promise<number | null> {
    return new Promise((resolve, reject) => {
      this.#starts.push({ start, resolve, reject });
      this.#wake();
    });
  }

  /** Resolves once the outcome is on disk. */
  settle(outcome: TaskOutcome): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#outcomes.push({ outcome, resolve, reject });
      this.#wake();
    });
  }

  /** Resolves when everything handed over so far is on disk (or has been salvaged). */
  async flush(): Promise<void> {
    this.#hurry?.abort();
    while (this.#running !== null) await this.#running;
  }

  #wake(): void {
    if (this.#starts.length + this.#outcomes.length >= GROUP_LIMIT) this.#hurry?.abort();
    if (this.#running !== null) return;
    this.#running = this.#run().finally(() => {
      this.#running = null;
      if (this.#starts.length + this.#outcomes.length > 0) this.#wake();
    });
  }

  async #run(): Promise<void> {
    this.#hurry = new AbortController();
    await this.#options.clock.sleep(GROUP_WAIT_MS, this.#hurry.signal);
    this.#hurry = null;
    const starts = this.#starts;
    const outcomes = this.#outcomes;
    this.#starts = [];
    this.#outcomes = [];
    try {
      if (this.#broken !== null)
        await this.#giveUp(
          outcomes.map(({ outcome }) => outcome),
          this.#broken,
        );
      await this.#commit(starts, outcomes);
    } catch (error) {
      for (const { reject } of starts) reject(error);
      for (const { reject } of outcomes) reject(error);
    }
  }

  async #commit(starts: PendingStart[], outcomes: PendingOutcome[]): Promise<void> {
    const { store, clock, onCommitted, onTrouble, troubleLimitMs } = this.#options;
    const giveUpAtMs = clock.monotonicMs() + troubleLimitMs;
    const settled = outcomes.map(({ outcome }) => outcome);
    let startsToWrite = starts;
    for (;;) {
      try {
        const { callIds, lostTaskIds } = await store.record(
          startsToWrite.map(({ start }) => start),
          settled,
        );
        onCommitted(settled.filter(({ taskId }) => !lostTaskIds.includes(taskId)));
        startsToWrite.forEach(({ resolve }, index) => {
          resolve(callIds[index] ?? null);
        });
        for (const { resolve } of outcomes) resolve();
        onTrouble(null);
        return;
      } catch (error) {
        if (!(error instanceof LlmBatchError && PASSING_TROUBLE.has(error.code))) {
          return this.#giveUp(settled, error);
        }
        onTrouble(error);
        // What has not been paid for yet is not worth waiting for: those tasks go back.
        for (const { resolve } of startsToWrite) resolve(null);
        startsToWrite = [];
        if (settled.length === 0) return;
        if (clock.monotonicMs() >= giveUpAtMs) return this.#giveUp(settled, error);
        await clock.sleep(TROUBLE_PAUSE_MS);
      }
    }
  }

  async #giveUp(settled: readonly TaskOutcome[], error: unknown): Promise<never> {
    this.#broken = error;
    if (settled.length > 0) await this.#options.salvage(settled);
    throw error;
  }
}
