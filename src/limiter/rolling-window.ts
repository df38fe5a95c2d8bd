/**
 * What was spent in the last `lengthMs` milliseconds, exactly: an entry counts from the moment its call was
 * sent (over the half-open span `(t - lengthMs, t]`) and leaves as a whole, so no fixed edges let twice the
 * limit through. Entries that are reserved but not yet sent count for as long as they wait.
 *
 *   reserve ──▶ reserved ──send──▶ sent ──lengthMs later──▶ left
 *                  └────cancel──▶ left
 *
 * Sent entries lie in the order they were sent, so leaving is a step of the head and every operation but the
 * wait is amortised O(1); the wait walks over the entries that have to leave before the cost fits.
 */
export interface WindowEntry {
  readonly requests: number;
  /** Reserved at first, what was really used after a correction. */
  tokens: number;
  /** Null until sent. */
  sentAtMs: number | null;
  state: 'reserved' | 'sent' | 'left';
}

/** The free head of the queue is cut off in pieces this long, so that cutting stays cheap. */
const COMPACT_AFTER = 4_096;

export class RollingWindow {
  readonly lengthMs: number;
  /** Sums over reserved and sent entries, as of the last `advance`. */
  requests = 0;
  tokens = 0;
  #sent: WindowEntry[] = [];
  #head = 0;

  constructor(lengthMs: number) {
    this.lengthMs = lengthMs;
  }

  /** Lets go of what was sent `lengthMs` or longer ago. Call before reading the sums. */
  advance(nowMs: number): void {
    for (let entry = this.#sent[this.#head]; entry !== undefined; entry = this.#sent[this.#head]) {
      if (this.#leavesAtMs(entry, nowMs) > nowMs) break;
      this.#head += 1;
      this.#leave(entry);
    }
    if (this.#head >= COMPACT_AFTER && this.#head * 2 >= this.#sent.length) {
      this.#sent = this.#sent.slice(this.#head);
      this.#head = 0;
    }
  }

  reserve(requests: number, tokens: number): WindowEntry {
    this.requests += requests;
    this.tokens += tokens;
    return { requests, tokens, sentAtMs: null, state: 'reserved' };
  }

  /** `nowMs` must not be earlier than any earlier send. */
  send(entry: WindowEntry, nowMs: number): void {
    if (entry.state !== 'reserved') return;
    entry.state = 'sent';
    entry.sentAtMs = nowMs;
    this.#sent.push(entry);
  }

  /** Replaces an entry's tokens at its own place in the window; one that left changes nothing. */
  correct(entry: WindowEntry, tokens: number): void {
    if (entry.state !== 'left') this.tokens += tokens - entry.tokens;
    entry.tokens = tokens;
  }

  /** Takes back an entry that was never sent; one that was sent stays, because the server counted it. */
  cancel(entry: WindowEntry): void {
    if (entry.state === 'reserved') this.#leave(entry);
  }

  /** Puts in calls of the past, in any order. */
  insertSent(entries: readonly { sentAtMs: number; requests: number; tokens: number }[]): void {
    for (const { sentAtMs, requests, tokens } of entries) {
      this.#sent.push({ ...this.reserve(requests, tokens), sentAtMs, state: 'sent' });
    }
    this.#sent = this.#sent.slice(this.#head).sort((a, b) => (a.sentAtMs ?? 0) - (b.sentAtMs ?? 0));
    this.#head = 0;
  }

  /**
   * The earliest moment at which the sum of `unit` has fallen to `atMost` if nothing else happens; `nowMs` when
   * it already has. Entries not yet sent are taken as sent now, the earliest they can be.
   */
  fallsToAtMs(unit: 'requests' | 'tokens', atMost: number, nowMs: number): number {
    let excess = this[unit] - atMost;
    if (excess <= 0) return nowMs;
    for (let index = this.#head; index < this.#sent.length; index += 1) {
      const entry = this.#sent[index];
      if (entry === undefined) break;
      excess -= entry[unit];
      if (excess <= 0) return this.#leavesAtMs(entry, nowMs);
    }
    return nowMs + this.lengthMs;
  }

  #leavesAtMs(entry: WindowEntry, nowMs: number): number {
    return (entry.sentAtMs ?? nowMs) + this.lengthMs;
  }

  #leave(entry: WindowEntry): void {
    entry.state = 'left';
    this.requests -= entry.requests;
    this.tokens -= entry.tokens;
  }
}
