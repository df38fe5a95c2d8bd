/**
 * Whether what a worker has is still its own, as far as it can know by itself: a process that was stopped, or cut off
 * from its store, for longer than its lease finds its documents with others when it goes on. All times are monotonic.
 */
export class Lease {
  /** Held without a gap from then on. */
  #sinceMs = Number.POSITIVE_INFINITY;
  #untilMs = Number.NEGATIVE_INFINITY;

  /** The store has said that the lease lasts for so long. @param askedAtMs when it was asked to */
  confirmed(askedAtMs: number, lastsMs: number): void {
    if (askedAtMs > this.#untilMs) this.#sinceMs = askedAtMs;
    this.#untilMs = Math.max(this.#untilMs, askedAtMs + lastsMs);
  }

  /** @param recordedAtMs when the store took it for this worker's */
  holds(recordedAtMs: number, nowMs: number): boolean {
    return recordedAtMs >= this.#sinceMs && nowMs <= this.#untilMs;
  }
}
