/** Calls of the last minute that were sent and not refused, by the second: how fast the server let us go. */
export class RecentCalls {
  readonly #seconds: { second: number; requests: number; tokens: number }[] = Array.from(
    { length: KEPT_SECONDS },
    () => ({ second: Number.NEGATIVE_INFINITY, requests: 0, tokens: 0 }),
  );
  #firstSentAtMs: number | null = null;

  sent(requests: number, tokens: number, nowMs: number): void {
    this.#firstSentAtMs ??= nowMs;
    const slot = this.#slot(nowMs);
    const second = Math.floor(nowMs / 1_000);
    if (slot.second !== second) Object.assign(slot, { second, requests: 0, tokens: 0 });
    slot.requests += requests;
    slot.tokens += tokens;
  }

  /** A call of the last minute was refused; or its tokens are known better. */
  correct(requests: number, tokens: number, sentAtMs: number): void {
    const slot = this.#slot(sentAtMs);
    if (slot.second !== Math.floor(sentAtMs / 1_000)) return;
    slot.requests += requests;
    slot.tokens += tokens;
  }

  /** The mean per millisecond of the whole seconds up to `untilMs`; at least one second is looked at. */
  perMs(spanMs: number, untilMs: number): { requests: number; tokens: number } {
    const fromMs = Math.max(untilMs - spanMs, this.#firstSentAtMs ?? untilMs);
    const lengthMs = Math.max(1_000, untilMs - fromMs);
    let requests = 0;
    let tokens = 0;
    for (const slot of this.#seconds) {
      const atMs = slot.second * 1_000;
      if (atMs > untilMs || atMs + 1_000 <= untilMs - lengthMs) continue;
      requests += slot.requests;
      tokens += slot.tokens;
    }
    return { requests: requests / lengthMs, tokens: tokens / lengthMs };
  }

  #slot(atMs: number): { second: number; requests: number; tokens: number } {
    const index = ((Math.floor(atMs / 1_000) % KEPT_SECONDS) + KEPT_SECONDS) % KEPT_SECONDS;
    const slot = this.#seconds[index];
    if (slot === undefined) throw new RangeError(`No second at ${atMs}`);
    return slot;
  }
}

const KEPT_SECONDS = 64;
