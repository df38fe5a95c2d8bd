import type { RefusalReason } from './reservation.js';

/**
 * The pace learnt from refusals. A server may enforce its minute over a shorter time (600 a minute as ten a
 * second), allow less than was declared, or not say what it allows. Calls spread evenly over time fit every
 * window, however short, so its length need not be found out: only whether to spread, and how fast.
 *
 *            refused within the limits           no refusal for a while
 *     free ───────────────────────────▶ holding ───────────────────────▶ growing, in steps that double,
 *      ▲                                 ▲  │  ▲                          the ceiling one step behind
 *      │                                 └──┘  │ refused: back to the        │
 *      │   refused: a lower ceiling, twice     │ ceiling, hold twice         │
 *      │   the cut of the last time            │ as long                     │
 *      │                                       └─────────────────────────────┤
 *      └─────────────────────────────────────────────────────────────────────┘
 *        after long at full speed: larger and larger bursts on trial (the next trial later if one is
 *        refused), then free; or free because the pace is faster than anyone asks
 *
 * Nothing oscillates: each refusal puts the next attempt to grow, or to go without spreading, further off.
 *
 * The pace counts in shares of full speed, which is the limits in force; where none is known, what the server
 * had let in when it first refused stands in for them.
 */
export class Pace {
  #spread: Spread | null = null;
  #refusal: Refusal | null = null;
  #lastRefusalAtMs = Number.NEGATIVE_INFINITY;
  #trialMs = FIRST_TRIAL_MS;
  #trialSinceMs: number | null = null;

  /** The share of full speed at which calls are spread; null: they are not. */
  get share(): number | null {
    return this.#spread?.share ?? null;
  }

  /** Full speed in requests per millisecond where no limit is known. */
  get assumedRequestsPerMs(): number | null {
    return this.#spread?.assumedRequestsPerMs ?? null;
  }

