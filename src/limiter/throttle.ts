import type { Random } from '../core/clock.js';
import { Bound, FIRST_HOLD_MS, LONGEST_STEP, SHORTEST_STEP } from './bound.js';
import { type Call, type Epoch, RecentCalls } from './recent-calls.js';
import type { RefusalReason } from './reservation.js';

/**
 * What a lane does about refusals. A slow-down is a question: are fewer refused at the lower speed? If so the speed
 * was the cause; if not, the server refuses by chance, and the lane goes back to where it was. Chance may lower the
 * share for a while: a lower speed that was kept is given up as soon as as many are refused at it after all. Until
 * enough calls have answered, only the document that was refused waits.
 *
 *                       refused more than is known of this server
 *   ┌─▶ flowing, steady ─────────────────────────────▶ flowing, slower: at what was let in
 *   │     │  ▲  ▲                                        │   as many are refused: back to the speed of before, and
 *   │     │  │  └────────────────────────────────────────┘   that share is known now; fewer: this speed is kept
 *   │     │  │
 *   │     │  └── as few are refused: kept, next a larger step; or more: back, next a smaller step, or a longer wait
 *   │     ▼                                                        │
 *   │   flowing, faster: a step more of what holds the calls back ─┘   (free when nothing holds them back any more)
 *   │
 *   │   most of the last calls refused, or the server does not answer (from anywhere)
 *   │     ▼
 *   │   paused ── the pause ends ──▶ probing: one call ── it was let in ──▶ ramping: one call per spacing,
 *   │     ▲                            │ refused: a longer pause             │ which halves as calls succeed
 *   │     └────────────────────────────┴──────── refused again ──────────────┤
 *   └────────────────────────────────────────────────────────────────────────┘ the spacing is too short to matter
 *
 * Speed has two bounds: the pace (work per millisecond, spread evenly, so that it fits every window, however short)
 * and the number of open calls (which is what a server with so many slots minds). Both fall together to what was let
 * in, and rise one at a time, the one that holds the calls back. Work is the time that a call takes at the limits in
 * force, so that a pace of 1 uses them in full; where no limit is known, work counts requests.
 */
export class Throttle {
  readonly #random: Random;
  readonly #recent = new RecentCalls();
  #state: 'flowing' | 'paused' | 'probing' | 'ramping' = 'flowing';
  #question: 'none' | 'slower' | 'faster' = 'none';

  #limited = false;
  /** Work per millisecond. */
  readonly #pace = new Bound(0);
  readonly #openCalls = new Bound(1);
  /** What the lane is faster by, on trial. */
  #tried: Bound = this.#pace;
  /** The highest pace worth a try. */
  #highestPace = Number.POSITIVE_INFINITY;
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #heldBy: Bound | null = null;
  #epoch: Epoch = emptyEpoch(0);
  /** Calls sent earlier may suffer from what was before. */
  #settledAtMs = Number.NEGATIVE_INFINITY;
  #failedAtMs = Number.NEGATIVE_INFINITY;
  /** The share of calls that this server refuses whatever the speed, as far as is known. */
  #usual = LEAST_SHARE;
  /** So many calls it is known from. */
  #usualCalls = CALLS_TO_TRY_BY;
  #refusedBefore = 0;
  /** A slow-down that was kept: from where, and what was refused there. */
  #kept: { readonly refused: number; readonly pace: number; readonly openCalls: number } | null = null;
  #judgeMs = SHORTEST_JUDGING_MS;

