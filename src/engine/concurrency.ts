/**
 * How many calls to keep open where the user leaves it to the program. It tries other numbers of open calls and
 * keeps what is worth more: answers per second, less the calls per second that the server could not cope with.
 * Beyond what it can work on side by side, more open calls only wait longer, or are turned away. Where calls fail
 * whatever their number, they make every number worth less alike, and decide nothing.
 *
 *   trying: a factor of the best limit ── it pays off ──▶ the new best; the same factor again
 *     ▲  ▲                             ── it does not ──▶ back to the best; the next factor, or steady
 *     │  │
 *     │  └── fewer and slower answers than before: smaller limits first ── steady ──┐
 *     └───── after a while, later each time that more were turned away ──────── ───┘
 *
 * A limit is measured once its own calls come in (one latency after the change), over two latencies at least and
 * more answers the smaller the step, so that chance does not decide. What was measured while something else held
 * the calls back (rate limits, a pause, the end of the input) says nothing of the limit, which stays.
 */
export interface ConcurrencyController {
  /**
   * A call has ended.
   * @param ok false when it brought no answer: overloaded, timed out
   */
  observe(latencyMs: number, ok: boolean, nowMs: number): void;
  /** Calls to keep open now. */
  limit(): number;
}

export interface ConcurrencyOptions {
  readonly initial?: number;
  readonly least?: number;
  readonly most?: number;
}

export function createConcurrencyController(options: ConcurrencyOptions = {}): ConcurrencyController {
  return new ThroughputClimber(options.initial ?? 8, options.least ?? 1, options.most ?? 512);
}

/** A factor to try, and the calls that its measurement takes for each open one. */
interface Trial {
  readonly factor: number;
  readonly callsEach: number;
}

/** What one limit brought. */
interface Measured {
  readonly limit: number;
  readonly calls: number;
  readonly worthPerMs: number;
  readonly failedShare: number;
  readonly latencyMs: number;
}

class ThroughputClimber implements ConcurrencyController {
  readonly #least: number;
  readonly #most: number;
  #limit: number;
  /** The best limit so far; null: the present one is yet to be measured. */
  #best: Measured | null = null;
  #trials: readonly Trial[] = FROM_THE_START;
  /** Back at the best limit after a trial that failed, to measure it anew before the next one. */
  #returning = false;
  #steadyMeasurements = 0;
  #rest = 1;
  #changedAtMs: number | null = null;
  #measurement: { readonly fromMs: number; calls: number; failed: number; latencySumMs: number } | null =
    null;
  #latencyMs: number | null = null;

  constructor(initial: number, least: number, most: number) {
    this.#least = least;
    this.#most = most;
    this.#limit = Math.min(most, Math.max(least, initial));
  }

  limit(): number {
    return this.#limit;
  }

  observe(latencyMs: number, ok: boolean, nowMs: number): void {
    this.#changedAtMs ??= nowMs - latencyMs;
    this.#latencyMs ??= latencyMs;
    if (nowMs < this.#changedAtMs + this.#latencyMs) return;
    if (this.#measurement === null) {
      this.#measurement = { fromMs: nowMs, calls: 0, failed: 0, latencySumMs: 0 };
      return;
    }
    const measurement = this.#measurement;
    measurement.calls += 1;
    measurement.latencySumMs += latencyMs;
    if (!ok) measurement.failed += 1;
    const { calls, failed, latencySumMs } = measurement;
    const lengthMs = Math.max(1, nowMs - measurement.fromMs);
    const worthPerMs = (calls - 2 * failed) / lengthMs;
    if (lengthMs < (LATENCIES_MEASURED * latencySumMs) / calls) return;
    if (calls < this.#callsNeeded && !this.#muchWorse(worthPerMs, calls)) return;
    this.#measurement = null;
    this.#latencyMs = latencySumMs / calls;
    // As many as this were open on average (Little, 1961).
    if (latencySumMs / lengthMs < FULL * this.#limit) return;
    this.#decide({
      limit: this.#limit,
      calls,
      worthPerMs,
      failedShare: failed / calls,
      latencyMs: latencySumMs / calls,
    });
    this.#tryNext(nowMs);
  }

  get #callsNeeded(): number {
    const callsEach = this.#trials[0]?.callsEach ?? STEADY_CALLS_EACH;
    return callsEach * Math.max(FEWEST_CALLS, this.#limit);
  }

  /** Plain enough to decide upon before all calls needed have ended. */
  #muchWorse(worthPerMs: number, calls: number): boolean {
    return calls >= FEWEST_CALLS && this.#best !== null && worthPerMs < MUCH_LESS * this.#best.worthPerMs;
  }

