/**
 * Stops a run whose calls all end in one and the same way, instead of failing a million documents one by one for what
 * is wrong with the run: the address, a parameter, a cap that no answer fits into.
 *
 *   watching ─── an answer, or ends of two sorts ──────────────────▶ over ── many in a row of one sort that is paid ─┐
 *      │ twenty of one sort                                           ▲                                             │
 *      ▼                                                              │ no: the same                                │
 *   suspicious: no new call until the open ones are back ─────────────┘                                             │
 *      └──────── they ended in the same way too ────────────▶ convicted ◀──────────────────────────────────────────┘
 *
 * Refusals come back faster than answers, so the first to return do not speak for those still open. What was paid for is
 * settled as it was judged, whatever follows. What cost nothing is held back while it watches: conviction must leave
 * those documents untouched.
 */
import type { FailureKind, ProviderFailure } from '../core/failure.js';
import { haltsRun, isTrouble } from '../core/retry-decision.js';

export interface EndedCall {
  /** At least one of its documents was answered. */
  readonly isAnswered: boolean;
  /** Null for a good answer, or when no call was made. */
  readonly failure: ProviderFailure | null;
}

export interface GuardReport<Call extends EndedCall> {
  /** To be settled as they were judged. */
  readonly settle: readonly Call[];
  /** To be given back: the run is at fault, not these documents. */
  readonly giveBack: readonly Call[];
  /** Set once: the last call of the series that made it certain. */
  readonly convicted: Conviction<Call> | null;
}

export interface Conviction<Call extends EndedCall> {
  readonly example: Call;
  readonly failure: ProviderFailure;
  /** Calls in a row that ended in this way. */
  readonly calls: number;
}

/** Enough to tell a rule from an accident, few enough to cost next to nothing. */
const CALLS_TO_CONVICT = 20;
/** A run that is shorter than that has ended before; these speak where nothing more can come. */
const CALLS_TO_CONVICT_AT_THE_END = 5;
/** Once something was answered, only so many documents in a row are taken for more than a bad patch of the input. */
const PAID_SERIES_TO_CONVICT = 100;

/** Billed whatever comes of it, so that it is settled at once. */
const PAID: ReadonlySet<FailureKind> = new Set(['bad_output', 'truncated', 'content_filtered', 'refused']);

const ANSWERED = 'answered';

export class Guard<Call extends EndedCall> {
  readonly #isEnabled: boolean;
  #state: 'watching' | 'over' | 'convicted';
  /** How the last calls ended, and how many in a row did. */
  #sort: string | null = null;
  #series = 0;
  /** The last call of the series. */
  #last: Call | null = null;
  #held: Call[] = [];
  /** Calls that were cleared and have not ended. */
  #begun = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(isEnabled: boolean) {
    this.#isEnabled = isEnabled;
    this.#state = isEnabled ? 'watching' : 'over';
  }

  /** Calls whose outcome is held back. */
  get held(): readonly Call[] {
    return this.#held;
  }

  /** All calls so far have ended in one bad way: nobody knows yet whether the run is in order. */
  get isWatching(): boolean {
    return this.#state === 'watching';
  }

  /** Resolves when a new call may be sent; then `add` has to be told how it ended. */
  cleared(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#clear();
    });
  }

  /** @param openCalls calls that have not come back yet, this one not among them */
  add(call: Call, openCalls: number): GuardReport<Call> {
    this.#begun -= 1;
    const found = this.#judge(call, openCalls);
    this.#clear();
    return found;
  }

  #judge(call: Call, openCalls: number): GuardReport<Call> {
    const sort = sortOf(call);
    if (sort === null) return this.#convictIfCertain(openCalls, [call]);
    const isPaid = call.failure === null || PAID.has(call.failure.kind);
    if (this.#state === 'convicted') {
      return report(sort === this.#sort && !isPaid ? { giveBack: [call] } : { settle: [call] });
    }
    const isAlike = this.#sort === null || this.#sort === sort;
    this.#series = isAlike ? this.#series + 1 : 1;
    this.#sort = sort;
    this.#last = call;
    if (this.#state === 'watching') {
      if (sort === ANSWERED || !isAlike) return report({ settle: [...this.#stopWatching(), call] });
      if (!isPaid) this.#held.push(call);
      return this.#convictIfCertain(openCalls, isPaid ? [call] : []);
    }
    const isBad = this.#isEnabled && isPaid && sort !== ANSWERED && this.#series >= PAID_SERIES_TO_CONVICT;
    return isBad ? this.#convict([call]) : report({ settle: [call] });
  }

  /**
   * Nothing more can come before what is held back is settled.
   * @param mayConvict false where the user has asked to stop: then too few may have come to judge
   */
  idle(mayConvict: boolean): GuardReport<Call> {
    const isCertain = mayConvict && this.#held.length >= CALLS_TO_CONVICT_AT_THE_END;
    if (this.#state === 'watching' && isCertain) return this.#convict([]);
    const settle = this.#state === 'watching' ? this.#stopWatching() : [];
    this.#clear();
    return report({ settle });
  }

  /** While it watches, no more calls are open than it takes to convict. */
  #clear(): void {
    while (this.#state !== 'watching' || this.#series + this.#begun < CALLS_TO_CONVICT) {
      const resolve = this.#waiting.shift();
      if (resolve === undefined) return;
      this.#begun += 1;
      resolve();
    }
  }

  get #isSuspicious(): boolean {
    return this.#state === 'watching' && this.#series >= CALLS_TO_CONVICT;
  }

  #convictIfCertain(openCalls: number, settle: readonly Call[]): GuardReport<Call> {
    return this.#isSuspicious && openCalls === 0 ? this.#convict(settle) : report({ settle });
  }

  #convict(settle: readonly Call[]): GuardReport<Call> {
    this.#state = 'convicted';
    const giveBack = this.#takeHeld();
    const example = this.#last;
    if (example === null || example.failure === null) return report({ settle, giveBack });
    return report({
      settle,
      giveBack,
      convicted: { example, failure: example.failure, calls: this.#series },
    });
  }

  #stopWatching(): readonly Call[] {
    this.#state = 'over';
    return this.#takeHeld();
  }

  #takeHeld(): Call[] {
    const held = this.#held;
    this.#held = [];
    return held;
  }
}

/**
 * Null for what says nothing of the run: throttled, interrupted, never sent for what this machine is short of, or handled
 * as the end of a key. Whatever a
 * server does instead of answering is of one sort; other refusals are where their text is the same but for its numbers.
 */
function sortOf({ failure, isAnswered }: EndedCall): string | null {
  if (isAnswered) return ANSWERED;
  if (failure === null || failure.kind === 'rate_limited' || haltsRun(failure.kind)) return null;
  if (failure.shortOf !== undefined) return null;
  const { kind, httpStatus, code, message } = failure;
  if (isTrouble(kind)) return 'trouble';
  if (PAID.has(kind)) return kind;
  return JSON.stringify([kind, httpStatus, code, message.replace(/\d+/g, '#')]);
}

function report<Call extends EndedCall>(found: Partial<GuardReport<Call>>): GuardReport<Call> {
  return { settle: [], giveBack: [], convicted: null, ...found };
}
