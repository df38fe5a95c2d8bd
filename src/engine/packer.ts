/**
 * Packs documents into calls. Those of one group key wait for one another until their group is full, or until the first
 * of them has waited for `waitMs`; one that shares with nobody goes at once.
 */
import type { Clock } from '../core/clock.js';
import type { PreparedTask } from './prepared-task.js';

export interface PackerOptions {
  /** Documents that a call like this one's should have now; 1 sends it alone. */
  readonly documentsFor: (prepared: PreparedTask) => number;
  /** How long a partial group waits for more. */
  readonly waitMs: number;
}

interface Bin {
  readonly prepared: PreparedTask[];
  inputs: number;
  tokens: number;
  readonly cancelWait: () => void;
}

export class Packer {
  readonly #options: PackerOptions;
  readonly #clock: Clock;
  readonly #send: (group: readonly PreparedTask[]) => void;
  readonly #bins = new Map<string, Bin>();

  constructor(options: PackerOptions, clock: Clock, send: (group: readonly PreparedTask[]) => void) {
    this.#options = options;
    this.#clock = clock;
    this.#send = send;
  }

  /** Documents that would fill the groups that wait. */
  get room(): number {
    let room = 0;
    for (const { prepared } of this.#bins.values()) {
      const [first] = prepared;
      if (first !== undefined) room += Math.max(0, this.#options.documentsFor(first) - prepared.length);
    }
    return room;
  }

  add(prepared: PreparedTask): void {
    const { grouping, cost } = prepared;
    const documents = grouping === null ? 1 : this.#options.documentsFor(prepared);
    if (grouping === null || documents === 1) {
      this.#send([prepared]);
      return;
    }
    const { key, inputs, bounds } = grouping;
    const { tokens } = cost();
    const open = this.#bins.get(key);
    const isOver =
      open !== undefined &&
      (open.inputs + inputs > bounds.mostInputs || open.tokens + tokens > bounds.mostTokens);
    if (isOver) this.#close(key);
    const bin = this.#bins.get(key) ?? this.#open(key);
    bin.prepared.push(prepared);
    bin.inputs += inputs;
    bin.tokens += tokens;
    if (bin.prepared.length >= documents) this.#close(key);
  }

  /** Nothing more comes: partial groups go as they are. */
  flush(): void {
    for (const key of [...this.#bins.keys()]) this.#close(key);
  }

  #open(key: string): Bin {
    const cancelWait = this.#clock.after(this.#options.waitMs, () => this.#close(key));
    const bin: Bin = { prepared: [], inputs: 0, tokens: 0, cancelWait };
    this.#bins.set(key, bin);
    return bin;
  }

  #close(key: string): void {
    const bin = this.#bins.get(key);
    if (bin === undefined) return;
    bin.cancelWait();
    this.#bins.delete(key);
    this.#send(bin.prepared);
  }
}
