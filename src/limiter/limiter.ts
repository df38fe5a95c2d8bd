/**
 * The limiter of one lane: says whether a call may go now or how long it has to wait, from the exact rolling
 * minute of requests and tokens (rolling-window.ts) and from what the server refused (recovery.ts). Pure: it
 * never sleeps and reads no clock; every method is told the time, monotonic milliseconds.
 *
 * It serves whoever asks. First come, first served among those who wait is the caller's gate: one asker at a
 * time, the others queued behind it.
 *
 * The life of a call: `reserve` → `sent` → `commit`, or `reserve` → `cancel` when it was never sent. The window
 * counts the call from `sent`; until then it counts as if it could be sent at any moment.
 */
import type { Random } from '../core/clock.js';
import type { RateLimitHints } from '../core/limits.js';
import { Recovery } from './recovery.js';
import { RollingWindow, type WindowEntry } from './rolling-window.js';

export interface Cost {
  readonly requests: number;
  /** What the call is expected to be charged, prompt and output together; rather above than below. */
  readonly tokens: number;
}

export type BlockedBy = 'requests' | 'tokens' | 'requests_per_day' | 'pause';

/** A place in the window, handed from `reserve` to `sent` and then `commit` or `cancel`. Opaque. */
export interface Grant {
  readonly cost: Cost;
}

export type Reservation =
  | { readonly granted: true; readonly grant: Grant }
  | {
      readonly granted: false;
      readonly impossible: false;
      /**
       * Until the earliest moment at which this very cost could be granted if nothing else happens: a
       * correction or a cancelled call may free room before, an unsent call or a failed probe may hold it longer.
       */
      readonly waitMs: number;
      readonly blockedBy: BlockedBy;
    }
  /** The cost is larger than the whole limit: no waiting helps. `reason` is a sentence. */
  | { readonly granted: false; readonly impossible: true; readonly reason: string };

export interface LimiterSnapshot {
  /** Calls of the window as the limiter counts it, reserved ones included. */
  readonly requestsInWindow: number;
  readonly tokensInWindow: number;
  /** The limits in force; null where none is known. */
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  /** Until the pause that the server asked for ends; 0 when there is none. */
  readonly pausedForMs: number;
}

export interface Limiter {
  /** Asks for one call. Granted means: send it now, or `cancel`. */
  reserve(cost: Cost, nowMs: number): Reservation;
  /** The request leaves now; the window counts it from here on. Call it as close to the socket as can be. */
  sent(grant: Grant, nowMs: number): void;
  /**
   * The call is over. `actualTokens` replaces the reservation at the call's own place in the window; null: not
   * known, the reservation stays. Also for failed calls: servers count those. Takes effect once.
   */
  commit(grant: Grant, actualTokens: number | null, nowMs: number): void;
  /** The call was never sent: everything is given back. Of a call that was sent, nothing is. */
  cancel(grant: Grant, nowMs: number): void;
  /**
   * The server answered 429: the lane pauses, then starts again gently. Name the refused call's `grant`, so that
   * late refusals of one burst are told from a new one.
   */
  throttled(retryAfterMs: number | null, nowMs: number, grant?: Grant): void;
  /** A call was accepted; speeds up the start after a pause. */
  succeeded(nowMs: number, grant?: Grant): void;
  /** What the server said about its limits in an answer's headers. */
  observe(hints: RateLimitHints, nowMs: number): void;
  /** Calls made before this process started; those older than the window are ignored. */
  seed(entries: readonly { readonly ageMs: number; readonly tokens: number }[], nowMs: number): void;
  snapshot(nowMs: number): LimiterSnapshot;
}

export interface LimiterOptions {
  /** Null: not limited. */
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly windowMs?: number;
  /**
   * Lengthens the window: calls sent `windowMs` apart may reach the server closer together than that, because
   * the way there takes a varying time.
   */
  readonly marginMs?: number;
  readonly random: Random;
}

const DEFAULT_WINDOW_MS = 60_000;
const DEFAULT_MARGIN_MS = 250;

/** @throws RangeError for a limit that is not a positive number. */
export function createLimiter(options: LimiterOptions): Limiter {
  return new RollingLimiter(options);
}

class LaneGrant implements Grant {
  settled = false;
  constructor(
    readonly cost: Cost,
    readonly entry: WindowEntry,
    readonly grantedAtMs: number,
  ) {}
}

class RollingLimiter implements Limiter {
  readonly #requestsPerMinute: number | null;
  readonly #tokensPerMinute: number | null;
  readonly #window: RollingWindow;
  readonly #recovery: Recovery;
  #latestMs = Number.NEGATIVE_INFINITY;

