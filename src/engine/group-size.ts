/**
 * How many documents one call should have: as many as a server answers well within the time that a call should take.
 *
 *   under 0.3 of the target, or over 0.8 ──▶ as many as would take 0.6, if a call's time grew with its documents
 *   between                              ──▶ stays
 *
 * Where latency is `a + b·n`, more documents then take 0.6 at most, and fewer still take 0.6 at least: a step never
 * leads to the other end, so that sizes settle instead of swinging. It starts with the fewest, because what a server
 * bears is not known before it has answered. It goes there in one step, because the calls that were packed before it
 * are as many as the connections and their stock: with thirty, four steps would send thousands of documents in small
 * calls.
 */
export interface GroupSizeBounds {
  readonly fewest: number;
  readonly most: number;
  /** What a call should take. */
  readonly targetLatencyMs: number;
}

const GROW_BELOW = 0.3;
const SHRINK_ABOVE = 0.8;
const AIM = 0.6;
/** The middle of so many calls decides, so that one that was held up does not. */
const CALLS_JUDGED = 3;
/** A refused size is tried again after so many calls: it may have been a single document that was too large. */
const REFUSAL_HOLDS_FOR_CALLS = 128;

export class GroupSize {
  readonly #bounds: GroupSizeBounds;
  #documents: number;
  #latenciesMs: number[] = [];
  /** The most that were ever answered in one call. */
  #answered = 0;
  #refused: { readonly documents: number; callsLeft: number } | null = null;

  constructor(bounds: GroupSizeBounds) {
    const { fewest, most } = bounds;
    this.#bounds = { ...bounds, fewest: Math.min(fewest, most) };
    this.#documents = this.#bounds.fewest;
  }

  /** For the next call. */
  get documents(): number {
    return this.#documents;
  }

  /** @param documents of a call that was answered after this time */
  answered(documents: number, latencyMs: number): void {
    this.#answered = Math.max(this.#answered, documents);
    const refused = this.#refused;
    if (refused !== null) {
      refused.callsLeft -= 1;
      if (refused.callsLeft <= 0 || documents >= refused.documents) this.#refused = null;
    }
    this.#took(documents, latencyMs);
  }

  /** @param documents of a call that was not answered in the time that calls have at most */
  timedOut(documents: number): void {
    this.#shrinkTo(documents / 2);
  }

  /** @param documents of a call that the server said is too large. Where it has answered as many, one of them is. */
  refusedAsTooLarge(documents: number): void {
    if (documents <= this.#answered) return;
    this.#refused = { documents, callsLeft: REFUSAL_HOLDS_FOR_CALLS };
    this.#shrinkTo(Math.max(this.#answered, documents / 2));
  }

  #took(documents: number, latencyMs: number): void {
    const isSlow = latencyMs > SHRINK_ABOVE * this.#bounds.targetLatencyMs;
    // Calls of an earlier size come back later, and partial groups are quick because they are.
    const tells = documents === this.#documents || (documents < this.#documents && isSlow);
    if (!tells) return;
    this.#latenciesMs.push(latencyMs);
    if (this.#latenciesMs.length < CALLS_JUDGED) return;
    const middle = this.#latenciesMs.toSorted((one, other) => one - other)[1] as number;
    this.#latenciesMs = [];
    const { targetLatencyMs } = this.#bounds;
    const aim = this.#documents * ((AIM * targetLatencyMs) / middle);
    if (middle < GROW_BELOW * targetLatencyMs) this.#growTo(Math.floor(aim));
    else if (middle > SHRINK_ABOVE * targetLatencyMs) this.#shrinkTo(aim);
  }

  #growTo(documents: number): void {
    // Below a refused size the way up is halved, so that the largest that is taken is found.
    const below =
      this.#refused === null
        ? this.#bounds.most
        : Math.max(this.#documents, Math.floor((this.#documents + this.#refused.documents) / 2));
    this.#become(Math.min(documents, below, this.#bounds.most));
  }

  #shrinkTo(documents: number): void {
    this.#become(Math.min(this.#documents, Math.max(this.#bounds.fewest, Math.floor(documents))));
  }

  #become(documents: number): void {
    if (documents === this.#documents) return;
    this.#documents = documents;
    this.#latenciesMs = [];
  }
}

/**
 * A size for each model at each endpoint, since those tell how long a call takes. Not for each lane: which one a group
 * goes over shows when it is complete.
 */
export class GroupSizes {
  readonly #bounds: GroupSizeBounds;
  readonly #sizes = new Map<string, GroupSize>();
  readonly #initial: GroupSize;

  constructor(bounds: GroupSizeBounds) {
    this.#bounds = bounds;
    this.#initial = new GroupSize(bounds);
  }

  documentsFor(kind: string): number {
    return (this.#sizes.get(kind) ?? this.#initial).documents;
  }

  of(kind: string): GroupSize {
    let size = this.#sizes.get(kind);
    if (size === undefined) {
      size = new GroupSize(this.#bounds);
      this.#sizes.set(kind, size);
    }
    return size;
  }
}
