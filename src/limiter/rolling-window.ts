/**
 * What was spent in the last `lengthMs` milliseconds, exactly: an entry counts from the moment its call was
 * sent (over the half-open span `(t - lengthMs, t]`) and leaves as a whole, so no fixed edges let twice the
 * limit through. Entries that are reserved but not yet sent count for as long as they wait.
 *
 *   reserve ──▶ reserved ──send──▶ sent ──lengthMs later──▶ left
 *                  └────cancel──▶ left
 *
 * Sent entries lie in the order they were sent, so leaving is a step of the head and every operation but a walk
 * is amortised O(1); a walk goes over the entries that have to leave before a cost fits.
 */

/** What is summed. The three counts of tokens belong to the three ways in which servers charge: charging.ts. */
export const AMOUNTS = ['requests', 'tokens', 'tokensHeld', 'tokensAtCap'] as const;
export type Amount = (typeof AMOUNTS)[number];
export type Amounts = Record<Amount, number>;

export interface WindowEntry {
  readonly amounts: Amounts;
  /** Null until sent. */
  sentAtMs: number | null;
  state: 'reserved' | 'sent' | 'left';
}

/** A moment at which something leaves the window, if nothing else happens. */
export interface Leaving {
  readonly atMs: number;
  readonly amount: number;
}

/** The free head of the queue is cut off in pieces this long, so that cutting stays cheap. */
const COMPACT_AFTER = 4_096;
/** Calls of one burst may carry the very same time. */
const SAME_MOMENT_MS = 0.001;

export class RollingWindow {
  readonly lengthMs: number;
  /** Sums over reserved and sent entries, as of the last `advance`. */
  readonly sums: Amounts = { requests: 0, tokens: 0, tokensHeld: 0, tokensAtCap: 0 };
  #sent: WindowEntry[] = [];
  #head = 0;

  constructor(lengthMs: number) {
    this.lengthMs = lengthMs;
  }

  /** Lets go of what was sent `lengthMs` or longer ago. Call before reading the sums. */
  advance(nowMs: number): void {
    for (let entry = this.#sent[this.#head]; entry !== undefined; entry = this.#sent[this.#head]) {
      if (this.#leavesAtMs(entry) > nowMs) break;
      this.#head += 1;
      this.#leave(entry);
    }
    if (this.#head >= COMPACT_AFTER && this.#head * 2 >= this.#sent.length) this.#compact();
  }

  reserve(amounts: Amounts): WindowEntry {
    const entry: WindowEntry = { amounts: { ...amounts }, sentAtMs: null, state: 'reserved' };
    for (const amount of AMOUNTS) this.sums[amount] += amounts[amount];
    return entry;
  }

  /** `nowMs` must not be earlier than any earlier send. */
  send(entry: WindowEntry, nowMs: number): void {
    if (entry.state !== 'reserved') return;
    entry.state = 'sent';
    entry.sentAtMs = nowMs;
    this.#sent.push(entry);
  }

  /** Replaces one amount of an entry at its own place in the window; one that left changes no sum. */
  correct(entry: WindowEntry, amount: Amount, value: number): void {
    if (entry.state !== 'left') this.sums[amount] += value - entry.amounts[amount];
    entry.amounts[amount] = value;
  }

  /** Takes back an entry that was never sent; one that was sent stays, because the server counted it. */
  cancel(entry: WindowEntry): void {
    if (entry.state === 'reserved') this.#leave(entry);
  }

  /** Puts in calls of the past, in any order. */
  insertSent(entries: readonly { readonly sentAtMs: number; readonly amounts: Amounts }[]): void {
    this.#compact();
    for (const { sentAtMs, amounts } of entries) {
      this.#sent.push({ ...this.reserve(amounts), sentAtMs, state: 'sent' });
    }
    this.#sent.sort((a, b) => (a.sentAtMs ?? 0) - (b.sentAtMs ?? 0));
  }

  /** What leaves and when, earliest first. Entries not yet sent are taken as sent now, the earliest they can be. */
  *leaving(amount: Amount, nowMs: number): Generator<Leaving> {
    let unsent = this.sums[amount];
    for (let index = this.#head; index < this.#sent.length; index += 1) {
      const entry = this.#sent[index];
      if (entry === undefined) break;
      unsent -= entry.amounts[amount];
      yield { atMs: this.#leavesAtMs(entry), amount: entry.amounts[amount] };
    }
    yield { atMs: nowMs + this.lengthMs, amount: unsent };
  }

  /** How much of an amount was sent after a certain entry that is still here, up to and including a moment. */
  sentSince(amount: Amount, entry: WindowEntry, untilMs: number): number {
    const sentAtMs = entry.sentAtMs ?? 0;
    let sum = 0;
    let after = false;
    for (let index = this.#firstSentAfter(sentAtMs - SAME_MOMENT_MS); index < this.#sent.length; index += 1) {
      const next = this.#sent[index];
      if (next === undefined || (next.sentAtMs ?? 0) > untilMs) break;
      if (after) sum += next.amounts[amount];
      else after = next === entry;
    }
    return sum;
  }

  #firstSentAfter(atMs: number): number {
    let low = this.#head;
    let high = this.#sent.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#sent[middle]?.sentAtMs ?? 0) > atMs) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #leavesAtMs(entry: WindowEntry): number {
    return (entry.sentAtMs ?? 0) + this.lengthMs;
  }

  #leave(entry: WindowEntry): void {
    entry.state = 'left';
    for (const amount of AMOUNTS) this.sums[amount] -= entry.amounts[amount];
  }

  #compact(): void {
    this.#sent = this.#sent.slice(this.#head);
    this.#head = 0;
  }
}
