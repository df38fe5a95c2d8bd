import type { RefusalReason } from './reservation.js';

/**
 * Tells a refusal that came alone from the start of a throttle. Servers refuse a call now and then for reasons of
 * their own while they let thousands in; to slow down for each would cost far more than it saves. The call itself
 * still waits as it was told.
 */
export class StrayRefusals {
  readonly #seconds: { second: number; letIn: number; refused: number }[] = Array.from(
    { length: KEPT_SECONDS },
    () => ({ second: Number.NEGATIVE_INFINITY, letIn: 0, refused: 0 }),
  );

  #bearable = OF_CAPACITY.largestShare;
  #slowed: Slowed | null = null;

  /** @param sentAtMs when the call was sent, where known */
  letIn(nowMs: number, sentAtMs: number | null): void {
    this.#slot(nowMs).letIn += 1;
    if (this.#slowed !== null && sentAtMs !== null && sentAtMs > this.#slowed.atMs) this.#slowed.letIn += 1;
  }

  refused(nowMs: number, sentAtMs: number | null): void {
    this.#slot(nowMs).refused += 1;
    if (this.#slowed !== null && sentAtMs !== null && sentAtMs > this.#slowed.atMs) this.#slowed.refused += 1;
  }

  /**
   * The lane slows down for want of capacity. If it did so before and was refused as large a share all the same, its
   * speed is not what the server minds, and so many are borne from now on.
   */
  slowed(nowMs: number): void {
    if (this.#slowed !== null) {
      const { letIn, refused, shareBefore } = this.#slowed;
      if (letIn + refused < CALLS_TO_JUDGE_BY) return;
      const share = refused / (letIn + refused);
      const isSame = share >= shareBefore * SAME_SHARE && share <= MOST_BEARABLE;
      this.#bearable = isSame ? Math.min(MOST_BEARABLE, share * SWING) : OF_CAPACITY.largestShare;
    }
    const { letIn, refused } = this.#countOf(JUDGED_SECONDS, nowMs);
    this.#slowed = { atMs: nowMs, shareBefore: refused / Math.max(1, letIn + refused), letIn: 0, refused: 0 };
  }

  /**
   * Whether the refusals of late are too few of all calls to mean anything.
   * @param reason what the last one was for: a server that lacks capacity shares it among all its customers, so that
   *   we hardly change how much it refuses, and a twentieth of the calls costs it little to turn away
   * @param held a limit or a learnt pace holds: what is refused within it tells of a tighter one, so less is borne
   */
  areStray(reason: RefusalReason, held: boolean, nowMs: number): boolean {
    const ofCapacity = { ...OF_CAPACITY, largestShare: this.#bearable };
    const measure = reason === 'overload' ? ofCapacity : held ? WHEN_HELD : WHEN_FREE;
    return this.#areFewerThan(measure, nowMs);
  }

  /** Whether the server lets nearly everything in, though it refuses more than by mere chance. */
  areRare(nowMs: number): boolean {
    return this.#areFewerThan(RARE, nowMs);
  }

  #areFewerThan({ seconds, leastLetIn, largestShare }: Measure, nowMs: number): boolean {
    const { letIn, refused } = this.#countOf(seconds, nowMs);
    return letIn >= leastLetIn && refused <= letIn * largestShare;
  }

  #countOf(seconds: number, nowMs: number): { letIn: number; refused: number } {
    const oldest = Math.floor(nowMs / 1_000) - seconds + 1;
    let letIn = 0;
    let refused = 0;
    for (const slot of this.#seconds) {
      if (slot.second < oldest) continue;
      letIn += slot.letIn;
      refused += slot.refused;
    }
    return { letIn, refused };
  }

  #slot(nowMs: number): { second: number; letIn: number; refused: number } {
    const second = Math.floor(nowMs / 1_000);
    const index = ((second % KEPT_SECONDS) + KEPT_SECONDS) % KEPT_SECONDS;
    const slot = this.#seconds[index];
    if (slot === undefined) throw new RangeError(`No second at ${nowMs}`);
    if (slot.second !== second) Object.assign(slot, { second, letIn: 0, refused: 0 });
    return slot;
  }
}

const KEPT_SECONDS = 30;

interface Measure {
  readonly seconds: number;
  /** Fewer calls do not tell chance from a rule. */
  readonly leastLetIn: number;
  readonly largestShare: number;
}

/** What came of the calls that were sent since the lane last slowed down. */
interface Slowed {
  readonly atMs: number;
  /** Of the calls just before. */
  readonly shareBefore: number;
  letIn: number;
  refused: number;
}

const JUDGED_SECONDS = 10;
const CALLS_TO_JUDGE_BY = 50;
/** Chance lets the share of so few calls fall so far. */
const SAME_SHARE = 0.6;
const SWING = 1.5;
/** Where more are refused, to go on as before would be to hammer at the server. */
const MOST_BEARABLE = 0.3;

const OF_CAPACITY: Measure = { seconds: KEPT_SECONDS, leastLetIn: 20, largestShare: 0.05 };
const WHEN_HELD: Measure = { seconds: 10, leastLetIn: 200, largestShare: 0.005 };
const WHEN_FREE: Measure = { seconds: KEPT_SECONDS, leastLetIn: 120, largestShare: 0.01 };
const RARE: Measure = { seconds: KEPT_SECONDS, leastLetIn: 40, largestShare: 0.08 };