  readyAtMs(nowMs: number): number {
    return Math.max(nowMs, this.#spread?.nextAtMs ?? nowMs);
  }

  /** A call was let go that takes `spanMs` of the lane's time at full speed. */
  spend(spanMs: number, nowMs: number): void {
    const spread = this.#spread;
    if (spread === null) return;
    const spacingMs = Math.min(spanMs / spread.share, Math.max(spanMs, LONGEST_SPACING_MS));
    spread.nextAtMs = Math.max(spread.nextAtMs, nowMs - spread.catchUpMs) + spacingMs;
    spread.spacingMs = spacingMs;
  }

  /** A call took this much less of the lane's time than was spent for it. */
  giveBack(spanMs: number): void {
    if (this.#spread !== null) this.#spread.nextAtMs -= spanMs / this.#spread.share;
  }

  /** The server's window is known to be shorter than a minute: spread from the start, and for good. */
  keepSpread(nowMs: number): void {
    this.#spread ??= holding(FULL_SHARE, null, nowMs, WAYS.rate);
    this.#trialMs = Number.POSITIVE_INFINITY;
  }

  /**
   * A call that was within the limits was refused. Takes effect at the next `advance` after the pause, when the
   * other refusals of its burst have come in too. Refusals of calls sent before the last one count once.
   */
  refused(refusal: Refusal): void {
    if (this.#refusal !== null || refusal.sentAtMs <= this.#lastRefusalAtMs) return;
    this.#lastRefusalAtMs = refusal.atMs;
    this.#refusal = refusal;
  }

  /**
   * Brings the pace up to `nowMs`. Call while no pause holds.
   * @param flowing false while the lane starts again after a pause: that time proves no pace
   */
  advance(lane: LaneFacts, flowing: boolean, nowMs: number): void {
    if (this.#spread !== null && this.#spread.assumedRequestsPerMs !== null && lane.limited) {
      this.#spread = holding(FULL_SHARE, null, nowMs, this.#spread.way);
    }
    if (this.#refusal !== null) {
      this.#slowDown(this.#refusal, lane, nowMs);
      this.#refusal = null;
    }
    if (this.#trialSinceMs !== null && nowMs >= this.#trialSinceMs + this.#trialMs) {
      this.#trialSinceMs = null;
      this.#trialMs = FIRST_TRIAL_MS;
    }
    if (this.#spread === null) return;
    if (!flowing) this.#spread.phaseStartedAtMs = nowMs;
    else if (nowMs >= this.#phaseEndsAtMs(this.#spread, lane)) this.#grow(this.#spread, lane, nowMs);
  }

  #slowDown(refusal: Refusal, lane: LaneFacts, nowMs: number): void {
    const way = WAYS[refusal.reason];
    const spread = this.#spread;
    if (spread === null) {
      if (this.#trialSinceMs !== null) this.#trialMs = Math.min(LONGEST_TRIAL_MS, this.#trialMs * 2);
      this.#trialSinceMs = null;
      this.#spread = this.#firstSpread(refusal, lane, nowMs);
      return;
    }
    spread.way = way;
    if (spread.burstCalls > 0) {
      this.#trialMs = Math.min(LONGEST_TRIAL_MS, this.#trialMs * 2);
      spread.burstCalls = 0;
      spread.catchUpMs = CATCH_UP_MS;
      spread.phaseStartedAtMs = nowMs;
      return;
    }
    if (spread.share > spread.ceiling) {
      spread.holdMs = Math.min(LONGEST_HOLD_MS, spread.holdMs * 2);
    } else if (refusal.longStorm) {
      // Refused for long and soon again: a long window is full, and what it let in over a minute is its limit.
      const letIn = lane.letInPerMs(LONG_SPAN_MS, refusal.atMs).share;
      spread.ceiling = Math.min(spread.ceiling * (1 - way.cut), Math.max(spread.ceiling / 2, letIn));
    } else {
      spread.ceiling *= 1 - spread.cut;
      spread.cut = Math.min(DEEPEST_CUT, spread.cut * 2);
    }
    // A limit would refuse more at this pace: who lets nearly all in is not slowed down further.
    const chance = refusal.rare && (lane.limited || refusal.reason !== 'rate');
    spread.ceiling = Math.max(chance ? Math.min(spread.share, RARE_SHARE) : LOWEST_SHARE, spread.ceiling);
    spread.share = spread.ceiling;
    spread.step = way.step;
    spread.phaseStartedAtMs = nowMs;
    spread.phaseMs = Math.max(way.holdMs, spread.holdMs);
  }

  #firstSpread(refusal: Refusal, lane: LaneFacts, nowMs: number): Spread | null {
    const letIn = lane.letInPerMs(SHORT_SPAN_MS, refusal.atMs);
    const way = WAYS[refusal.reason];
    if (lane.limited) {
      const share = refusal.reason === 'rate' ? FULL_SHARE : (1 - way.cut) * letIn.share;
      return holding(Math.min(FULL_SHARE, Math.max(LOWEST_FIRST_SHARE, share)), null, nowMs, way);
    }
    if (letIn.requests * SHORT_SPAN_MS < CALLS_TO_JUDGE_BY) return null;
    const share = refusal.reason === 'rate' ? 1 : 1 - way.cut;
    return holding(share, letIn.requests, nowMs, refusal.reason === 'rate' ? DISCOVERY : way);
  }

  /** A few calls ahead of the pace, then more, so that a server that minds refuses few. */
  #tryBurst(spread: Spread, nowMs: number): void {
    spread.burstCalls = spread.burstCalls === 0 ? FIRST_BURST_CALLS : spread.burstCalls * BURST_GROWTH;
    spread.catchUpMs = spread.burstCalls * spread.spacingMs;
    spread.nextAtMs = nowMs - spread.catchUpMs;
    spread.phaseStartedAtMs = nowMs;
    if (spread.catchUpMs >= LONG_SPAN_MS) this.#stopSpreading(nowMs);
  }

  #stopSpreading(nowMs: number): void {
    this.#spread = null;
    this.#trialSinceMs = nowMs;
  }

  #phaseEndsAtMs(spread: Spread, lane: LaneFacts): number {
    const atFullSpeed = lane.limited && spread.share >= FULL_SHARE;
    const atFullSpeedMs = spread.burstCalls > 0 ? TRIAL_STEP_MS : this.#trialMs;
    return spread.phaseStartedAtMs + (atFullSpeed ? atFullSpeedMs : spread.phaseMs);
  }

  #grow(spread: Spread, lane: LaneFacts, nowMs: number): void {
    spread.cut = spread.way.cut;
    const full = lane.limited ? FULL_SHARE : Number.POSITIVE_INFINITY;
    const spanMs = Math.min(SHORT_SPAN_MS, nowMs - spread.phaseStartedAtMs);
    const nobodyAsks = !lane.limited && spread.share > 2 * lane.letInPerMs(spanMs, nowMs).share;
    if (spread.share >= full) {
      this.#tryBurst(spread, nowMs);
      return;
    }
    if (nobodyAsks) {
      this.#stopSpreading(nowMs);
      return;
    }
    if (spread.share > spread.ceiling) spread.ceiling = spread.share;
    spread.share = Math.min(full, spread.share + spread.step);
    spread.step *= 2;
    spread.phaseStartedAtMs = nowMs;
    spread.phaseMs = spread.way.stepMs;
    if (spread.share >= full) spread.holdMs = spread.way.holdMs;
  }
}

