/**
 * An exact rolling window over arrivals: what happened in the half-open span `(now - lengthMs, now]`. An
 * arrival leaves at the very moment it is `lengthMs` old. The judge enforces limits with it and the books
 * measure peaks with it; nothing outside the simulator uses it, so that a mistake in the client's own window
 * cannot hide here.
 *
 * Times must not run backwards from one call to the next. Memory is two numbers per arrival in the window.
 */

const FIRST_CAPACITY = 64;

export class RollingWindow {
  #times = new Float64Array(FIRST_CAPACITY);
  #tokens = new Float64Array(FIRST_CAPACITY);
  #oldest = 0;
  #size = 0;
  #tokenSum = 0;

  constructor(readonly lengthMs: number) {}

  add(nowMs: number, tokens: number): void {
    this.#forget(nowMs);
    if (this.#size === this.#times.length) this.#grow();
    const slot = this.#slot(this.#size);
    this.#times[slot] = nowMs;
    this.#tokens[slot] = tokens;
    this.#size += 1;
    this.#tokenSum += tokens;
  }

  requests(nowMs: number): number {
    this.#forget(nowMs);
    return this.#size;
  }

  tokens(nowMs: number): number {
    this.#forget(nowMs);
    return this.#tokenSum;
  }

  /** Milliseconds until fewer than `limit` arrivals are left; 0 when that is so now. `limit` is 1 or more. */
  msUntilFewerThan(limit: number, nowMs: number): number {
    this.#forget(nowMs);
    if (this.#size < limit) return 0;
    return this.#leavesInMs(this.#size - limit, nowMs);
  }

  /** Milliseconds until at most `tokens` are left; 0 when that is so now. */
  msUntilTokensAtMost(tokens: number, nowMs: number): number {
    this.#forget(nowMs);
    let left = this.#tokenSum;
    if (left <= tokens) return 0;
    for (let index = 0; index < this.#size; index += 1) {
      left -= this.#tokens[this.#slot(index)] ?? 0;
      if (left <= tokens) return this.#leavesInMs(index, nowMs);
    }
    return this.msUntilEmpty(nowMs);
  }

  msUntilEmpty(nowMs: number): number {
    this.#forget(nowMs);
    return this.#size === 0 ? 0 : this.#leavesInMs(this.#size - 1, nowMs);
  }

  /** A window of another length that remembers what this one does (no further back than either reaches). */
  withLength(lengthMs: number): RollingWindow {
    const other = new RollingWindow(lengthMs);
    for (let index = 0; index < this.#size; index += 1) {
      const slot = this.#slot(index);
      other.add(this.#times[slot] ?? 0, this.#tokens[slot] ?? 0);
    }
    return other;
  }

  #forget(nowMs: number): void {
    const goneMs = nowMs - this.lengthMs;
    while (this.#size > 0 && (this.#times[this.#oldest] ?? 0) <= goneMs) {
      this.#tokenSum -= this.#tokens[this.#oldest] ?? 0;
      this.#oldest = (this.#oldest + 1) % this.#times.length;
      this.#size -= 1;
    }
  }

  #slot(index: number): number {
    return (this.#oldest + index) % this.#times.length;
  }

  #leavesInMs(index: number, nowMs: number): number {
    return (this.#times[this.#slot(index)] ?? 0) + this.lengthMs - nowMs;
  }

  #grow(): void {
    const times = new Float64Array(this.#times.length * 2);
    const tokens = new Float64Array(this.#times.length * 2);
    for (let index = 0; index < this.#size; index += 1) {
      times[index] = this.#times[this.#slot(index)] ?? 0;
      tokens[index] = this.#tokens[this.#slot(index)] ?? 0;
    }
    this.#times = times;
    this.#tokens = tokens;
    this.#oldest = 0;
  }
}