  #storm: Storm | null = null;
  #stormEndedAtMs = Number.NEGATIVE_INFINITY;
  #pausedAtMs = 0;
  #pausedUntilMs = 0;
  /** The last call let go in probing or ramping; null: none yet. */
  #lastGrant: Call | null = null;
  #spacingMs = 0;
  #stepAtMs = 0;
  #grantsInStep = 0;
  #successesInStep = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Work per millisecond at which calls are spread; null: they are not. */
  get pace(): number | null {
    return Number.isFinite(this.#pace.value) ? this.#pace.value : null;
  }

  /** Why the lane is silent, since when, and until when; null when it is not. */
  pauseAt(nowMs: number): Pause | null {
    this.#advance(nowMs);
    if (this.#storm === null || (this.#state !== 'paused' && this.#state !== 'probing')) return null;
    return { reason: this.#storm.reason, sinceMs: this.#storm.startedAtMs, untilMs: this.#pausedUntilMs };
  }

  /** @param limited whether a limit is in force, and with it what work means */
  setLimited(limited: boolean, nowMs: number): void {
    if (limited === this.#limited) return;
    this.#limited = limited;
    this.#pace.value = limited && this.pace !== null ? FULL_PACE : Number.POSITIVE_INFINITY;
    this.#ask('none', nowMs);
  }

  /** From here on calls take another time at the limits in force: the wait after the last one is not to outlast that. */
  limitsChanged(nowMs: number): void {
    this.#nextAtMs = Math.min(this.#nextAtMs, nowMs + LONGEST_SPACING_MS);
  }

  /** The server's window is known to be shorter than a minute: spread from the start, and for good. */
  keepSpread(): void {
    this.#highestPace = FULL_PACE;
    this.#pace.value = Math.min(this.#pace.value, FULL_PACE);
  }

  /** When each part lets the next call go; `nowMs` when it may go now. */
  readyAtMs(nowMs: number): { readonly pause: number; readonly pace: number; readonly openCalls: number } {
    this.#advance(nowMs);
    this.#tryFaster(nowMs);
    const pause = this.#pauseEndsAtMs(nowMs);
    const pace = Math.max(nowMs, this.pace === null ? nowMs : this.#nextAtMs);
    // Calls that hang do not keep the one from going that finds out whether the server is back.
    const isFull = this.#state !== 'probing' && this.#recent.openCalls >= this.#openCalls.value;
    if (pause <= nowMs && (isFull || pace > nowMs)) this.#heldBy = isFull ? this.#openCalls : this.#pace;
    return { pause, pace, openCalls: isFull ? nowMs + LOOK_AGAIN_MS : nowMs };
  }

  granted(work: number, nowMs: number): Call {
    const call = this.#recent.granted(work, nowMs);
    this.#pace.letGo(this.#heldBy === this.#pace);
    this.#openCalls.letGo(this.#heldBy === this.#openCalls);
    this.#heldBy = null;
    if (this.#state !== 'flowing') this.#lastGrant = call;
    this.#grantsInStep += 1;
    if (this.pace !== null) {
      const spacingMs = Math.min(work / this.pace, Math.max(work, LONGEST_SPACING_MS));
      this.#nextAtMs = Math.max(this.#nextAtMs, nowMs - CATCH_UP_MS) + spacingMs;
    }
    return call;
  }

  sent(call: Call, nowMs: number): void {
    this.#recent.sent(call, nowMs >= this.#settledAtMs ? this.#epoch : null, nowMs);
  }

  /** The call is over, and took so much less work than was expected. */
  ended(call: Call, lessWork: number, nowMs: number): void {
    this.#giveBack(lessWork);
    this.#recent.ended(call, lessWork, nowMs);
    if (call === this.#lastGrant && this.#state === 'probing' && this.#patienceMs === null)
      this.#lastGrant = null;
  }

  /** The call reached nobody: another one may take its place. */
  withdrawn(call: Call): void {
    if (call === this.#lastGrant && this.#state === 'probing') this.#lastGrant = null;
    this.#giveBack(call.work);
    this.#recent.forget(call);
  }

  succeeded(call: Call | null, nowMs: number): void {
    this.#advance(nowMs);
    if (call !== null && call.sentAtMs !== null && call.sentAtMs > this.#pausedAtMs) {
      if (this.#state === 'probing') this.#startRamp(nowMs);
      else if (this.#state === 'ramping') this.#successesInStep += 1;
      this.#advance(nowMs);
    }
    this.#judge(nowMs);
  }

  /**
   * @param retryAfterMs what the server asked for; null, or not a sensible number, for a pause of our own
   * @returns whether the lane is silent now, or only the refused call has to wait
   */
  refused(
    call: Call | null,
    retryAfterMs: number | null,
    reason: RefusalReason,
    nowMs: number,
  ): 'slowed' | 'stray' {
    this.#advance(nowMs);
    const askedMs = sensibleWaitMs(retryAfterMs);
    const refused = call ?? this.#recent.granted(0, nowMs);
    const isOld =
      call !== null && call.sentAtMs !== null && this.#storm !== null && call.sentAtMs <= this.#pausedAtMs;
    if (this.#state === 'paused' || (this.#state !== 'flowing' && isOld)) {
      this.#recent.forget(refused);
      if (askedMs !== null && nowMs + askedMs > this.#pausedUntilMs) {
        this.#state = 'paused';
        this.#pausedUntilMs = nowMs + askedMs;
      }
      return 'slowed';
    }
    if (reason === 'unreachable') {
      this.#recent.forget(refused);
      this.#pause(reason, askedMs, refused, nowMs);
      return 'slowed';
    }
    this.#recent.refused(refused, askedMs === null ? 0 : nowMs + askedMs, nowMs);
    if (this.#state === 'probing' || this.#recent.areMostlyRefused(askedMs !== null, nowMs)) {
      const namedMs = this.#recent.namedEndMs - nowMs;
      this.#pause(reason, namedMs > 0 ? namedMs : null, refused, nowMs);
      return 'slowed';
    }
    this.#judge(nowMs);
    return 'stray';
  }

  // Questions.

  #ask(question: 'none' | 'slower' | 'faster', nowMs: number): void {
    this.#question = question;
    this.#epoch = emptyEpoch(nowMs);
    this.#settledAtMs = nowMs;
    this.#nextAtMs = Math.min(this.#nextAtMs, nowMs + LONGEST_SPACING_MS);
  }

  /** Acts as soon as the calls of this epoch answer the question. */
  #judge(nowMs: number): void {
    if (this.#state !== 'flowing') return;
    if (this.#question === 'slower') {
      const verdict = likelier(this.#epoch, this.#refusedBefore * FAR_FEWER, this.#refusedBefore);
      if (verdict === 'more' && this.#epoch.refused >= REFUSED_TO_ASK_BY) this.#wasNotTheSpeed(nowMs);
      else if (verdict === 'fewer') {
        this.#kept ??= {
          refused: this.#refusedBefore,
          pace: this.#pace.before,
          openCalls: this.#openCalls.before,
        };
        this.#learnUsual();
        this.#ask('none', nowMs);
      }
    } else if (this.#question === 'faster') {
      const excess = ((1 - this.#usual) * this.#tried.rise) / (1 + this.#tried.rise);
      const verdict = likelier(this.#epoch, this.#usual, this.#usual + excess / 2);
      if (verdict === 'more') this.#wasTooFast(nowMs);
      else if (verdict === 'fewer' && nowMs >= this.#epoch.startedAtMs + this.#judgingMs) {
        this.#question = 'none';
        this.#learnUsual();
        this.#tried.held(nowMs);
      }
    } else {
      const verdict = likelier(this.#epoch, this.#usual, this.#usual + BORNE);
      if (verdict === 'fewer') {
        this.#learnUsual();
        this.#epoch.refused = 0;
        this.#epoch.letIn = 0;
      } else if (verdict === 'more' && this.#epoch.refused >= REFUSED_TO_ASK_BY) {
        this.#isRefusedMore(nowMs);
      }
    }
  }

  /** A slow-down that was kept by chance shows now, when as many are refused in the long run. */
  #isRefusedMore(nowMs: number): void {
    const kept = this.#kept;
    this.#kept = null;
    this.#pace.before = kept?.pace ?? this.#pace.value;
    this.#openCalls.before = kept?.openCalls ?? this.#openCalls.value;
    const refused = this.#epoch.refused / decided(this.#epoch);
    if (kept !== null && refused > FAR_FEWER * kept.refused) this.#isUsual(nowMs);
    else this.#askSlower(nowMs);
  }

  #askSlower(nowMs: number): void {
    const refused = this.#epoch.refused / decided(this.#epoch);
    this.#refusedBefore = refused;
    this.#makeUpFor(refused, nowMs);
    const letIn = this.#recent.letInPerMs(LATELY_MS, 'busy', nowMs);
    const pace = Math.min(this.#pace.value * (1 - refused), Math.max(letIn, this.#limited ? 1 - refused : 0));
    this.#slowTo(pace, STEP_FROM_QUESTION, nowMs);
    this.#ask('slower', nowMs);
    this.#settledAtMs = nowMs + this.#judgingMs;
  }

  /** @param pace what was let in @param step by which to go back up */
  #slowTo(pace: number, step: number, nowMs: number): void {
    const spread = this.#limited ? between(LOWEST_PACE, pace, 1) : pace;
    this.#pace.lower(spread * FULL_PACE, step, nowMs + this.#judgingMs);
    this.#boundOpenCalls(step, nowMs);
  }

  /** Refused with the house full, nearly always: the server has so many slots. */
  #boundOpenCalls(step: number, nowMs: number): void {
    const { refused, mostOpen, openWhenRefused } = this.#epoch;
    // The call that was just sent is not among them, so that a bound in force is seen as one less.
    if (mostOpen === 0 || mostOpen >= this.#openCalls.value - 1) return;
    if (refused < REFUSED_TO_BOUND_BY || openWhenRefused < FULL_HOUSE * mostOpen * refused) return;
    this.#openCalls.lower(mostOpen, step, nowMs + this.#judgingMs);
  }

  #wasNotTheSpeed(nowMs: number): void {
    const refused = this.#epoch.refused / decided(this.#epoch);
    if (refused > MOST_USUAL) this.#askSlower(nowMs);
    else this.#isUsual(nowMs);
  }

  /** So many are refused at the lower speed as well: back to the speed of before. */
  #isUsual(nowMs: number): void {
    this.#usual = withinShares(this.#epoch.refused / decided(this.#epoch));
    this.#usualCalls = decided(this.#epoch);
    this.#goBack(nowMs);
  }

  #goBack(nowMs: number): void {
    this.#pace.goBack(nowMs);
    this.#openCalls.goBack(nowMs);
    this.#ask('none', nowMs);
  }

  /** Calls go on as they do; what was refused of them is what the server refuses. */
  #learnUsual(): void {
    const { refused } = this.#epoch;
    const calls = decided(this.#epoch);
    this.#usual = withinShares((this.#usual * this.#usualCalls + refused) / (this.#usualCalls + calls));
    this.#usualCalls = Math.min(ENOUGH_CALLS, this.#usualCalls + calls);
  }

  #tryFaster(nowMs: number): void {
    if (this.#state !== 'flowing' || this.#question !== 'none' || !this.#isFine) return;
    const [openCalls, pace] = [this.#openCalls, this.#pace];
    if (!openCalls.holds && !pace.holds) {
      if (this.#highestPace < Number.POSITIVE_INFINITY || nowMs < pace.tryAtMs) return;
      openCalls.free();
      pace.free();
    }
    const bound = [openCalls, pace].find(({ holds, tryAtMs }) => holds && nowMs >= tryAtMs);
    if (bound === undefined || (bound === pace && pace.value >= this.#highestPace)) return;
    this.#learnUsual();
    this.#tried = bound;
    bound.raise(this.#usual * STANDS_OUT, this.#highestPace);
    this.#ask('faster', nowMs);
  }

  /** Enough calls were let in at this speed to go on from it. */
  get #isFine(): boolean {
    const calls = decided(this.#epoch);
    return calls >= CALLS_TO_TRY_BY && this.#epoch.refused <= (this.#usual + BORNE) * calls;
  }

  #wasTooFast(nowMs: number): void {
    this.#makeUpFor(this.#tried.rise, nowMs);
    this.#tried.failed(nowMs, this.#judgingMs);
    this.#boundOpenCalls(SHORTEST_STEP, nowMs);
    this.#failedAtMs = nowMs;
    this.#kept = null;
    this.#ask('none', nowMs);
  }

  /** Calls were sent too fast by this share: a window that they fill beyond its limit has time to empty. */
  #makeUpFor(share: number, nowMs: number): void {
    const tooFastMs = Math.min(this.#judgingMs, nowMs - this.#epoch.startedAtMs);
    this.#nextAtMs = nowMs + Math.min(1, share) * tooFastMs;
  }

  #giveBack(work: number): void {
    if (this.pace !== null) this.#nextAtMs -= work / this.pace;
  }

  // Pauses.

  #pause(reason: RefusalReason, askedMs: number | null, refused: Call, nowMs: number): void {
    const isFirst = this.#storm === null;
    this.#storm ??= { reason, startedAtMs: nowMs, pauses: 0, patienceMs: DEFAULT_PATIENCE_MS };
    this.#storm.reason = reason;
    if (refused.sentAtMs !== null) {
      this.#storm.patienceMs = between(
        SHORTEST_PATIENCE_MS,
        REFUSALS_WAITED * (nowMs - refused.sentAtMs),
        LONGEST_PATIENCE_MS,
      );
    }
    if (reason !== 'unreachable') this.#slowForStorm(nowMs);
    const ownMs = this.#ownPauseMs(this.#storm, nowMs);
    const pauseMs = askedMs === null ? ownMs : isFirst ? askedMs : Math.max(askedMs, ownMs);
    this.#storm.pauses += 1;
    this.#state = 'paused';
    this.#pausedAtMs = nowMs;
    this.#pausedUntilMs = nowMs + pauseMs;
    this.#lastGrant = null;
    this.#recent.forgetLast();
    this.#ask('none', nowMs);
  }

  /** One storm may be an outage, and the speed not its cause; one that comes back soon is met at a lower speed. */
  #slowForStorm(nowMs: number): void {
    if (this.#question === 'faster') this.#wasTooFast(nowMs);
    if (this.#question === 'slower') this.#goBack(nowMs);
    if (this.#state === 'probing' || nowMs < this.#failedAtMs + this.#judgingMs) return;
    const isRamping = this.#state === 'ramping';
    if (isRamping || nowMs - this.#stormEndedAtMs < STORM_REMEMBERED_MS) {
      const ramped = isRamping ? this.#recent.workPerCall / (RAMP_LOOKS_BACK * this.#spacingMs) : 0;
      // Pauses make little of what was let in: half as fast is slow enough for one storm.
      const letIn = Math.max((this.pace ?? 0) / 2, this.#recent.letInPerMs(LONG_WINDOW_MS, 'all', nowMs));
      this.#slowTo(Math.max(ramped, letIn), ramped > letIn ? LONGEST_STEP : STEP_FROM_MEASURED, nowMs);
    } else if (this.#limited) {
      this.#pace.lower(FULL_PACE, SHORTEST_STEP, nowMs + FIRST_HOLD_MS);
    }
  }

  #ownPauseMs({ pauses, startedAtMs }: Storm, nowMs: number): number {
    const doublingMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(pauses, 10), DOUBLING_ENDS_AT_MS);
    const pauseMs = Math.min(
      LONGEST_OWN_PAUSE_MS,
      Math.max(doublingMs, (nowMs - startedAtMs) * SHARE_OF_STORM),
    );
    return pauseMs * (1 + JITTER * this.#random());
  }

  /** A probe that is not refused for so long was let in; null: only an answer tells. */
  get #patienceMs(): number | null {
    return this.#storm?.reason === 'unreachable' ? null : (this.#storm?.patienceMs ?? DEFAULT_PATIENCE_MS);
  }

  #pauseEndsAtMs(nowMs: number): number {
    if (this.#state === 'flowing') return nowMs;
    if (this.#state === 'paused') return this.#pausedUntilMs;
    if (this.#lastGrant === null) return nowMs;
    if (this.#state === 'ramping') return Math.max(nowMs, this.#lastGrant.grantedAtMs + this.#spacingMs);
    return this.#patienceMs === null ? nowMs + LOOK_AGAIN_MS : this.#lastGrant.grantedAtMs + this.#patienceMs;
  }

  /** Moves on to the state that the passing of time alone leads to. */
  #advance(nowMs: number): void {
    this.#recent.advance(nowMs);
    if (this.#state === 'paused' && nowMs >= this.#pausedUntilMs) this.#state = 'probing';
    if (this.#state === 'probing' && this.#lastGrant !== null && this.#patienceMs !== null) {
      if (nowMs >= this.#lastGrant.grantedAtMs + this.#patienceMs) this.#startRamp(nowMs);
    }
    if (this.#state !== 'ramping' || this.#grantsInStep === 0) return;
    const stepMs = this.#successesInStep > 0 ? RAMP_STEP_MS : (this.#patienceMs ?? DEFAULT_PATIENCE_MS);
    if (nowMs < this.#stepAtMs + stepMs) return;
    this.#startStep(this.#spacingMs / 2, nowMs);
    const pacedMs = this.pace === null ? 0 : this.#recent.workPerCall / this.pace;
    if (this.#spacingMs >= Math.max(SHORTEST_SPACING_MS, pacedMs)) return;
    this.#state = 'flowing';
    if (this.#storm !== null && this.#storm.reason !== 'unreachable') this.#stormEndedAtMs = nowMs;
    this.#storm = null;
    for (const bound of [this.#pace, this.#openCalls]) bound.wait(nowMs + this.#judgingMs);
    this.#ask('none', nowMs);
  }

  /** How long a speed that is too high may go unnoticed. */
  get #judgingMs(): number {
    return this.#judgeMs + this.#recent.refusalMs;
  }

  #startRamp(nowMs: number): void {
    // A window that was full for so long is as long at the least, and shows a speed that is too high as late.
    const ageMs = nowMs - (this.#storm?.startedAtMs ?? nowMs);
    this.#judgeMs = between(SHORTEST_JUDGING_MS, ageMs, LONG_WINDOW_MS);
    this.#state = 'ramping';
    this.#startStep(FIRST_SPACING_MS, nowMs);
  }

  #startStep(spacingMs: number, nowMs: number): void {
    this.#spacingMs = spacingMs;
    this.#stepAtMs = nowMs;
    this.#grantsInStep = 0;
    this.#successesInStep = 0;
  }
}

export interface Pause {
  readonly reason: RefusalReason;
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** Every pause between two times of flowing. */
interface Storm {
  reason: RefusalReason;
  readonly startedAtMs: number;
  pauses: number;
  patienceMs: number;
}

/**
 * Which of two shares of refused calls the calls of an epoch speak for, once they do so twenty to one (the sequential
 * test of Wald, 1945: as few calls as can be) or are many; null: they do not tell yet.
 */
function likelier({ letIn, refused }: Epoch, fewer: number, more: number): 'fewer' | 'more' | null {
  const evidence = refused * Math.log(more / fewer) + letIn * Math.log((1 - more) / (1 - fewer));
  if (letIn + refused < ENOUGH_CALLS && Math.abs(evidence) < CLEARLY) return null;
  return evidence > 0 ? 'more' : 'fewer';
}

function decided({ letIn, refused }: Epoch): number {
  return letIn + refused;
}

function emptyEpoch(startedAtMs: number): Epoch {
  return { startedAtMs, letIn: 0, refused: 0, mostOpen: 0, openWhenRefused: 0 };
}

function between(least: number, value: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}

function withinShares(share: number): number {
  return between(LEAST_SHARE, share, MOST_USUAL);
}

function sensibleWaitMs(retryAfterMs: number | null): number | null {
  if (retryAfterMs === null || !Number.isFinite(retryAfterMs) || retryAfterMs <= 0) return null;
  return Math.min(retryAfterMs, LONGEST_SERVER_PAUSE_MS);
}

// The experiment.
/** Odds of twenty to one. */
const CLEARLY = Math.log(20);
/** What so many calls do not tell clearly makes no great difference. */
const ENOUGH_CALLS = 500;
/** Fewer refusals than one in two hundred are never looked into. */
const LEAST_SHARE = 0.005;
/** To go on as before while more are refused would be to hammer at the server. */
const MOST_USUAL = 0.3;
/** Beyond what is usual, so many are borne. */
const BORNE = 0.03;
/** Fewer do not tell how large the share is that is to fall. */
const REFUSED_TO_ASK_BY = 8;
/** What is left of the refusals where they came from the speed, or less; half would be too near to what chance does. */
const FAR_FEWER = 0.4;
/** So many tell what holds calls back. */
const CALLS_TO_TRY_BY = 20;
/** Calls reach the server a few milliseconds early or late, so that a pace of all it takes would be refused now and then. */
const FULL_PACE = 0.98;
const LOWEST_PACE = 0.01;
/** What some seconds let in may be far from what the server allows: a handful of steps double it. */
const STEP_FROM_QUESTION = 0.2;
/** What a minute let in is not far from what a minute allows. */
const STEP_FROM_MEASURED = 0.1;
/** Where one in ten is refused anyway, a step of a tenth is told from chance in some hundreds of calls. */
const STANDS_OUT = 1;
/** Hidden windows of some seconds are common; a speed is kept only after it held for so long. */
const SHORTEST_JUDGING_MS = 10_000;
const LONG_WINDOW_MS = 60_000;
const LATELY_MS = 10_000;
/** Of the most that were open, at the refusals on average. */
const FULL_HOUSE = 0.85;
const REFUSED_TO_BOUND_BY = 3;
/** A timer that fired late may be made up for by so much; more would be a burst. */
const CATCH_UP_MS = 3;
/** However slow the pace, a server is asked this often. */
const LONGEST_SPACING_MS = 3_000;
/** Until when nobody knows; whoever ends a call asks again at once. */
const LOOK_AGAIN_MS = 1_000;

// Pauses.
const FIRST_PAUSE_MS = 1_000;
/** Pauses double up to here: a few seconds between two probes is polite to any server. */
const DOUBLING_ENDS_AT_MS = 3_000;
/** A long outage is asked after seldom, and its end is noticed within an eighth of what it lasted. */
const SHARE_OF_STORM = 1 / 8;
const LONGEST_OWN_PAUSE_MS = 60_000;
/** So that several processes on one key do not come back together. */
const JITTER = 0.25;
/** A server that asks for more is wrong, or means another limit than that of a minute. */
const LONGEST_SERVER_PAUSE_MS = 15 * 60_000;
const STORM_REMEMBERED_MS = 60_000;

/** Patience is a few times what the last refusal took to come; its answer may take minutes. */
const REFUSALS_WAITED = 2;
const DEFAULT_PATIENCE_MS = 3_000;
const SHORTEST_PATIENCE_MS = 1_000;
const LONGEST_PATIENCE_MS = 30_000;

/** From two calls a second to no bound in nine halvings, 4.5 s with quick answers. */
const FIRST_SPACING_MS = 500;
const RAMP_STEP_MS = 500;
const SHORTEST_SPACING_MS = 1;
/** Refused in the ramp: the speed of two steps before was still good, that of one step before may have been too much. */
const RAMP_LOOKS_BACK = 4;
