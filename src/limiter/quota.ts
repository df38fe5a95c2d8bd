import type { Leaving } from './rolling-window.js';

/**
 * One limit over one window: what the user allows us, within what the server allows us and others together. Others
 * are seen in the server's count of what is left, when it is lower than our own calls explain; what they used fades
 * evenly until the server says that the quota would be full again.
 */
export class Quota {
  #declared: number | null = null;
  #learnt: number | null = null;
  #others = { amount: 0, fromMs: 0, untilMs: 0 };

  /** What the user allows; null: not limited by us. */
  get declared(): number | null {
    return this.#declared;
  }

  get learnt(): number | null {
    return this.#learnt;
  }

  /** What we and others have together, as far as is known. */
  get shared(): number | null {
    return this.#learnt ?? this.#declared;
  }

  /** The limit on our own calls; null where none is known. */
  get limit(): number | null {
    return lower(this.#declared, this.#learnt);
  }

  /** Replaces what the user allows. */
  declare(limit: number | null): void {
    this.#declared = limit;
  }

  learn(limit: number): void {
    if (Number.isFinite(limit) && limit > 0) this.#learnt = limit;
  }

  /** Replaces what is believed about others. */
  setOthers(amount: number, nowMs: number, fadesMs: number): void {
    this.#others = { amount: Math.max(0, amount), fromMs: nowMs, untilMs: nowMs + fadesMs };
  }

  othersAt(nowMs: number): number {
    const { amount, fromMs, untilMs } = this.#others;
    return nowMs >= untilMs ? 0 : (amount * (untilMs - nowMs)) / (untilMs - fromMs);
  }

  /**
   * The earliest moment at which `cost` fits if nothing else happens; `nowMs` if it fits now. A cost above the whole limit,
   * which can only happen with a learnt limit, goes alone: the server has the last word on it.
   * @param leaving what leaves the window, earliest first; read only as far as needed
   */
  fitsAtMs(cost: number, used: number, leaving: Iterable<Leaving>, nowMs: number): number {
    const limit = this.limit;
    if (limit === null) return nowMs;
    let room = limit - Math.min(cost, limit) - used;
    const notOurs = (this.shared ?? limit) - limit;
    if (room >= 0 && this.othersAt(nowMs) <= room + notOurs) return nowMs;
    let atMs = nowMs;
    for (const next of leaving) {
      if (room >= 0) {
        const fadedAtMs = Math.max(atMs, this.#othersFallToAtMs(room + notOurs));
        if (fadedAtMs <= next.atMs) return fadedAtMs;
      }
      room += next.amount;
      atMs = Math.max(atMs, next.atMs);
    }
    return Math.max(atMs, this.#othersFallToAtMs(Math.max(0, room) + notOurs));
  }

  /** Rounded up to a whole millisecond, so that no rounding error makes it too early. */
  #othersFallToAtMs(amount: number): number {
    const others = this.#others;
    if (others.amount <= amount) return others.fromMs;
    const shareLeft = amount / others.amount;
    return Math.min(others.untilMs, Math.ceil(others.untilMs - shareLeft * (others.untilMs - others.fromMs)));
  }
}

/** The lower of two limits; null is none. */
export function lower(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}
