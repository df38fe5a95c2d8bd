/**
 * Keeps a lane within a quota that it shares with other senders: asks the row for more when a call waits for it, gives back
 * what others wait for, and holds the pauses that others were asked for. It says what the limiter may use; the limiter
 * says what it needs.
 */
import { type Clock, WOKEN } from '../core/clock.js';
import { LlmBatchError } from '../core/errors.js';
import type { Limiter, LimiterSnapshot, Share } from '../limiter/limiter.js';
import { mapAmounts, NO_AMOUNTS, QUOTA_LEASE_MS, type QuotaAmounts } from '../limiter/shared-quota.js';
import type { QuotaStore } from '../store/quota-store.js';

export interface LaneQuotaOptions {
  readonly store: QuotaStore;
  /** Who is called with which key for which models, as a digest: the same for all that share the quota. */
  readonly lane: string;
  /** Another for every lane of every process. */
  readonly sender: string;
  readonly limiter: Limiter;
  readonly clock: Clock;
}

const QUESTIONS_PER_LEASE = 3;
/** What leaves the windows of all, while some wait, goes round this often. */
const WAITING_MS = 200;

export class LaneQuota {
  readonly #options: LaneQuotaOptions;
  readonly #listeners = new Set<() => void>();
  readonly #ended = new AbortController();
  #earlier = NO_AMOUNTS;
  #has = NO_AMOUNTS;
  #share: Share = { ...NO_AMOUNTS, fromMs: 0, untilMs: Number.NEGATIVE_INFINITY };
  #wants: QuotaAmounts | null = null;
  #isContended = false;
  #isRefused = false;
  #sleeping: AbortController | null = null;
  #keeping: Promise<void> = Promise.resolve();

  /** Until `begin` nothing is sent. */
  constructor(options: LaneQuotaOptions) {
    this.#options = options;
    options.limiter.setShare(this.#share, options.clock.monotonicMs());
  }

  /** @param earlier what was sent in the last windows, by whomever: of use where nobody has written the row so far */
  begin(earlier: QuotaAmounts): void {
    this.#earlier = earlier;
    this.#keeping = this.#keep();
  }

  /** A call waits for so much more. */
  want(amounts: QuotaAmounts): void {
    this.#wants = amounts;
    // One that was refused asks again when its time has come.
    if (!this.#isRefused) this.#sleeping?.abort(WOKEN);
  }

  /** Calls back when the share has changed. @returns stops listening */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Gives back what was not used. Nothing is sent any more. */
  async end(): Promise<void> {
    this.#ended.abort(WOKEN);
    this.#sleeping?.abort(WOKEN);
    await this.#keeping;
    this.#isContended = true;
    this.#wants = null;
    // Where it cannot be told, the lease tells it.
    await this.#ask(0).catch(() => undefined);
  }

  async #keep(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#ended.signal.aborted) {
      await this.#ask(QUOTA_LEASE_MS).catch((error: unknown) => {
        // What it keeps it may go on with until its lease ends; whatever is wrong, the drain hears of it by its own writes.
        this.#isRefused = true;
        if (!(error instanceof LlmBatchError)) throw error;
      });
      const isHurried = this.#isRefused || this.#isContended;
      this.#sleeping = new AbortController();
      if (this.#ended.signal.aborted || (this.#wants !== null && !isHurried)) continue;
      await clock.sleep(isHurried ? WAITING_MS : QUOTA_LEASE_MS / QUESTIONS_PER_LEASE, this.#sleeping.signal);
      this.#sleeping = null;
    }
  }

  async #ask(leaseMs: number): Promise<void> {
    const { store, lane, sender, limiter, clock } = this.#options;
    const askedAtMs = clock.monotonicMs();
    const { windowMs, pause, pausedForMs, ...now } = limiter.snapshot(askedAtMs);
    const used = usedOf(now);
    const limits = {
      requests: now.requestsPerMinute,
      tokens: now.tokensPerMinute,
      requestsPerDay: now.requestsPerDay,
    };
    // What is given back must not be used while it is.
    const givesBack = this.#isContended || askedAtMs > this.#share.untilMs;
    if (givesBack) this.#setShare({ ...this.#share, ...used }, askedAtMs);
    const wants = this.#wants;
    const answer = await store.ask(lane, {
      sender,
      keeps: givesBack ? used : mapAmounts((amount) => Math.max(used[amount], this.#has[amount])),
      wants,
      limits,
      // That a server does not answer one machine says nothing of the others.
      pausedForMs: pause?.reason === 'rate' ? pausedForMs : 0,
      ...{ leaseMs, windowMs, earlier: this.#earlier },
    });
    this.#has = answer.has;
    this.#isContended = answer.isContended;
    this.#isRefused = !answer.isGranted;
    if (answer.isGranted && this.#wants === wants) this.#wants = null;
    const nowMs = clock.monotonicMs();
    this.#setShare(
      {
        // Where there is no limit there is nothing to share.
        ...mapAmounts((amount) => (limits[amount] === null ? Number.POSITIVE_INFINITY : answer.has[amount])),
        fromMs: nowMs + answer.pausedForMs,
        untilMs: askedAtMs + leaseMs,
      },
      nowMs,
    );
    for (const listener of this.#listeners) listener();
  }

  #setShare(share: Share, nowMs: number): void {
    this.#share = share;
    this.#options.limiter.setShare(share, nowMs);
  }
}

function usedOf(snapshot: Pick<LimiterSnapshot, 'requestsInWindow' | 'tokensInWindow' | 'requestsInDay'>) {
  const { requestsInWindow, tokensInWindow, requestsInDay } = snapshot;
  return { requests: requestsInWindow, tokens: tokensInWindow, requestsPerDay: requestsInDay };
}
