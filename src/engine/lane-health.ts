/**
 * What the calls of one lane say of the server behind it, so that the server's trouble is not charged to documents.
 *
 *   untried ──a call is sent: the others wait──▶ trying ──it has ended, or 2 s have gone by──▶ up
 *
 *   up ──so many documents in a row met trouble, and none an answer──▶ down
 *    ▲                                                                  │ the limiter pauses the lane and lets one
 *    └───────────── a call that was sent since then is answered ────────┘ probe go after the other
 *
 * Trouble is whatever a server, a gateway or a network can do instead of answering: 5xx, resets, time-outs, gateway
 * pages. While the server is down it uses no attempts. While it is up, a failure is the part of an attempt that it proves:
 * where the documents that were answered had met trouble in one call of twenty, a whole one; the more they had met, the
 * less. So, whatever share of calls a server fails, five attempts in a row are about as unlikely to be chance.
 */

/** How a call's trouble is to be taken. */
export interface Trouble {
  /** An attempt is used: others fare well, so it is the document's own. */
  readonly isCharged: boolean;
  /** Failures of this document since it was last answered, in this process. */
  readonly failures: number;
  /** Set by the failure that showed that the server is down. */
  readonly wentDown: boolean;
}

/** Answered documents that tell how the others fare: enough to tell a twentieth, few enough to follow a change. */
const DOCUMENTS_HEARD = 64;
/** Fewer than these say little of a server, so they count as if the rest of them had met no trouble. */
const FEWEST_DOCUMENTS = 8;
/** Documents in a row: even where half of the calls fail, by chance once in a thousand. */
const DOCUMENTS_TO_BE_DOWN = 10;
/** The share of calls that meet trouble up to which a failure is a whole attempt. */
const FULL_CHARGE_SHARE = 0.05;
/** A slow first answer is not waited for: a wrong key is refused faster than that. */
const LONGEST_TRIAL_MS = 2_000;

export class LaneHealth {
  #state: 'untried' | 'trying' | 'up' | 'down';
  #sinceMs = 0;
  /** How often each of the last answered documents had met trouble before. */
  readonly #failuresBefore: number[] = [];
  /** Documents in trouble since the last answer. */
  readonly #streak = new Set<number>();
  /** Of documents in trouble: failures, and what they amount to in attempts that are not charged yet. */
  readonly #cases = new Map<number, { failures: number; evidence: number }>();

  /** @param isUntried no call of this kind was ever answered: one goes first */
  constructor(isUntried: boolean) {
    this.#state = isUntried ? 'untried' : 'up';
  }

  /** Monotonic time since which the server does not answer; null while it does. */
  get downSinceMs(): number | null {
    return this.#state === 'down' ? this.#sinceMs : null;
  }

  /** How long the next call has to wait for the first one; 0 when it may go. */
  trialForMs(nowMs: number): number {
    return this.#state === 'trying' ? Math.max(0, this.#sinceMs + LONGEST_TRIAL_MS - nowMs) : 0;
  }

  admitted(nowMs: number): void {
    if (this.#state === 'untried') this.#enter('trying', nowMs);
  }

  /** An admitted call was not sent after all: another may go first. */
  withdrawn(nowMs: number): void {
    if (this.#state === 'trying') this.#enter('untried', nowMs);
  }

  /** A call has ended, whatever way, and what it showed has been acted upon. */
  ended(nowMs: number): void {
    if (this.#state === 'trying') this.#enter('up', nowMs);
  }

  /**
   * The server did its part: it answered, or said what is wrong with the request.
   * @returns since when it had been down, where this shows that it is back
   */
  answered(document: number, sentAtMs: number, nowMs: number): number | null {
    this.#failuresBefore.push(this.#cases.get(document)?.failures ?? 0);
    if (this.#failuresBefore.length > DOCUMENTS_HEARD) this.#failuresBefore.shift();
    this.#cases.delete(document);
    this.#streak.clear();
    const { downSinceMs } = this;
    if (downSinceMs === null || sentAtMs < downSinceMs) return null;
    this.#enter('up', nowMs);
    return downSinceMs;
  }

  /**
   * A call met trouble.
   * @param attempts that the document has used
   * @param mayBeDown false while it is not known whether the server has ever answered
   */
  troubled(document: number, attempts: number, nowMs: number, mayBeDown: boolean): Trouble {
    const known = this.#cases.get(document) ?? { failures: 0, evidence: 0 };
    this.#cases.set(document, known);
    known.failures += 1;
    // One that has failed while others were answered is suspected itself.
    if (attempts === 0) this.#streak.add(document);
    const wentDown = mayBeDown && this.#state !== 'down' && this.#streak.size >= DOCUMENTS_TO_BE_DOWN;
    if (wentDown) this.#enter('down', nowMs);
    if (this.#state !== 'down') known.evidence += this.#weight();
    const isCharged = known.evidence >= 1;
    if (isCharged) known.evidence -= 1;
    return { isCharged, failures: known.failures, wentDown };
  }

  /** A document that is not tried again needs no memory. */
  forget(document: number): void {
    this.#cases.delete(document);
  }

  /** The part of an attempt that a failure is. */
  #weight(): number {
    const failures = this.#failuresBefore.reduce((sum, each) => sum + each, 0);
    const share = failures / (failures + Math.max(FEWEST_DOCUMENTS, this.#failuresBefore.length));
    return share <= FULL_CHARGE_SHARE ? 1 : Math.log(share) / Math.log(FULL_CHARGE_SHARE);
  }

  #enter(state: 'untried' | 'trying' | 'up' | 'down', nowMs: number): void {
    this.#state = state;
    this.#sinceMs = nowMs;
  }
}
