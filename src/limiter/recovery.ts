import type { Random } from '../core/clock.js';

/**
 * What a lane does after the server refused a call (429): pause, try one call, then speed up again, spread out.
 *
 *              throttled                       the pause ends
 *   flowing ──────────────▶ paused ─────────────────────────────▶ probing: one call, the others wait
 *      ▲                    ▲  │ ▲                                   │
 *      │                    │  └─┘ throttled again by a call sent    │ the probe succeeded, or was not refused for
 *      │                    │      before the pause: the same burst, │ twice as long as a refusal takes
 *      │                    │      only a later end counts           ▼
 *      │                    └──────────────────────────────────── ramping: one call per spacing; the spacing
 *      └──────────────────────────────────────────────────────────  halves as calls succeed
 *        the spacing is too short to matter       throttled: a longer pause, from probing too
 *
 * A storm is every pause between two times of flowing. The first pauses of a storm double, later ones are an
 * eighth of the storm's age: a long outage is asked after seldom, and its end is noticed within an eighth of
 * what it lasted.
 */
export class Recovery {
  readonly #random: Random;
  #state: 'flowing' | 'paused' | 'probing' | 'ramping' = 'flowing';
  #storm: Storm | null = null;
  #longStormEndedAtMs = Number.NEGATIVE_INFINITY;
  #pausedAtMs = 0;
  #pausedUntilMs = 0;
  /** When the last call was let go in probing or ramping; null: none yet. */
  #lastGrantAtMs: number | null = null;
  #spacingMs = 0;
  #stepAtMs = 0;
  #grantsInStep = 0;
  #successesInStep = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** The earliest moment at which the next call may be let go; `nowMs` when it may go now. */
  readyAtMs(nowMs: number): number {
    this.#step(nowMs);
    switch (this.#state) {
      case 'flowing':
        return nowMs;
      case 'paused':
        return this.#pausedUntilMs;
      case 'probing':
        return this.#lastGrantAtMs === null ? nowMs : this.#lastGrantAtMs + this.#patienceMs;
      case 'ramping':
        return this.#lastGrantAtMs === null ? nowMs : Math.max(nowMs, this.#lastGrantAtMs + this.#spacingMs);
    }
  }

