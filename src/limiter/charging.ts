import type { Amount } from './rolling-window.js';

/**
 * Which tokens the server counts, and so which sum of the window has to stay within the limit.
 *
 *   'tokensAtCap'  prompt and output cap in full, whatever was answered
 *   'tokensHeld'   the cap while a call is open, then what it used
 *   'tokens'       what is used: expected while a call is open, then counted
 *
 *   tokensHeld ─── an answer says what is left ────────────────────────────▶ tokensAtCap
 *              ─── a refusal that only the cap explains ───────────────────▶ tokensAtCap
 *              ─── more was let in than a server lets in that charges caps ▶ tokens
 *   tokensAtCap ── the same ───────────────────────────────────────────────▶ tokens
 *   tokens ─────── the server counts as if it charged caps, three times ───▶ tokensAtCap
 *          ─────── a refusal that only held caps explain ──────────────────▶ tokensHeld
 *
 * A server that says what is left is assumed to charge the cap until it has let in more than that allows. So that this can
 * happen, a call may also go when what the server says is left has room for it and for all open calls, each at its cap,
 * which is safe however the server charges. A server that says nothing is assumed to hold the cap of open calls.
 */
export class Charging {
  #counted: Amount = 'tokensHeld';
  #tellsRemaining = false;
  /** A refusal once proved it wrong; without the server's figures, it is not tried again. */
  #demoted = false;
  #countedAtCap = 0;
  /** The least that the server said was left, for calls sent in the latest second and in the one before. */
  #told = {
    second: Number.NEGATIVE_INFINITY,
    least: Number.POSITIVE_INFINITY,
    leastBefore: Number.POSITIVE_INFINITY,
  };
  #openAtCap = 0;

  /** The sum that counts. */
  get counted(): Amount {
    return this.#counted;
  }

  /** Null until the server's behaviour proves it true or false. */
  get chargesOutputCap(): boolean | null {
    if (this.#counted === 'tokens') return false;
    return this.#countedAtCap >= PROOFS ? true : null;
  }

  /** Whether the server has said that there is room for a call beside all open ones, each at its cap. */
  hasRoomFor(tokensAtCap: number): boolean {
    if (this.#counted !== 'tokensAtCap' || !this.#tellsRemaining) return false;
    return this.#openAtCap + tokensAtCap <= Math.min(this.#told.least, this.#told.leastBefore);
  }

  opened(tokensAtCap: number): void {
    this.#openAtCap += tokensAtCap;
  }

  closed(tokensAtCap: number): void {
    this.#openAtCap -= tokensAtCap;
  }

  /**
   * The server said what was left when it took the call sent at `sentAtMs`. Of the answered calls, the one it took last has
   * the smallest figure, and that call is among those sent last, since no call overtakes another by a second.
   */
  told(remaining: number, sentAtMs: number): void {
    if (!this.#tellsRemaining) {
      this.#tellsRemaining = true;
      if (this.#counted === 'tokensHeld') this.#counted = 'tokensAtCap';
    }
    const told = this.#told;
    const second = Math.floor(sentAtMs / 1_000);
    if (second > told.second) {
      const leastBefore = second === told.second + 1 ? told.least : Number.POSITIVE_INFINITY;
      this.#told = { second, least: remaining, leastBefore };
    } else if (second === told.second) told.least = Math.min(told.least, remaining);
    else if (second === told.second - 1) told.leastBefore = Math.min(told.leastBefore, remaining);
  }

  /**
   * The server took a call although those of the last minute, at their caps, came to `atCap`. A full bucket that refilled
   * within the minute, or the counts on both sides of a fixed minute's edge, come to twice the limit at most.
   */
  accepted(atCap: number, limit: number | null): void {
    if (limit === null || atCap <= MOST_LET_IN * limit || (this.#demoted && !this.#tellsRemaining)) return;
    this.#counted = 'tokens';
    this.#countedAtCap = 0;
  }

  /**
   * Compares the server's count with ours.
   * @param expected the most that a server counts if it charges what is used
   * @param atCap what it counts if it charges the cap
   */
  compared(counted: number, expected: number, atCap: number, limit: number): void {
    if (atCap > MOST_LET_IN * limit || counted < CLEARLY_MORE * expected) return;
    if (counted < 0.75 * Math.min(limit, atCap)) return;
    this.#countedAtCap += 1;
    if (this.#countedAtCap >= PROOFS) this.#counted = 'tokensAtCap';
  }

  /**
   * A call was refused although it fits by our count.
   * @returns whether another way of charging explains that; if so, it is assumed from here on
   */
  explains(heldWhenSent: number, atCapWhenSent: number, limit: number | null): boolean {
    if (limit === null) return false;
    if (this.#counted === 'tokens' && heldWhenSent > limit) this.#counted = 'tokensHeld';
    else if (this.#counted === 'tokensHeld' && atCapWhenSent > limit) this.#counted = 'tokensAtCap';
    else return false;
    this.#demoted = true;
    return true;
  }
}

/** A single one may be due to others who share the key. */
const PROOFS = 3;
/** The most that a server which charges caps lets in within a minute, as a multiple of its limit. */
const MOST_LET_IN = 2.1;
/** Below this ratio the two ways of charging are too close to tell apart, or to matter. */
const CLEARLY_MORE = 1.5;
