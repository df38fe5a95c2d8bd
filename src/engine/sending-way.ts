/** A way of sending that a run goes, for as long as it has something to send; several are gone one after the other. */
import type { DrainEnding } from '../core/event.js';
import { addGroups, NO_GROUPS } from '../core/group-figures.js';
import type { DrainSnapshot } from './drain.js';

export interface SendingWay {
  /** Sends nothing new. Before `run`: nothing is sent at all. */
  stop(): void;
  /** Cuts off what is open. */
  abort(): void;
  /** There may be something to send that was not there before. */
  look(): void;
  snapshot(): DrainSnapshot;
  /** @throws whatever the store threw when it could not be written any more */
  run(): Promise<DrainEnding>;
}

/** Of a way that does nothing. */
export const IDLE_SNAPSHOT: DrainSnapshot = {
  completed: 0,
  failed: 0,
  openCalls: 0,
  openResponses: 0,
  groups: NO_GROUPS,
  latencies: [],
  concurrency: 0,
  costMicroUsd: 0,
  waiting: 0,
  hold: null,
  down: [],
  onlyDelayedLeft: false,
  nextDueAtMs: null,
  suspectsLeft: 0,
  stopping: false,
  abortAtMs: null,
  batches: null,
};

/** The next begins where the one before has drained what it could. */
export class WaysInTurn implements SendingWay {
  readonly #ways: readonly SendingWay[];
  #current: SendingWay;

  constructor(first: SendingWay, ...others: readonly SendingWay[]) {
    this.#ways = [first, ...others];
    this.#current = first;
  }

  stop(): void {
    for (const way of this.#ways) way.stop();
  }

  abort(): void {
    for (const way of this.#ways) way.abort();
  }

  look(): void {
    this.#current.look();
  }

  snapshot(): DrainSnapshot {
    const now = this.#current.snapshot();
    const done = this.#ways.filter((way) => way !== this.#current).map((way) => way.snapshot());
    return {
      ...now,
      completed: done.reduce((sum, { completed }) => sum + completed, now.completed),
      failed: done.reduce((sum, { failed }) => sum + failed, now.failed),
      groups: done.reduce((sum, { groups }) => addGroups(sum, groups), now.groups),
      costMicroUsd: done.reduce((sum, { costMicroUsd }) => sum + costMicroUsd, now.costMicroUsd),
    };
  }

  async run(): Promise<DrainEnding> {
    let ending: DrainEnding = { reason: 'drained' };
    for (const way of this.#ways) {
      this.#current = way;
      ending = await way.run();
      if (ending.reason !== 'drained') break;
    }
    return ending;
  }
}