  /** Whether this storm, or one that ended less than a minute ago, had several probes refused. */
  longStormAt(nowMs: number): boolean {
    if (this.#storm !== null && this.#storm.failedProbes >= LONG_STORM_PROBES) return true;
    return nowMs - this.#longStormEndedAtMs < STORM_REMEMBERED_MS;
  }

  /** No pause, and no careful start after one. */
  isFlowingAt(nowMs: number): boolean {
    this.#step(nowMs);
    return this.#state === 'flowing';
  }

  /** How long the server has asked for silence yet; 0 when it has not. */
  pausedForMs(nowMs: number): number {
    return this.#state === 'paused' ? Math.max(0, this.#pausedUntilMs - nowMs) : 0;
  }

  granted(nowMs: number): void {
    if (this.#state === 'flowing') return;
    this.#lastGrantAtMs = nowMs;
    this.#grantsInStep += 1;
  }

  /** A call that was let go and never sent: if it was the probe, another one may take its place. */
  cancelled(grantedAtMs: number): void {
    if (this.#state === 'probing' && this.#lastGrantAtMs === grantedAtMs) this.#lastGrantAtMs = null;
  }

  /**
   * @param retryAfterMs what the server asked for; null, or not a sensible number, for our own pause
   * @param sentAtMs when the refused call was sent, where known
   * @returns what was refused: a call of full flow or of the ramp, a probe, or one more of a burst known already
   */
  throttled(
    retryAfterMs: number | null,
    nowMs: number,
    sentAtMs: number | null,
  ): 'flowing' | 'ramping' | 'probing' | 'known' {
    this.#step(nowMs);
    const askedMs = sensibleWaitMs(retryAfterMs);
    const sentBeforePause = this.#storm !== null && sentAtMs !== null && sentAtMs <= this.#pausedAtMs;
    if (this.#state === 'paused' || (this.#state !== 'flowing' && sentBeforePause)) {
      if (askedMs !== null && nowMs + askedMs > this.#pausedUntilMs)
        this.#pause(this.#pausedAtMs, nowMs + askedMs);
      return 'known';
    }
    const refusedIn = this.#state;
    this.#storm ??= { startedAtMs: nowMs, pauses: 0, failedProbes: 0, patienceMs: DEFAULT_PATIENCE_MS };
    if (sentAtMs !== null) {
      this.#storm.patienceMs = Math.min(
        LONGEST_PATIENCE_MS,
        Math.max(SHORTEST_PATIENCE_MS, REFUSALS_WAITED * (nowMs - sentAtMs)),
      );
    }
    const ownMs = this.#ownPauseMs(nowMs);
    const firstOfStorm = this.#storm.pauses === 0;
    const pauseMs = askedMs === null ? ownMs : firstOfStorm ? askedMs : Math.max(askedMs, ownMs);
    this.#storm.pauses += 1;
    if (refusedIn === 'probing') this.#storm.failedProbes += 1;
    this.#pause(nowMs, nowMs + pauseMs);
    return refusedIn;
  }

  /** A call sent at `sentAtMs` was accepted; one sent before the pause says nothing about now. */
  succeeded(nowMs: number, sentAtMs: number | null): void {
    this.#step(nowMs);
    if (sentAtMs !== null && sentAtMs <= this.#pausedAtMs) return;
    if (this.#state === 'probing' && this.#lastGrantAtMs !== null) this.#startRamp(nowMs);
    else if (this.#state === 'ramping') this.#successesInStep += 1;
    this.#step(nowMs);
  }

  get #patienceMs(): number {
    return this.#storm?.patienceMs ?? DEFAULT_PATIENCE_MS;
  }

  #ownPauseMs(nowMs: number): number {
    const pauses = this.#storm?.pauses ?? 0;
    const ageMs = nowMs - (this.#storm?.startedAtMs ?? nowMs);
    const doublingMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(pauses, 10), DOUBLING_ENDS_AT_MS);
    const pauseMs = Math.min(LONGEST_OWN_PAUSE_MS, Math.max(doublingMs, ageMs * SHARE_OF_STORM));
    return pauseMs * (1 + JITTER * this.#random());
  }

  #pause(fromMs: number, untilMs: number): void {
    this.#state = 'paused';
    this.#pausedAtMs = fromMs;
    this.#pausedUntilMs = untilMs;
    this.#lastGrantAtMs = null;
  }

  /** Moves on to the state that the passing of time alone leads to. */
  #step(nowMs: number): void {
    if (this.#state === 'paused' && nowMs >= this.#pausedUntilMs) this.#state = 'probing';
    if (this.#state === 'probing' && this.#lastGrantAtMs !== null) {
      if (nowMs >= this.#lastGrantAtMs + this.#patienceMs) this.#startRamp(nowMs);
    }
    if (this.#state !== 'ramping' || this.#grantsInStep === 0) return;
    const stepMs = this.#successesInStep > 0 ? RAMP_STEP_MS : this.#patienceMs;
    if (nowMs < this.#stepAtMs + stepMs) return;
    this.#nextStep(nowMs, this.#spacingMs / 2);
    if (this.#spacingMs >= SHORTEST_SPACING_MS) return;
    if (this.longStormAt(nowMs)) this.#longStormEndedAtMs = nowMs;
    this.#state = 'flowing';
    this.#storm = null;
  }

  #startRamp(nowMs: number): void {
    this.#state = 'ramping';
    this.#nextStep(nowMs, FIRST_SPACING_MS);
  }

  #nextStep(nowMs: number, spacingMs: number): void {
    this.#spacingMs = spacingMs;
    this.#stepAtMs = nowMs;
    this.#grantsInStep = 0;
    this.#successesInStep = 0;
  }
}

/** Every pause between two times of flowing. */
interface Storm {
  readonly startedAtMs: number;
  pauses: number;
  failedProbes: number;
  /** A probe that was not refused for so long was let in; its answer may take minutes. */
  patienceMs: number;
}

const LONG_STORM_PROBES = 2;
const STORM_REMEMBERED_MS = 60_000;

const FIRST_PAUSE_MS = 1_000;
/** Pauses double up to here: a few seconds between two probes is polite to any server. */
const DOUBLING_ENDS_AT_MS = 3_000;
const SHARE_OF_STORM = 1 / 8;
const LONGEST_OWN_PAUSE_MS = 60_000;
/** So that several processes on one key do not come back together. */
const JITTER = 0.25;
/** A server that asks for more is wrong, or means another limit than that of a minute. */
const LONGEST_SERVER_PAUSE_MS = 15 * 60_000;

/** Patience is a few times what the last refusal took to come. */
const REFUSALS_WAITED = 2;
const DEFAULT_PATIENCE_MS = 3_000;
const SHORTEST_PATIENCE_MS = 1_000;
const LONGEST_PATIENCE_MS = 30_000;

/** From two calls a second to no bound in nine halvings, 4.5 s with quick answers. */
const FIRST_SPACING_MS = 500;
const RAMP_STEP_MS = 500;
const SHORTEST_SPACING_MS = 1;

function sensibleWaitMs(retryAfterMs: number | null): number | null {
  if (retryAfterMs === null || !Number.isFinite(retryAfterMs) || retryAfterMs <= 0) return null;
  return Math.min(retryAfterMs, LONGEST_SERVER_PAUSE_MS);
}
