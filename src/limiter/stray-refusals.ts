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

  /**
   * Whether the refusals of late are too few of all calls to mean anything.
   * @param held a limit or a learnt pace holds: what is refused within it tells of a tighter one, so less is borne
   */
  areStray(held: boolean, nowMs: number): boolean {
    return this.#areFewerThan(held ? WHEN_HELD : WHEN_FREE, nowMs);
  }

  /** Whether the server lets nearly everything in, though it refuses more than by mere chance. */
  areRare(nowMs: number): boolean {
    return this.#areFewerThan(RARE, nowMs);
  }

  #areFewerThan({ seconds, leastLetIn, largestShare }: Measure, nowMs: number): boolean {
    const oldest = Math.floor(nowMs / 1_000) - seconds + 1;
    let letIn = 0;
    let refused = 0;
    for (const slot of this.#seconds) {
      if (slot.second < oldest) continue;
      letIn += slot.letIn;
      refused += slot.refused;
    }
    return letIn >= leastLetIn && refused <= letIn * largestShare;
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

const WHEN_HELD: Measure = { seconds: 10, leastLetIn: 200, largestShare: 0.005 };
const WHEN_FREE: Measure = { seconds: KEPT_SECONDS, leastLetIn: 120, largestShare: 0.01 };
const RARE: Measure = { seconds: KEPT_SECONDS, leastLetIn: 40, largestShare: 0.08 };
