/**
 * What a run may spend. The most that a call could cost is set aside before it is sent, so that calls that are open
 * at the same time cannot pass the cap together; what it did cost replaces that when it is known.
 *
 *   fits ────────────────────────────────────────────▶ granted
 *   does not fit, open calls hold money back ────────▶ waits: they may cost less than was set aside
 *   does not fit, nothing is open any more ──────────▶ exhausted: the run stops, and goes on under a higher cap
 */

export interface Spending {
  readonly costMicroUsd: number;
  readonly tokens: number;
}

export interface BudgetLimits {
  /** Null: no cap. */
  readonly maxCostMicroUsd: number | null;
  readonly maxTokens: number | null;
}

/** What there is not enough of for another call. */
export type Lacking = 'cost' | 'tokens';

export type BudgetAnswer = 'granted' | 'closed' | { readonly exhausted: Lacking };

interface Waiter {
  readonly most: Spending;
  readonly resolve: (answer: BudgetAnswer) => void;
}

export class Budget {
  readonly #limits: BudgetLimits;
  readonly #waiters: Waiter[] = [];
  #spent: Spending;
  #setAside: Spending = { costMicroUsd: 0, tokens: 0 };
  #open = 0;
  #closed = false;

  /** @param spent by this run so far, earlier processes included */
  constructor(limits: BudgetLimits, spent: Spending) {
    this.#limits = limits;
    this.#spent = spent;
  }

  get spent(): Spending {
    return this.#spent;
  }

  /** @param most the most that the call could be billed */
  admit(most: Spending): Promise<BudgetAnswer> {
    return new Promise((resolve) => {
      this.#waiters.push({ most, resolve });
      this.#serve();
    });
  }

  /** Sets the most that a batch could be billed aside, without asking whether it fits. */
  setAside(most: Spending): void {
    this.#open += 1;
    this.#setAside = plus(this.#setAside, most);
  }

  /** @param actual what the call was billed; what was set aside where that is not known */
  settle(most: Spending, actual: Spending): void {
    this.#open -= 1;
    this.#setAside = minus(this.#setAside, most);
    this.#spent = plus(this.#spent, actual);
    this.#serve();
  }

  /** Sends everybody back who waits. */
  close(): void {
    this.#closed = true;
    this.#serve();
  }

  #serve(): void {
    for (;;) {
      const first = this.#waiters[0];
      if (first === undefined) return;
      const lacking = this.lacking(first.most);
      if (!this.#closed && lacking !== null && this.#open > 0) return;
      this.#waiters.shift();
      if (this.#closed) first.resolve('closed');
      else if (lacking === null) {
        this.setAside(first.most);
        first.resolve('granted');
      } else first.resolve({ exhausted: lacking });
    }
  }

  /** @returns what there is not enough of for this much more; null: it fits */
  lacking(most: Spending): Lacking | null {
    const { maxCostMicroUsd, maxTokens } = this.#limits;
    const total = plus(plus(this.#spent, this.#setAside), most);
    if (maxCostMicroUsd !== null && total.costMicroUsd > maxCostMicroUsd) return 'cost';
    return maxTokens !== null && total.tokens > maxTokens ? 'tokens' : null;
  }
}

export function plus(one: Spending, other: Spending): Spending {
  return { costMicroUsd: one.costMicroUsd + other.costMicroUsd, tokens: one.tokens + other.tokens };
}

function minus(one: Spending, other: Spending): Spending {
  return { costMicroUsd: one.costMicroUsd - other.costMicroUsd, tokens: one.tokens - other.tokens };
}