export interface Refusal {
  readonly atMs: number;
  readonly sentAtMs: number;
  readonly reason: Exclude<RefusalReason, 'unreachable'>;
  /** The storm it belongs to, or one that ended less than a minute before, had refused several probes. */
  readonly longStorm: boolean;
  /** The server lets nearly everything in all the same. */
  readonly rare: boolean;
}

/** What the pace has to know of its lane. */
export interface LaneFacts {
  /** Whether a limit is in force. */
  readonly limited: boolean;
  /** What the server let in over the time before a moment: requests per millisecond, and as a share of full speed. */
  letInPerMs(spanMs: number, untilMs: number): { readonly requests: number; readonly share: number };
}

interface Spread {
  share: number;
  /** The highest share that held, as far as is known. */
  ceiling: number;
  readonly assumedRequestsPerMs: number | null;
  way: Way;
  nextAtMs: number;
  /** Between the last two calls. */
  spacingMs: number;
  /** How much of the time that went by unused may be made up for. */
  catchUpMs: number;
  /** Calls let go ahead of the pace on trial; 0: no trial. */
  burstCalls: number;
  /** Of holding, or of one step of growing. */
  phaseStartedAtMs: number;
  phaseMs: number;
  holdMs: number;
  cut: number;
  step: number;
}

/** How a kind of refusal is answered. */
interface Way {
  readonly cut: number;
  readonly holdMs: number;
  readonly stepMs: number;
  readonly step: number;
}

const WAYS: Readonly<Record<Exclude<RefusalReason, 'unreachable'>, Way>> = {
  // A quota does not change by itself: small cuts, since each costs throughput for long, and slow growth.
  rate: { cut: 0.02, holdMs: 30_000, stepMs: 30_000, step: 0.01 },
  // Capacity comes back by itself: deeper cuts, quicker growth.
  slow_down: { cut: 0.25, holdMs: 10_000, stepMs: 10_000, step: 0.03 },
  overload: { cut: 0.25, holdMs: 5_000, stepMs: 5_000, step: 0.05 },
};

/** No limit is known and the first guess was taken from a burst: look for the next refusal soon. */
const DISCOVERY: Way = { cut: 0.02, holdMs: 5_000, stepMs: 5_000, step: 0.1 };

/** Of the declared limit: spread calls still reach the server a few milliseconds early or late. */
const FULL_SHARE = 0.98;
const DEEPEST_CUT = 0.3;
const LOWEST_SHARE = 0.01;
/** Refusals that are rare slow the lane down to this and no further. */
const RARE_SHARE = 0.25;
/** The first refusal may follow a burst after a lull, so that what was let in just before says little. */
const LOWEST_FIRST_SHARE = 0.25;
const LONGEST_HOLD_MS = 15 * 60_000;
const FIRST_TRIAL_MS = 5 * 60_000;
const LONGEST_TRIAL_MS = 4 * 60 * 60_000;
const TRIAL_STEP_MS = 10_000;
const FIRST_BURST_CALLS = 10;
const BURST_GROWTH = 4;
/** A timer that fired late may be made up for by so much; more would be a burst. */
const CATCH_UP_MS = 10;
/** However slow the pace, a server is asked this often. */
const LONGEST_SPACING_MS = 3_000;
const SHORT_SPAN_MS = 10_000;
const LONG_SPAN_MS = 60_000;
/** Fewer calls let in say nothing of a server's limits; the restart after the pause goes by its own pace then. */
const CALLS_TO_JUDGE_BY = 20;

function holding(share: number, assumedRequestsPerMs: number | null, nowMs: number, way: Way): Spread {
  return {
    share,
    ceiling: share,
    assumedRequestsPerMs,
    way,
    nextAtMs: nowMs,
    spacingMs: 0,
    catchUpMs: CATCH_UP_MS,
    burstCalls: 0,
    phaseStartedAtMs: nowMs,
    phaseMs: way.holdMs,
    holdMs: way.holdMs,
    cut: way.cut,
    step: way.step,
  };
}
