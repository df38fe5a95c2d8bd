/**
 * Packs documents into calls. Those of one group key wait for one another until their group is full, or until the first
 * of them has waited for `waitMs`; one that shares with nobody goes at once.
 */
import type { Clock } from '../core/clock.js';
import type { PreparedTask } from './prepared-task.js';

export interface GroupBounds {
  /** Documents in one call; 1 sends each alone. */
  readonly documents: number;
  /** How long a partial group waits for more. */
  readonly waitMs: number;
}

/** Entries of one array of inputs, and their tokens, that OpenAI takes (API reference, "Create embeddings"). */
const MOST_INPUTS = 2_048;
const MOST_TOKENS = 300_000;

interface Bin {
  readonly prepared: PreparedTask[];
  inputs: number;
  tokens: number;
  readonly cancelWait: () => void;
}

export class Packer {
  readonly #bounds: GroupBounds;
  readonly #clock: Clock;
  readonly #send: (group: readonly PreparedTask[]) => void;
  readonly #bins = new Map<string, Bin>();

  constructor(bounds: GroupBounds, clock: Clock, send: (group: readonly PreparedTask[]) => void) {
    this.#bounds = bounds;
    this.#clock = clock;
    this.#send = send;
  }

  add(prepared: PreparedTask): void {
    const { groupKey, inputs } = prepared;
    if (groupKey === null || this.#bounds.documents === 1) {
      this.#send([prepared]);
      return;
    }
    const { tokens } = prepared.cost;
    const open = this.#bins.get(groupKey);
    if (open !== undefined && (open.inputs + inputs > MOST_INPUTS || open.tokens + tokens > MOST_TOKENS)) {
      this.#close(groupKey);
    }
    const bin = this.#bins.get(groupKey) ?? this.#open(groupKey);
    bin.prepared.push(prepared);
    bin.inputs += inputs;
    bin.tokens += tokens;
    if (bin.prepared.length >= this.#bounds.documents) this.#close(groupKey);
  }

  /** Nothing more comes: partial groups go as they are. */
  flush(): void {
    for (const groupKey of [...this.#bins.keys()]) this.#close(groupKey);
  }

  #open(groupKey: string): Bin {
    const cancelWait = this.#clock.after(this.#bounds.waitMs, () => this.#close(groupKey));
    const bin: Bin = { prepared: [], inputs: 0, tokens: 0, cancelWait };
    this.#bins.set(groupKey, bin);
    return bin;
  }

  #close(groupKey: string): void {
    const bin = this.#bins.get(groupKey);
    if (bin === undefined) return;
    bin.cancelWait();
    this.#bins.delete(groupKey);
    this.#send(bin.prepared);
  }
}
