/**
 * What was spent in the last `lengthMs` milliseconds. An entry counts from the moment its call was sent, over the half-open
 * span `(t - lengthMs, t]`, so there are no fixed edges that let twice the limit through. Entries that are reserved and not
 * yet sent count for as long as they wait.
 *
 *   reserve ──▶ reserved ──send──▶ sent ──lengthMs later──▶ left
 *                  └────cancel──▶ left ◀──cancel── (it reached nobody)
 *
 * Sent entries lie in grains, in the order in which they were sent, and a grain leaves as a whole, with the latest of its
 * calls. While there are few grains, each holds one call, and the window is exact to the millisecond. Beyond `EXACT_GRAINS`,
 * calls that were sent close together share a grain: the window then takes the same memory however fast the calls go, and
 * still never counts less than was sent. Every operation is amortised O(1), except a walk over the grains that have to
 * leave before a cost fits.
 */

/** What is summed. The three counts of tokens are for the three ways in which servers charge, see charging.ts. */
export const AMOUNTS = ['requests', 'tokens', 'tokensHeld', 'tokensAtCap'] as const;
export type Amount = (typeof AMOUNTS)[number];
export type Amounts = Record<Amount, number>;

export interface WindowEntry {
  readonly amounts: Amounts;
  /** Null until sent. */
  sentAtMs: number | null;
  /** Null until sent. */
  grain: Grain | null;
  isCancelled: boolean;
}

/** Calls that leave together. */
interface Grain {
  readonly firstSentAtMs: number;
  lastSentAtMs: number;
  readonly amounts: Amounts;
  hasLeft: boolean;
}

/** A moment at which something leaves the window, if nothing else happens. */
export interface Leaving {
  readonly atMs: number;
  readonly amount: number;
}

/** The part of the queue that has left is cut off in pieces of this length, so that cutting stays cheap. */
const COMPACT_AFTER = 4_096;
/** Up to this many calls in the window, each leaves on its own. */
const EXACT_GRAINS = 4_096;

export class RollingWindow {
  readonly lengthMs: number;
  /** Sums over reserved and sent entries, as of the last `advance`. */
  readonly sums: Amounts = nothing();
  /** The part of the sums that is reserved and not sent. */
  readonly unsent: Amounts = nothing();
  /** How far apart the calls of one grain may be: 15 ms for a minute, which at most doubles the number of grains. */
  readonly #grainMs: number;
  #sent: Grain[] = [];
  #head = 0;

  constructor(lengthMs: number) {
    this.lengthMs = lengthMs;
    this.#grainMs = lengthMs / EXACT_GRAINS;
  }

  /** The number of grains, which decides how much memory the window takes. */
  get grains(): number {
    return this.#sent.length - this.#head;
  }

  /** Lets go of what was sent `lengthMs` or longer ago. Call before reading the sums. */
  advance(nowMs: number): void {
    for (let grain = this.#sent[this.#head]; grain !== undefined; grain = this.#sent[this.#head]) {
      if (this.#leavesAtMs(grain) > nowMs) break;
      this.#head += 1;
      grain.hasLeft = true;
      for (const amount of AMOUNTS) this.sums[amount] -= grain.amounts[amount];
    }
    if (this.#head >= COMPACT_AFTER && this.#head * 2 >= this.#sent.length) this.#compact();
  }

  reserve(amounts: Amounts): WindowEntry {
    for (const amount of AMOUNTS) {
      this.sums[amount] += amounts[amount];
      this.unsent[amount] += amounts[amount];
    }
    return { amounts: { ...amounts }, sentAtMs: null, grain: null, isCancelled: false };
  }

  /** `nowMs` must not be earlier than any earlier send. */
  send(entry: WindowEntry, nowMs: number): void {
    if (entry.sentAtMs !== null || entry.isCancelled) return;
    entry.sentAtMs = nowMs;
    entry.grain = this.#grainAt(nowMs);
    for (const amount of AMOUNTS) {
      this.unsent[amount] -= entry.amounts[amount];
      entry.grain.amounts[amount] += entry.amounts[amount];
    }
  }

  /** Whether the entry was sent too long ago to be in the window, or was taken back. */
  hasLeft(entry: WindowEntry): boolean {
    return entry.isCancelled || (entry.grain?.hasLeft ?? false);
  }

  /** Replaces one amount of an entry at its own place in the window. If the entry has left, no sum changes. */
  correct(entry: WindowEntry, amount: Amount, value: number): void {
    const more = value - entry.amounts[amount];
    entry.amounts[amount] = value;
    if (this.hasLeft(entry)) return;
    this.sums[amount] += more;
    (entry.grain?.amounts ?? this.unsent)[amount] += more;
  }

  /** Takes back an entry that was never sent, or that reached nobody. */
  cancel(entry: WindowEntry): void {
    for (const amount of AMOUNTS) this.correct(entry, amount, 0);
    entry.isCancelled = true;
  }

  /** Adds calls of the past, in any order. Use it before the first call is sent. */
  insertSent(entries: readonly { readonly sentAtMs: number; readonly amounts: Amounts }[]): void {
    for (const { sentAtMs, amounts } of [...entries].sort((a, b) => a.sentAtMs - b.sentAtMs)) {
      this.send(this.reserve(amounts), sentAtMs);
    }
  }

  /** What leaves and when, earliest first. Unsent entries are taken to be sent now, the earliest they can be. */
  *leaving(amount: Amount, nowMs: number): Generator<Leaving> {
    for (let index = this.#head; index < this.#sent.length; index += 1) {
      const grain = this.#sent[index];
      if (grain === undefined) break;
      yield { atMs: this.#leavesAtMs(grain), amount: grain.amounts[amount] };
    }
    yield { atMs: nowMs + this.lengthMs, amount: this.unsent[amount] };
  }

  /**
   * The most that can have been sent after an entry that is still here, up to and including a moment: what shares a grain
   * with the entry counts as sent after it.
   */
  sentSince(amount: Amount, { grain, amounts }: WindowEntry, untilMs: number): number {
    if (grain === null) return 0;
    let sum = grain.amounts[amount] - amounts[amount];
    let index = this.#sent.length;
    // Searched from the end, since the question is about recent calls and the second after them.
    for (; index > this.#head && this.#sent[index - 1] !== grain; index -= 1) {
      const later = this.#sent[index - 1];
      if (later !== undefined && later.firstSentAtMs <= untilMs) sum += later.amounts[amount];
    }
    return sum;
  }

  #grainAt(nowMs: number): Grain {
    const last = this.#sent.at(-1);
    const isShared =
      this.grains >= EXACT_GRAINS && last !== undefined && nowMs - last.firstSentAtMs < this.#grainMs;
    if (isShared) {
      last.lastSentAtMs = nowMs;
      return last;
    }
    const grain = { firstSentAtMs: nowMs, lastSentAtMs: nowMs, amounts: nothing(), hasLeft: false };
    this.#sent.push(grain);
    return grain;
  }

  #leavesAtMs(grain: Grain): number {
    return grain.lastSentAtMs + this.lengthMs;
  }

  #compact(): void {
    this.#sent = this.#sent.slice(this.#head);
    this.#head = 0;
  }
}

function nothing(): Amounts {
  return { requests: 0, tokens: 0, tokensHeld: 0, tokensAtCap: 0 };
}