  constructor(options: LimiterOptions) {
    this.#requestsPerMinute = positiveLimit('requestsPerMinute', options.requestsPerMinute);
    this.#tokensPerMinute = positiveLimit('tokensPerMinute', options.tokensPerMinute);
    this.#window = new RollingWindow(
      (options.windowMs ?? DEFAULT_WINDOW_MS) + (options.marginMs ?? DEFAULT_MARGIN_MS),
    );
    this.#recovery = new Recovery(options.random);
  }

  reserve(asked: Cost, nowMs: number): Reservation {
    const now = this.#advance(nowMs);
    const cost: Cost = { requests: asked.requests, tokens: wholeTokens(asked.tokens) ?? 0 };
    const impossible = this.#impossible(cost);
    if (impossible !== null) return { granted: false, impossible: true, reason: impossible };

    const blocked = this.#latest([
      ['requests', this.#fitsAtMs('requests', cost.requests, this.#requestsPerMinute, now)],
      ['tokens', this.#fitsAtMs('tokens', cost.tokens, this.#tokensPerMinute, now)],
      ['pause', this.#recovery.readyAtMs(now)],
    ]);
    if (blocked.atMs > now) {
      return { granted: false, impossible: false, waitMs: blocked.atMs - now, blockedBy: blocked.by };
    }
    this.#recovery.granted(now);
    const entry = this.#window.reserve(cost.requests, cost.tokens);
    return { granted: true, grant: new LaneGrant(cost, entry, now) };
  }

  sent(grant: Grant, nowMs: number): void {
    this.#window.send(own(grant).entry, this.#advance(nowMs));
  }

  commit(grant: Grant, actualTokens: number | null, nowMs: number): void {
    const now = this.#advance(nowMs);
    const { entry, settled } = own(grant);
    if (settled) return;
    own(grant).settled = true;
    this.#window.send(entry, now);
    const actual = wholeTokens(actualTokens);
    if (actual !== null) this.#window.correct(entry, actual);
  }

  cancel(grant: Grant, nowMs: number): void {
    this.#advance(nowMs);
    const { entry, grantedAtMs, settled } = own(grant);
    if (settled) return;
    own(grant).settled = true;
    if (entry.state === 'reserved') this.#recovery.cancelled(grantedAtMs);
    this.#window.cancel(entry);
  }

  throttled(retryAfterMs: number | null, nowMs: number, grant?: Grant): void {
    this.#recovery.throttled(retryAfterMs, this.#advance(nowMs), sentAtMs(grant));
  }

  succeeded(nowMs: number, grant?: Grant): void {
    this.#recovery.succeeded(this.#advance(nowMs), sentAtMs(grant));
  }

  observe(_hints: RateLimitHints, nowMs: number): void {
    this.#advance(nowMs);
  }

  seed(entries: readonly { readonly ageMs: number; readonly tokens: number }[], nowMs: number): void {
    const now = this.#advance(nowMs);
    this.#window.insertSent(
      entries.map(({ ageMs, tokens }) => ({
        sentAtMs: now - Math.max(0, ageMs),
        requests: 1,
        tokens: wholeTokens(tokens) ?? 0,
      })),
    );
    this.#window.advance(now);
  }

  snapshot(nowMs: number): LimiterSnapshot {
    const now = this.#advance(nowMs);
    return {
      requestsInWindow: this.#window.requests,
      tokensInWindow: this.#window.tokens,
      requestsPerMinute: this.#requestsPerMinute,
      tokensPerMinute: this.#tokensPerMinute,
      pausedForMs: this.#recovery.pausedForMs(now),
    };
  }

  /** Time as the limiter takes it: an earlier moment than one already seen counts as that one. */
  #advance(nowMs: number): number {
    this.#latestMs = Math.max(this.#latestMs, nowMs);
    this.#window.advance(this.#latestMs);
    return this.#latestMs;
  }

  #impossible(cost: Cost): string | null {
    if (this.#tokensPerMinute !== null && cost.tokens > this.#tokensPerMinute) {
      return `The call needs up to ${cost.tokens} tokens, more than the ${this.#tokensPerMinute} tokens per minute allowed in all.`;
    }
    if (this.#requestsPerMinute !== null && cost.requests > this.#requestsPerMinute) {
      return `The call counts as ${cost.requests} requests, more than the ${this.#requestsPerMinute} per minute allowed in all.`;
    }
    return null;
  }

  #fitsAtMs(unit: 'requests' | 'tokens', cost: number, limit: number | null, now: number): number {
    return limit === null ? now : this.#window.fallsToAtMs(unit, limit - cost, now);
  }

  #latest(moments: readonly (readonly [BlockedBy, number])[]): { by: BlockedBy; atMs: number } {
    let latest: { by: BlockedBy; atMs: number } = { by: 'requests', atMs: Number.NEGATIVE_INFINITY };
    for (const [by, atMs] of moments) if (atMs > latest.atMs) latest = { by, atMs };
    return latest;
  }
}

function own(grant: Grant): LaneGrant {
  if (!(grant instanceof LaneGrant)) throw new TypeError('Expected a grant made by this limiter.');
  return grant;
}

function sentAtMs(grant: Grant | undefined): number | null {
  return grant === undefined ? null : own(grant).entry.sentAtMs;
}

/** Whole numbers add up without rounding errors however long the run; null for what is no count. */
function wholeTokens(tokens: number | null): number | null {
  return tokens === null || !Number.isFinite(tokens) || tokens < 0 ? null : Math.ceil(tokens);
}

function positiveLimit(name: string, limit: number | null): number | null {
  if (limit === null || (Number.isFinite(limit) && limit > 0)) return limit;
  throw new RangeError(`Expected ${name} to be a positive number or null, got ${limit}`);
}
