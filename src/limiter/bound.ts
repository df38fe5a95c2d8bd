/**
 * One bound of a lane's speed. It rises by steps: twice as far while every step holds, half as far once one has
 * failed, until the limit is found; then it waits, twice as long after each failure of the smallest step.
 */
export class Bound {
  value = Number.POSITIVE_INFINITY;
  /** Where to go back to. */
  before = Number.POSITIVE_INFINITY;
  step = LONGEST_STEP;
  tryAtMs = Number.NEGATIVE_INFINITY;
  /** Calls let go since the last change, and those that had to wait for this bound. */
  calls = 0;
  #heldBack = 0;
  #hasFailed = false;
  #holdMs = FIRST_HOLD_MS;
  readonly #least: number;

  /** @param least by which a step raises it */
  constructor(least: number) {
    this.#least = least;
  }

  /** Whether it is what holds calls back. */
  get holds(): boolean {
    return this.#heldBack >= HELD_SHARE * this.calls && this.#heldBack > 0;
  }

  /** By this share the value is higher than before. */
  get rise(): number {
    return this.value / this.before - 1;
  }

  letGo(wasHeldBack: boolean): void {
    this.calls += 1;
    if (wasHeldBack) this.#heldBack += 1;
  }

  lower(value: number, step: number, tryAtMs: number): void {
    if (value >= this.value) return;
    this.step = Math.min(LONGEST_STEP, Math.max(SHORTEST_STEP, step));
    this.tryAtMs = tryAtMs;
    this.#hasFailed = false;
    this.#set(value);
  }

  /** @param least share by which, since less would not be told from chance */
  raise(least: number, most: number): void {
    this.before = this.value;
    const raised = this.value * (1 + Math.max(least, this.step));
    this.#set(
      Math.min(most, this.#least > 0 ? Math.max(this.value + this.#least, Math.round(raised)) : raised),
    );
  }

  held(nowMs: number): void {
    if (!this.#hasFailed) {
      this.step = Math.min(LONGEST_STEP, this.step * 2);
      this.#holdMs = FIRST_HOLD_MS;
    } else this.#narrow(nowMs);
  }

  failed(nowMs: number, settleMs: number): void {
    this.#set(this.before);
    this.#hasFailed = true;
    this.tryAtMs = nowMs + settleMs;
    this.#narrow(nowMs);
  }

  wait(untilMs: number): void {
    this.tryAtMs = Math.max(this.tryAtMs, untilMs);
  }

  goBack(tryAtMs: number): void {
    this.tryAtMs = tryAtMs;
    this.#set(this.before);
  }

  free(): void {
    this.#set(Number.POSITIVE_INFINITY);
  }

  #narrow(nowMs: number): void {
    if (this.step > SHORTEST_STEP) {
      this.step = Math.max(SHORTEST_STEP, this.step / 2);
      return;
    }
    this.#hasFailed = false;
    this.tryAtMs = nowMs + this.#holdMs;
    this.#holdMs = Math.min(LONGEST_HOLD_MS, this.#holdMs * 2);
  }

  #set(value: number): void {
    this.value = value;
    this.calls = 0;
    this.#heldBack = 0;
  }
}

/** From the size at which a refusal more can be told from chance to one that a lane far too slow needs. */
export const SHORTEST_STEP = 0.05;
export const LONGEST_STEP = 0.5;
/** The next try after the smallest step failed; each failure doubles it. */
export const FIRST_HOLD_MS = 30_000;
const LONGEST_HOLD_MS = 15 * 60_000;
/** A bound that holds back fewer calls than this bounds nothing. */
const HELD_SHARE = 0.1;
