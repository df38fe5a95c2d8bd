/**
 * The journal makes progress durable before anybody acts on it. Calls about to leave and outcomes that came
 * back are collected for a few milliseconds and committed together, because an fsync costs the same for one
 * row as for fifty; whoever waits for an entry learns of it only after that commit.
 *
 * While the disk is full the journal holds what was paid for and tries again. If that does not help it hands
 * the outcomes to `salvage` (a file elsewhere) and fails for good: the engine then stops.
 */

import type { NewResponse } from '../core/batch-record.js';
import type { CallStart } from '../core/call.js';
import type { Clock } from '../core/clock.js';
import { madeCall, type Settlement } from '../core/outcome.js';
import type { RecordedProgress, Store } from '../store/store.js';
import { mayPass, type StoreTrouble } from './store-trouble.js';

/** Long enough to gather a group at full speed, short beside any model's answer. */
const GROUP_WAIT_MS = 4;
const GROUP_LIMIT = 128;

export interface JournalOptions {
  readonly store: Pick<Store, 'record'>;
  readonly clock: Clock;
  /** After the commit, in commit order and without tasks whose lease was lost: only now is an outcome progress. */
  readonly onCommitted: (settlements: readonly Settlement[]) => void;
  /** Outcomes of these were refused: others have the tasks meanwhile. */
  readonly onLost: (taskIds: readonly number[]) => void;
  /** For a commit that fails in a way that may pass. */
  readonly trouble: StoreTrouble;
  /** Last resort for outcomes that cannot be stored. */
  readonly salvage: (settlements: readonly Settlement[]) => Promise<void>;
}

/** What waits for its commit, and whom to tell of it. */
interface Pending<Entry, Told> {
  readonly entry: Entry;
  readonly resolve: (told: Told) => void;
  readonly reject: (error: unknown) => void;
}

type PendingStart = Pending<CallStart, number | null>;
type PendingResponse = Pending<NewResponse, number | null>;
type PendingSettlement = Pending<Settlement, undefined>;

export class Journal {
  readonly #options: JournalOptions;
  #starts: PendingStart[] = [];
  #settlements: PendingSettlement[] = [];
  #responses: PendingResponse[] = [];
  #endedResponses: number[] = [];
  #running: Promise<void> | null = null;
  #hurry: (() => void) | null = null;
  #broken: unknown = null;

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  /**
   * Resolves with the ledger's id once the call is on disk; only then may it be sent. Null while the store cannot
   *  take it: the call is not made and its task goes back.
   */
  start(start: CallStart): Promise<number | null> {
    return this.#add(this.#starts, start);
  }

  /** Resolves once the outcome is on disk. */
  settle(settlement: Settlement): Promise<void> {
    return this.#add(this.#settlements, settlement);
  }

  /** Resolves with the response's number once its id is on disk; null where its task is not ours any more. */
  taken(response: NewResponse): Promise<number | null> {
    return this.#add(this.#responses, response);
  }

  /** Written with whatever comes next. */
  ended(batchId: number): void {
    this.#endedResponses.push(batchId);
    this.#wake();
  }

  /** Resolves when everything handed over so far is on disk (or has been salvaged). */
  async flush(): Promise<void> {
    this.#hurry?.();
    while (this.#running !== null) await this.#running;
  }

  #add<Entry, Told>(pending: Pending<Entry, Told>[], entry: Entry): Promise<Told> {
    return new Promise((resolve, reject) => {
      pending.push({ entry, resolve, reject });
      this.#wake();
    });
  }

  get #pending(): number {
    return (
      this.#starts.length + this.#settlements.length + this.#responses.length + this.#endedResponses.length
    );
  }

  #wake(): void {
    if (this.#pending >= GROUP_LIMIT) this.#hurry?.();
    if (this.#running !== null) return;
    this.#running = this.#run().finally(() => {
      this.#running = null;
      if (this.#pending > 0) this.#wake();
    });
  }

  async #run(): Promise<void> {
    await this.#gathered();
    const starts = this.#starts;
    const settlements = this.#settlements;
    const responses = this.#responses;
    const ended = this.#endedResponses;
    this.#starts = [];
    this.#settlements = [];
    this.#responses = [];
    this.#endedResponses = [];
    try {
      if (this.#broken !== null)
        await this.#giveUp(
          settlements.map(({ entry }) => entry),
          this.#broken,
        );
      await this.#commit(starts, settlements, responses, ended);
    } catch (error) {
      for (const { reject } of [...starts, ...responses]) reject(error);
      for (const { reject } of settlements) reject(error);
    }
  }

  /** Resolves when a group has had its time to come together, or is wanted at once. */
  async #gathered(): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.after(GROUP_WAIT_MS, resolve);
      this.#hurry = () => {
        cancel();
        resolve();
      };
    });
    this.#hurry = null;
  }

  async #commit(
    starts: readonly PendingStart[],
    settlements: readonly PendingSettlement[],
    responses: readonly PendingResponse[],
    ended: readonly number[],
  ): Promise<void> {
    const { store, onCommitted, onLost, trouble } = this.#options;
    const settled = settlements.map(({ entry }) => entry);
    let startsToWrite = starts;
    const attempt = () =>
      store.record(
        startsToWrite.map(({ entry }) => entry),
        settled,
        { taken: responses.map(({ entry }) => entry), ended },
      );
    const keepOutcomesOnly = (): boolean => {
      // What has not been paid for yet is not worth waiting for: those tasks go back.
      for (const { resolve } of startsToWrite) resolve(null);
      startsToWrite = [];
      return settled.length + responses.length > 0;
    };
    let recorded: RecordedProgress;
    try {
      recorded = await trouble.waitOut(attempt, keepOutcomesOnly);
    } catch (error) {
      // What a server was asked to remove and is still noted is found to be gone at the next start.
      if (settled.length + responses.length === 0 && mayPass(error)) return;
      return this.#giveUp(settled, error);
    }
    const { callIds, responseIds, lostTaskIds } = recorded;
    onCommitted(withoutLost(settled, new Set(lostTaskIds)));
    if (lostTaskIds.length > 0) onLost(lostTaskIds);
    startsToWrite.forEach(({ resolve }, index) => {
      resolve(callIds[index] ?? null);
    });
    responses.forEach(({ resolve }, index) => {
      resolve(responseIds[index] ?? null);
    });
    for (const { resolve } of settlements) resolve(undefined);
  }

  async #giveUp(settled: readonly Settlement[], error: unknown): Promise<never> {
    this.#broken = error;
    // A task that goes back without a call goes back by itself at the next start.
    const worthKeeping = settled.filter(isWorthKeeping);
    if (worthKeeping.length > 0) await this.#options.salvage(worthKeeping);
    throw error;
  }
}

function withoutLost(settled: readonly Settlement[], lost: ReadonlySet<number>): readonly Settlement[] {
  if (lost.size === 0) return settled;
  return settled.map(({ call, outcomes }) => ({
    call,
    outcomes: outcomes.filter(({ taskId }) => !lost.has(taskId)),
  }));
}

function isWorthKeeping(settlement: Settlement): boolean {
  return madeCall(settlement) !== null || settlement.outcomes.some(({ action }) => action !== 'released');
}
