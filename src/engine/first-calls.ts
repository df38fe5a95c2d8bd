/**
 * Looks at the first calls of a drain. When all of them fail in one and the same way, something about the run is
 * wrong (the address, the model, a parameter), and a million documents are not failed one by one for it.
 *
 *   watching ─────a success, or failures of two sorts─────▶ over (what was held back counts as it was judged)
 *      │ enough failures of one sort                          ▲
 *      ▼                                                      │ the same
 *   suspicious: no new call until the open ones are back ─────┘
 *      └──────── they failed in the same way too ────────▶ convicted (what was held back goes back unharmed)
 *
 * Refusals come back faster than answers, so the first few to return do not speak for those still open. While it
 * watches, outcomes of failed calls are held back: conviction must leave those documents untouched.
 */
import type { FailureKind, ProviderFailure } from '../core/failure.js';
import type { TaskOutcome } from '../store/store.js';

export interface JudgedCall {
  readonly outcome: TaskOutcome;
  /** Null for a good answer, or when no call was made. */
  readonly failure: ProviderFailure | null;
}

export interface WatchReport<Call extends JudgedCall> {
  /** To be settled as they were judged. */
  readonly settle: readonly Call[];
  /** To be given back: the run is at fault, not these documents. */
  readonly giveBack: readonly Call[];
  /** Set once, by the call that made it certain. */
  readonly convicted: ProviderFailure | null;
}

/** Enough to tell a rule from an accident, few enough to cost next to nothing. */
const FAILURES_TO_CONVICT = 5;

/**
 * Kinds that may be the run's fault. An overloaded or silent server heals by itself; content filters, refusals and
 * lengths are each document's own.
 */
const SUSPICIOUS: ReadonlySet<FailureKind> = new Set(['network', 'invalid_request', 'bad_output']);

export class FirstCalls<Call extends JudgedCall> {
  #state: 'watching' | 'over' | 'convicted';
  #sort = '';
  #held: Call[] = [];
  readonly #waiting: (() => void)[] = [];

  constructor(enabled: boolean) {
    this.#state = enabled ? 'watching' : 'over';
  }

  /** Calls whose outcome is held back. */
  get heldCount(): number {
    return this.#held.length;
  }

  /** Resolves when a new call may be sent; at once unless there is a suspicion. */
  cleared(): Promise<void> {
    if (!this.#isSuspicious) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** @param openCalls calls that have not come back yet, this one not among them */
  add(call: Call, openCalls: number): WatchReport<Call> {
    const sort = sortOf(call.failure);
    if (this.#state === 'convicted' && sort === this.#sort) return report({ giveBack: [call] });
    const isEvidence = this.#state === 'watching' && !isNoEvidence(call);
    if (isEvidence && (sort === null || (this.#held.length > 0 && sort !== this.#sort))) {
      return report({ settle: [...this.end(), call] });
    }
    if (isEvidence && sort !== null) {
      this.#sort = sort;
      this.#held.push(call);
    }
    const settle = isEvidence ? [] : [call];
    const last = this.#held.at(-1);
    if (!this.#isSuspicious || openCalls > 0 || last === undefined) return report({ settle });
    this.#state = 'convicted';
    return report({ settle, giveBack: this.#takeHeld(), convicted: last.failure });
  }

  /** Stops watching: there is nothing more to come. @returns what was held back, to be settled as it was judged */
  end(): readonly Call[] {
    if (this.#state === 'watching') this.#state = 'over';
    return this.#takeHeld();
  }

  get #isSuspicious(): boolean {
    return this.#state === 'watching' && this.#held.length >= FAILURES_TO_CONVICT;
  }

  #takeHeld(): Call[] {
    const held = this.#held;
    this.#held = [];
    for (const resolve of this.#waiting.splice(0)) resolve();
    return held;
  }
}

/** Throttled, interrupted or never sent: says nothing for or against the run. */
function isNoEvidence({ outcome, failure }: JudgedCall): boolean {
  return outcome.action === 'released' || (failure === null && outcome.action !== 'completed');
}

/** Failures with the same text but for its numbers are of one sort. Null where a failure is no suspicion. */
function sortOf(failure: ProviderFailure | null): string | null {
  if (failure === null || !SUSPICIOUS.has(failure.kind)) return null;
  const { kind, httpStatus, code, message } = failure;
  return JSON.stringify([kind, httpStatus, code, message.replace(/\d+/g, '#')]);
}

function report<Call extends JudgedCall>(found: Partial<WatchReport<Call>>): WatchReport<Call> {
  return { settle: [], giveBack: [], convicted: null, ...found };
}
