/**
 * What was spent in the last `lengthMs` milliseconds: an entry counts from the moment its call was sent (over the
 * half-open span `(t - lengthMs, t]`), so no fixed edges let twice the limit through. Entries that are reserved but
 * not yet sent count for as long as they wait.
 *
 *   reserve ──▶ reserved ──send──▶ sent ──lengthMs later──▶ left
 *                  └────cancel──▶ left ◀──cancel── (it reached nobody)
 *
 * Sent entries lie in grains, in the order they were sent, and a grain leaves as a whole, with the latest of its
 * calls. While grains are few, each holds one call, so that the window is exact to the millisecond; beyond
 * `EXACT_GRAINS`, calls that were sent close together share one, so that the window takes the same memory however
 * fast the calls go, and still never counts less than was sent. Leaving is a step of the head and every operation
 * but a walk is amortised O(1); a walk goes over the grains that have to leave before a cost fits.
 */

/** What is summed. The three counts of tokens belong to the three ways in which servers charge: charging.ts. */
export const AMOUNTS = ['requests', 'tokens', 'tokensHeld', 'tokensAtCap'] as const;
export type Amount = (typeof AMOUNTS)[number];
export type Amounts = Record<Amount, number>;

export interface WindowEntry {
  readonly amounts: Amounts;
  /** Null until sent. */
  sentAtMs: number | null;
  /** Null until sent, and once it was taken back. */
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

/** The free head of the queue is cut off in pieces this long, so that cutting stays cheap. */
const COMPACT_AFTER = 4_096;
/** Up to so many calls in the window, each leaves on its own. */
const EXACT_GRAINS = 4_096;

export class RollingWindow {
  readonly lengthMs: number;
  /** Sums over reserved and sent entries, as of the last `advance`. */
  readonly sums: Amounts = nothing();
  /** Of the sums, what is reserved and not sent. */
  readonly unsent: Amounts = nothing();
  /** How far apart calls of one grain may be: 15 ms in a minute, at most as many grains again as are exact. */
  readonly #grainMs: number;
  #sent: Grain[] = [];
  #head = 0;

  constructor(lengthMs: number) {
    this.lengthMs = lengthMs;
    this.#grainMs = lengthMs / EXACT_GRAINS;
  }

  /** Of calls that were sent: what the window takes in memory goes by this. */
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

  /** Whether the entry was sent longer ago than the window reaches, or taken back. */
  hasLeft(entry: WindowEntry): boolean {
    return entry.isCancelled || (entry.grain?.hasLeft ?? false);
  }

  /** Replaces one amount of an entry at its own place in the window; one that left changes no sum. */
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

  /** Puts in calls of the past, in any order, before any is sent. */
  insertSent(entries: readonly { readonly sentAtMs: number; readonly amounts: Amounts }[]): void {
    for (const { sentAtMs, amounts } of [...entries].sort((a, b) => a.sentAtMs - b.sentAtMs)) {
      this.send(this.reserve(amounts), sentAtMs);
    }
  }

  /** What leaves and when, earliest first. Entries not yet sent are taken as sent now, the earliest they can be. */
  *leaving(amount: Amount, nowMs: number): Generator<Leaving> {
    for (let index = this.#head; index < this.#sent.length; index += 1) {
      const grain = this.#sent[index];
      if (grain === undefined) break;
      yield { atMs: this.#leavesAtMs(grain), amount: grain.amounts[amount] };
    }
    yield { atMs: nowMs + this.lengthMs, amount: this.unsent[amount] };
  }

  /**
   * How much of an amount was sent after a certain entry that is still here, up to and including a moment; at most,
   * since what shares a grain with the entry counts as sent after it.
   */
  sentSince(amount: Amount, { grain, amounts }: WindowEntry, untilMs: number): number {
    if (grain === null) return 0;
    let sum = grain.amounts[amount] - amounts[amount];
    let index = this.#sent.length;
    // From the end, since it is asked about calls that were answered by now and a second after them.
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
