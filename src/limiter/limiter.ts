/**
 * The limiter of one lane: says whether a call may go now or how long it has to wait, from the exact rolling
 * minute of requests and tokens (rolling-window.ts) and day of requests (day-window.ts), from what the server
 * says of its quotas (quota.ts) and of its charges (charging.ts), and from what it refused (throttle.ts). Pure: it
 * never sleeps and reads no clock; every method is told the time, monotonic milliseconds.
 *
 * It serves whoever asks. To serve those who wait in the order in which they came is up to the caller's gate: one asks, the
 * others queue behind it.
 *
 * The life of a call: `reserve` → `sent` → `observe` → `commit`, then `succeeded` or `throttled`; or `reserve` →
 * `cancel` when it was never sent, or reached nobody. The window counts the call from `sent`; until then it counts as
 * if it could be sent at any moment.
 */
import type { RateLimitHints } from '../core/limits.js';
import type { Cost, Grant, RefusalEffect, RefusalReason, Reservation } from './reservation.js';
import {
  type DeclaredLimits,
  type LimiterOptions,
  RollingLimiter,
  type SeedEntry,
  type Share,
} from './rolling-limiter.js';
import type { LimiterSnapshot } from './snapshot.js';

export type { BlockedBy, Cost, Grant, RefusalEffect, RefusalReason, Reservation } from './reservation.js';
export type { DeclaredLimits, LimiterOptions, SeedEntry, Share } from './rolling-limiter.js';
export type { LimiterSnapshot } from './snapshot.js';

export interface Limiter {
  /** Asks for one call. If granted, send it soon, or `cancel`. */
  reserve(cost: Cost, nowMs: number): Reservation;
  /**
   * The request leaves now; the window counts it from here on. Call it as close to the socket as can be.
   * @returns false where a limit fell since the call was granted and it no longer fits: it must not leave, its
   *   place is given back, and whoever still wants to make it asks again
   */
  sent(grant: Grant, nowMs: number): boolean;
  /**
   * The call is over. `actualTokens` replaces the reservation at the call's own place in the window; null: unknown, the
   * reservation stays. Also for failed calls, since servers count them. Takes effect once.
   */
  commit(grant: Grant, actualTokens: number | null, nowMs: number): void;
  /**
   * The call was never sent, or was sent and provably reached nobody (refused, no such host): its place, its tokens
   * and its request of the day are given back.
   */
  cancel(grant: Grant, nowMs: number): void;
  /**
   * The server refused a call. `slowed`: most of the last calls were refused, and the lane is silent for as long as the
   * server asked; then one call tries, and the others follow gently. `stray`: only the refused call has to wait; the limiter
   * finds out on its own whether the lane's speed was the cause. `unreachable` is for the caller to conclude, and to repeat
   * for each call that fails: the lane is silent at once, and one call at a time tries. Pass the `grant`, so that late
   * refusals from one burst are not taken for a new one.
   */
  throttled(retryAfterMs: number | null, nowMs: number, grant?: Grant, reason?: RefusalReason): RefusalEffect;
  /** A call was accepted; ends a pause gently. */
  succeeded(nowMs: number, grant?: Grant): void;
  /**
   * What the server said about its limits in the headers of an answer or a refusal. Call it before `commit`, with the grant
   * of that call: what is left refers to the moment when it was sent.
   */
  observe(hints: RateLimitHints, nowMs: number, grant?: Grant): void;
  /**
   * Replaces what the user allows, from this moment on: a fall holds for every call that is not sent yet, granted or
   * not, and what was sent before counts against the new limits as it did against the old. Whoever was told to wait,
   * or that a call is impossible, asks again.
   * @throws RangeError for a limit that is not a positive number; then the limits stay as they were
   */
  setLimits(limits: DeclaredLimits, nowMs: number): void;
  /**
   * Where others send under the same limits: what the windows may hold of ours. Nothing is granted or sent beyond it,
   * before `fromMs`, or after `untilMs`; null: all that the limits allow. What was sent before is never above a share that
   * is not less than what `snapshot` shows.
   */
  setShare(share: Share | null, nowMs: number): void;
  /** Calls made before this process started; those older than a day are ignored. `requests` defaults to 1. */
  seed(entries: readonly SeedEntry[], nowMs: number): void;
  snapshot(nowMs: number): LimiterSnapshot;
}

/** @throws RangeError for a limit that is not a positive number. */
export function createLimiter(options: LimiterOptions): Limiter {
  return new RollingLimiter(options);
}
