import type { Amount } from './rolling-window.js';

/**
 * Which tokens the server counts, and so which sum of the window has to stay below the limit.
 *
 *   'tokensAtCap'  prompt and output cap in full, whatever was answered
 *   'tokensHeld'   the cap while a call is open, then what it used
 *   'tokens'       what is used: expected while a call is open, then counted
 *
 *   tokensHeld ─── an answer tells what is left ───────────────────────────▶ tokensAtCap
 *              ─── a refusal that only the cap explains ───────────────────▶ tokensAtCap
 *              ─── more was let in than a server lets in that charges caps ▶ tokens
 *   tokensAtCap ── the same ───────────────────────────────────────────────▶ tokens
 *   tokens ─────── the server counts as if it charged caps, three times ───▶ tokensAtCap
 *          ─────── a refusal that only held caps explain ──────────────────▶ tokensHeld
 *
 * A server that tells what is left is taken to charge the cap until more was let in than that allows; so that
 * this can come about, a call may go as well when what the server told to be left holds it and all open calls at
 * their caps, which is safe however it charges. A server that tells nothing is taken to hold the cap of open calls.
 */
export class Charging {
  #counted: Amount = 'tokensHeld';
  #tellsRemaining = false;
  /** Proved wrong by a refusal once; without the server's figures that is not tried again. */
  #demoted = false;
  #countedAtCap = 0;
  /** The least that was told to be left, by the second in which the call was sent: the last one and that before. */
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

  /** True or false once the server's behaviour proves it, null until then. */
  get chargesOutputCap(): boolean | null {
    if (this.#counted === 'tokens') return false;
    return this.#countedAtCap >= PROOFS ? true : null;
  }

  /** Whether the server said that it has room for a call, with all open calls at their caps. */
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
   * The server told what was left when it took the call sent at `sentAtMs`. Of the calls answered, the one taken
   * last told the least, and it is among those sent last, for calls do not overtake each other by a second.
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
   * The server took a call though the calls of the last minute, at cap, were `atCap`. A bucket that was full
   * and has refilled within the minute, or two minutes' counts around an edge, come to twice the limit at most.
   */
  accepted(atCap: number, limit: number | null): void {
    if (limit === null || atCap <= MOST_LET_IN * limit || (this.#demoted && !this.#tellsRemaining)) return;
    this.#counted = 'tokens';
    this.#countedAtCap = 0;
  }

  /**
   * What the server had counted, beside what we did.
   * @param expected the most that a server counts which charges use
   * @param atCap what one counts that charges the cap
   */
  compared(counted: number, expected: number, atCap: number, limit: number): void {
    if (atCap > MOST_LET_IN * limit || counted < CLEARLY_MORE * expected) return;
    if (counted < 0.75 * Math.min(limit, atCap)) return;
    this.#countedAtCap += 1;
    if (this.#countedAtCap >= PROOFS) this.#counted = 'tokensAtCap';
  }

  /**
   * A call was refused though what we count fits.
   * @returns whether another way of charging explains it; then that is assumed from here on
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

/** One may come from others who share the key. */
const PROOFS = 3;
/** By a server that charges caps, in times its limit over a minute. */
const MOST_LET_IN = 2.1;
/** Below this ratio the two ways of charging are too near to tell apart, or to matter. */
const CLEARLY_MORE = 1.5;
