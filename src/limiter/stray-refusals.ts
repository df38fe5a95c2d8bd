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

  letIn(nowMs: number): void {
    this.#slot(nowMs).letIn += 1;
  }

  refused(nowMs: number): void {
    this.#slot(nowMs).refused += 1;
  }

  /** Whether the refusals of late, the one just counted among them, are too few of all calls to mean anything. */
  areStray(nowMs: number): boolean {
    const oldest = Math.floor(nowMs / 1_000) - KEPT_SECONDS + 1;
    let letIn = 0;
    let refused = 0;
    for (const slot of this.#seconds) {
      if (slot.second < oldest) continue;
      letIn += slot.letIn;
      refused += slot.refused;
    }
    return letIn >= LEAST_LET_IN && refused <= letIn * LARGEST_SHARE;
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

const KEPT_SECONDS = 10;
/** Fewer calls do not tell chance from a rule. */
const LEAST_LET_IN = 200;
/** Half of what a run may at most have refused (1 %) when it is paced well. */
const LARGEST_SHARE = 0.005;