  #decide(measured: Measured): void {
    const best = this.#best;
    this.#returning = false;
    if (best === null) {
      this.#best = measured;
    } else if (
      measured.worthPerMs < LESS_WORTH * best.worthPerMs &&
      measured.latencyMs > SLOWER * best.latencyMs
    ) {
      this.#failed(measured, best);
    } else if (measured.limit === best.limit) {
      this.#best = together(best, measured);
      if (this.#trials.length === 0) this.#staySteady();
    } else if (measured.limit < best.limit ? !paysOff(best, measured) : paysOff(measured, best)) {
      this.#best = measured;
      if (this.#trials[0] === A_LITTLE_MORE) this.#trials = [MORE, ...this.#trials];
    } else {
      this.#failed(measured, best);
    }
  }

  #failed(measured: Measured, best: Measured): void {
    const moreFailed = measured.failedShare > MORE_FAILED * best.failedShare;
    if (moreFailed) this.#rest = Math.min(LONGEST_REST, this.#rest * 2);
    const isOverloaded = moreFailed && measured.limit > best.limit;
    if (
      !isOverloaded &&
      (measured.limit === best.limit || measured.worthPerMs < MUCH_LESS * best.worthPerMs)
    ) {
      // The server itself has become slower: what was the best is no measure any more.
      this.#best = measured;
      this.#trials = WHEN_SLOWER;
    } else {
      this.#trials = this.#trials.slice(1);
      this.#returning = true;
    }
  }

  #staySteady(): void {
    this.#steadyMeasurements += 1;
    if (this.#steadyMeasurements < STEADY_MEASUREMENTS * this.#rest) return;
    this.#steadyMeasurements = 0;
    this.#trials = NOW_AND_THEN;
  }

  /** Sets the limit that the next trial asks for; after one that failed, first the best again, to measure it as long. */
  #tryNext(nowMs: number): void {
    const best = this.#best?.limit ?? this.#limit;
    let next = best;
    while (next === best && !this.#returning && this.#trials[0] !== undefined) {
      const wanted = best * this.#trials[0].factor;
      next = this.#within(wanted > best ? Math.max(best + 1, wanted) : Math.min(best - 1, wanted));
      if (next === best) this.#trials = this.#trials.slice(1);
    }
    if (next !== this.#limit) this.#change(next, nowMs);
  }

  #change(limit: number, nowMs: number): void {
    this.#limit = limit;
    this.#changedAtMs = nowMs;
    this.#measurement = null;
  }

  #within(limit: number): number {
    return Math.min(this.#most, Math.max(this.#least, Math.round(limit)));
  }
}

const DOUBLE: Trial = { factor: 2, callsEach: 2 };
const MORE: Trial = { factor: 1.4, callsEach: 4 };
const A_LITTLE_MORE: Trial = { factor: 1.15, callsEach: 12 };
const A_LITTLE_LESS: Trial = { factor: 0.87, callsEach: 12 };
const SLIGHTLY_MORE: Trial = { factor: 1.07, callsEach: 16 };
const SLIGHTLY_LESS: Trial = { factor: 0.93, callsEach: 16 };
const LESS: Trial = { factor: 0.6, callsEach: 3 };

const FROM_THE_START = [DOUBLE, MORE, A_LITTLE_MORE, A_LITTLE_LESS, SLIGHTLY_MORE, SLIGHTLY_LESS];
// More comes last, to go back up at once where less was only taken for as good.
const NOW_AND_THEN = [A_LITTLE_LESS, A_LITTLE_MORE];
const WHEN_SLOWER = [LESS, A_LITTLE_LESS, A_LITTLE_MORE];

const STEADY_CALLS_EACH = 4;
/** Few open calls are measured as long as this many. */
const FEWEST_CALLS = 10;
const LATENCIES_MEASURED = 2;
/** Open calls come and go; where fewer of the limit than this are open, it is not what holds the calls back. */
const FULL = 0.8;
const STEADY_MEASUREMENTS = 30;
/** Each attempt that more failed in makes the next one come twice as late, up to this. */
const LONGEST_REST = 16;
const MORE_FAILED = 1.5;
const LESS_WORTH = 0.9;
const SLOWER = 1.3;
const MUCH_LESS = 0.5;
/** What was measured longer ago than so many answers counts for no more than they. */
const CALLS_REMEMBERED = 2_000;

/**
 * The share of a larger limit that has to arrive as more answers. Where each open call more slows all others
 * down, this stops at nine tenths of what the server could ever give, at a fraction of the open calls.
 */
const GAIN_NEEDED = 0.07;

/** Two measurements of one limit as one, so that luck wears off. */
function together(before: Measured, now: Measured): Measured {
  const callsBefore = Math.min(before.calls, CALLS_REMEMBERED);
  const calls = callsBefore + now.calls;
  const mean = (one: number, other: number): number => (one * callsBefore + other * now.calls) / calls;
  return {
    limit: now.limit,
    calls,
    failedShare: mean(before.failedShare, now.failedShare),
    worthPerMs: mean(before.worthPerMs, now.worthPerMs),
    latencyMs: mean(before.latencyMs, now.latencyMs),
  };
}

function paysOff(more: Measured, less: Measured): boolean {
  const growth = more.limit / less.limit - 1;
  return more.worthPerMs >= less.worthPerMs * (1 + GAIN_NEEDED * growth);
}
