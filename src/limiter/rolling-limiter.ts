import type { Random } from '../core/clock.js';
import type { QuotaHint, RateLimitHints } from '../core/limits.js';
import { Charging } from './charging.js';
import { DayWindow } from './day-window.js';
import { lower, Quota } from './quota.js';
import type { Call } from './recent-calls.js';
import type { BlockedBy, Cost, Grant, RefusalEffect, RefusalReason, Reservation } from './reservation.js';
import { type Amount, type Amounts, RollingWindow, type WindowEntry } from './rolling-window.js';
import { QUOTA_AMOUNTS, type QuotaAmounts } from './shared-quota.js';
import type { LimiterSnapshot } from './snapshot.js';
import { Throttle } from './throttle.js';

export interface SeedEntry {
  readonly ageMs: number;
  readonly tokens: number;
  readonly requests?: number;
}

/** What the user allows. */
export interface DeclaredLimits {
  /** Null: not limited by the user, but a limit may still be learnt from the server's headers. */
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  /** Over any 24 hours. */
  readonly requestsPerDay?: number | null;
}

/** See `Limiter.setShare`; times are monotonic milliseconds. */
export interface Share extends QuotaAmounts {
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface LimiterOptions extends DeclaredLimits {
  readonly windowMs?: number;
  /**
   * Lengthens the window, because the way to the server takes a varying time: calls sent `windowMs` apart may arrive closer
   * together than that.
   */
  readonly marginMs?: number;
  readonly random: Random;
}

const MINUTE_MS = 60_000;
const DEFAULT_MARGIN_MS = 250;
/** A call sent up to this much later than another may have reached the server before it. */
const OVERTAKING_MS = 1_000;
/** How often the server's counts are compared with ours; doing so at every answer would cost more than it is worth. */
const COMPARE_EVERY_MS = 250;
/** How soon whoever waits for a share asks again by itself; it is woken when the share has changed. */
const SHARE_WAIT_MS = 1_000;
/** The server's count may differ from ours by this share of the limit before others are suspected. */
const COUNTING_SLACK = 0.02;

class LaneGrant implements Grant {
  settled = false;
  /** What the window held when the call was sent, the call included. */
  sumsWhenSent: Amounts | null = null;
  /** The tokens per minute that the user allowed then. */
  allowedTokensWhenSent: number | null = null;

  /** @param limitsAge how many times the limits had been changed when the call was granted */
  constructor(
    readonly cost: Cost,
    readonly entry: WindowEntry,
    readonly call: Call,
    readonly limitsAge: number,
  ) {}
}

/** Puts the parts together: each knows one thing, and this knows the order in which to ask them. See limiter.ts. */
export class RollingLimiter {
  readonly #requests = new Quota();
  readonly #tokens = new Quota();
  readonly #requestsPerDay = new Quota();
  #limitsAge = 0;
  readonly #window: RollingWindow;
  readonly #day = new DayWindow();
  readonly #charging = new Charging();
  readonly #throttle: Throttle;
  #latestMs = Number.NEGATIVE_INFINITY;
  #compareAtMs = Number.NEGATIVE_INFINITY;
  #share: Share | null = null;

  constructor(options: LimiterOptions) {
    this.#declare(options);
    this.#window = new RollingWindow(
      (options.windowMs ?? MINUTE_MS) + (options.marginMs ?? DEFAULT_MARGIN_MS),
    );
    this.#throttle = new Throttle(options.random);
  }

  reserve(asked: Cost, nowMs: number): Reservation {
    const now = this.#advance(nowMs);
    const amounts = amountsOf(asked);
    const impossible = this.#impossible(amounts);
    if (impossible !== null) return { granted: false, impossible: true, reason: impossible };

    this.#throttle.setLimited(this.#isLimited, now);
    const { by, atMs } = this.#opensAt(amounts, now);
    if (atMs > now) return { granted: false, impossible: false, waitMs: atMs - now, blockedBy: by };
    const shareWait = this.#shareWait(amounts, now);
    if (shareWait !== null) return shareWait;

    const call = this.#throttle.granted(this.#workOf(amounts), now);
    this.#day.reserve(amounts.requests);
    this.#charging.opened(amounts.tokensAtCap);
    return {
      granted: true,
      grant: new LaneGrant(asked, this.#window.reserve(amounts), call, this.#limitsAge),
    };
  }

  sent(grant: Grant, nowMs: number): boolean {
    const now = this.#advance(nowMs);
    const call = own(grant);
    const isShareOver = this.#share !== null && (now > this.#share.untilMs || now < this.#share.fromMs);
    if (isShareOver || !this.#mayStillGo(call)) {
      this.cancel(grant, now);
      return false;
    }
    this.#send(call, now);
    return true;
  }

  setLimits(limits: DeclaredLimits, nowMs: number): void {
    const now = this.#advance(nowMs);
    this.#declare(limits);
    this.#limitsAge += 1;
    this.#throttle.limitsChanged(now);
  }

  setShare(share: Share | null, nowMs: number): void {
    this.#advance(nowMs);
    this.#share = share;
  }

  commit(grant: Grant, actualTokens: number | null, nowMs: number): void {
    const now = this.#advance(nowMs);
    const call = own(grant);
    if (call.settled) return;
    call.settled = true;
    this.#send(call, now);
    this.#charging.closed(call.entry.amounts.tokensAtCap);
    const actual = wholeTokens(actualTokens);
    const expectedWork = this.#workOf(call.entry.amounts);
    if (actual !== null) this.#correct(call, actual);
    this.#throttle.ended(call.call, expectedWork - this.#workOf(call.entry.amounts), now);
  }

  cancel(grant: Grant, nowMs: number): void {
    this.#advance(nowMs);
    const call = own(grant);
    if (call.settled) return;
    call.settled = true;
    this.#charging.closed(call.entry.amounts.tokensAtCap);
    this.#day.cancel(call.entry.amounts.requests, call.entry.sentAtMs);
    this.#window.cancel(call.entry);
    this.#throttle.withdrawn(call.call);
  }

  throttled(
    retryAfterMs: number | null,
    nowMs: number,
    grant?: Grant,
    reason: RefusalReason = 'rate',
  ): RefusalEffect {
    const now = this.#advance(nowMs);
    const call = grant === undefined ? null : own(grant);
    const isPaced = this.#throttle.pace !== null;
    if (reason === 'rate' && isPaced && this.#explainedByCharges(call)) return 'stray';
    return this.#throttle.refused(call?.call ?? null, retryAfterMs, reason, now);
  }

  succeeded(nowMs: number, grant?: Grant): void {
    const now = this.#advance(nowMs);
    const call = grant === undefined ? null : own(grant);
    this.#throttle.succeeded(call?.call ?? null, now);
    if (call?.sumsWhenSent) {
      const limit = this.#tokens.learnt ?? call.allowedTokensWhenSent;
      this.#charging.accepted(call.sumsWhenSent.tokensAtCap, limit);
    }
  }

  observe(hints: RateLimitHints, nowMs: number, grant?: Grant): void {
    const now = this.#advance(nowMs);
    if (hints.requestsPerDay?.limit !== undefined) this.#requestsPerDay.learn(hints.requestsPerDay.limit);
    this.#learnPerMinute(this.#requests, hints.requests);
    this.#learnPerMinute(this.#tokens, hints.tokens);
    const call = grant === undefined ? null : own(grant);
    if (hints.tokens?.remaining !== undefined) {
      this.#charging.told(hints.tokens.remaining, call?.entry.sentAtMs ?? now);
    }
    if (call === null || now < this.#compareAtMs) return;
    this.#compareAtMs = now + COMPARE_EVERY_MS;
    this.#compareCharges(call, hints.tokens);
    this.#seeOthers(this.#requests, hints.requests, this.#ownUse('requests', call), now);
    this.#seeOthers(this.#tokens, hints.tokens, this.#ownUse(this.#charging.counted, call), now);
    this.#seeOthers(this.#requestsPerDay, hints.requestsPerDay, this.#day.requests, now);
  }

  seed(entries: readonly SeedEntry[], nowMs: number): void {
    const now = this.#advance(nowMs);
    const oldestFirst = [...entries].sort((a, b) => b.ageMs - a.ageMs);
    for (const { ageMs, requests = 1 } of oldestFirst) {
      this.#day.reserve(requests);
      this.#day.send(requests, now - Math.max(0, ageMs));
    }
    this.#window.insertSent(
      oldestFirst
        .filter(({ ageMs }) => ageMs < this.#window.lengthMs)
        .map(({ ageMs, requests = 1, tokens }) => ({
          sentAtMs: now - Math.max(0, ageMs),
          amounts: amountsOf({ requests, tokens }),
        })),
    );
    this.#advance(now);
  }

  snapshot(nowMs: number): LimiterSnapshot {
    const now = this.#advance(nowMs);
    const pause = this.#throttle.pauseAt(now);
    return {
      windowMs: this.#window.lengthMs,
      requestsInWindow: this.#used.requests,
      tokensInWindow: this.#used.tokens,
      requestsInDay: this.#used.requestsPerDay,
      requestsPerMinute: this.#requests.limit,
      tokensPerMinute: this.#tokens.limit,
      requestsPerDay: this.#requestsPerDay.limit,
      learnt: {
        requestsPerMinute: this.#requests.learnt,
        tokensPerMinute: this.#tokens.learnt,
        requestsPerDay: this.#requestsPerDay.learnt,
      },
      othersRequests: Math.round(this.#requests.othersAt(now)),
      othersTokens: Math.round(this.#tokens.othersAt(now)),
      chargesOutputCap: this.#charging.chargesOutputCap,
      pace: this.#paceNow(),
      pause,
      pausedForMs: pause === null ? 0 : Math.max(0, pause.untilMs - now),
    };
  }

  #paceNow(): LimiterSnapshot['pace'] {
    const { pace } = this.#throttle;
    if (pace === null) return null;
    const perMinute = (limit: number | null): number | null => (limit === null ? null : limit * pace);
    return {
      requestsPerMinute: this.#isLimited ? perMinute(this.#requests.limit) : pace * MINUTE_MS,
      tokensPerMinute: perMinute(this.#tokens.limit),
    };
  }

  /** The limiter's time never runs backwards: a moment earlier than the latest one counts as the latest. */
  #advance(nowMs: number): number {
    this.#latestMs = Math.max(this.#latestMs, nowMs);
    this.#window.advance(this.#latestMs);
    this.#day.advance(this.#latestMs);
    return this.#latestMs;
  }

  /** When every limit lets a call go, and which of them is the last to do so. */
  #opensAt(amounts: Amounts, now: number): { by: BlockedBy; atMs: number } {
    const window = this.#window;
    const ready = this.#throttle.readyAtMs(now);
    const { sums } = window;
    const opens: readonly (readonly [BlockedBy, number])[] = [
      [
        'requests',
        this.#requests.fitsAtMs(amounts.requests, sums.requests, window.leaving('requests', now), now),
      ],
      ['requests', ready.pace],
      ['tokens', this.#tokensFitAtMs(amounts, now)],
      [
        'requests_per_day',
        this.#requestsPerDay.fitsAtMs(amounts.requests, this.#day.requests, this.#day.leaving(now), now),
      ],
      ['concurrency', ready.openCalls],
      ['pause', ready.pause],
    ];
    let last: { by: BlockedBy; atMs: number } = { by: 'requests', atMs: now };
    for (const [by, atMs] of opens) if (atMs > last.atMs) last = { by, atMs };
    return last;
  }

  #tokensFitAtMs(amounts: Amounts, now: number): number {
    const fitsAtMs = (amount: Amount): number =>
      this.#tokens.fitsAtMs(
        amounts[amount],
        this.#window.sums[amount],
        this.#window.leaving(amount, now),
        now,
      );
    const atMs = fitsAtMs(this.#charging.counted);
    if (atMs > now && this.#charging.hasRoomFor(amounts.tokensAtCap)) return fitsAtMs('tokensHeld');
    return atMs;
  }

  #send(call: LaneGrant, now: number): void {
    const { entry } = call;
    if (entry.sentAtMs !== null || entry.isCancelled) return;
    this.#window.send(entry, now);
    this.#day.send(entry.amounts.requests, now);
    this.#throttle.sent(call.call, now);
    call.sumsWhenSent = { ...this.#window.sums };
    call.allowedTokensWhenSent = this.#tokens.declared;
  }

  /** Null where the call is within our share, as far as that goes. */
  #shareWait(amounts: Amounts, now: number): (Reservation & { readonly granted: false }) | null {
    const share = this.#share;
    if (share === null) return null;
    if (now < share.fromMs) {
      return { granted: false, impossible: false, waitMs: share.fromMs - now, blockedBy: 'pause' };
    }
    const { requests } = amounts;
    const wants = { requests, tokens: amounts[this.#charging.counted], requestsPerDay: requests };
    const used = this.#used;
    const fits = QUOTA_AMOUNTS.every((amount) => used[amount] + wants[amount] <= share[amount]);
    if (fits && now <= share.untilMs) return null;
    return { granted: false, impossible: false, waitMs: SHARE_WAIT_MS, blockedBy: 'share', wants };
  }

  /** What the windows hold, as far as limits go. */
  get #used(): QuotaAmounts {
    const { sums } = this.#window;
    return {
      requests: sums.requests,
      tokens: sums[this.#charging.counted],
      requestsPerDay: this.#day.requests,
    };
  }

  /** Whether a granted call still fits beside those that were sent, if the user's limits have changed since. */
  #mayStillGo({ entry, limitsAge }: LaneGrant): boolean {
    if (limitsAge === this.#limitsAge || entry.sentAtMs !== null) return true;
    const { sums, unsent } = this.#window;
    const fits = ({ declared }: Quota, cost: number, used: number): boolean =>
      declared === null || used + cost <= declared;
    const { counted } = this.#charging;
    return (
      fits(this.#requests, entry.amounts.requests, sums.requests - unsent.requests) &&
      fits(this.#tokens, entry.amounts[counted], sums[counted] - unsent[counted]) &&
      fits(this.#requestsPerDay, entry.amounts.requests, this.#day.requests - this.#day.unsent)
    );
  }

  #correct(call: LaneGrant, actual: number): void {
    const { entry } = call;
    const capCharged = actual > 0 && call.cost.tokensAtCap !== undefined;
    this.#window.correct(entry, 'tokens', actual);
    this.#window.correct(entry, 'tokensHeld', actual);
    this.#window.correct(
      entry,
      'tokensAtCap',
      capCharged ? Math.max(actual, entry.amounts.tokensAtCap) : actual,
    );
  }

  #declare(limits: DeclaredLimits): void {
    const requests = positiveLimit('requestsPerMinute', limits.requestsPerMinute);
    const tokens = positiveLimit('tokensPerMinute', limits.tokensPerMinute);
    const requestsPerDay = positiveLimit('requestsPerDay', limits.requestsPerDay ?? null);
    this.#requests.declare(requests);
    this.#tokens.declare(tokens);
    this.#requestsPerDay.declare(requestsPerDay);
  }

  /** Goes by what the user declared. A learnt limit may be wrong; if it is right, the server will say so itself. */
  #impossible({ requests, tokens }: Amounts): string | null {
    const tokenLimit = this.#tokens.declared;
    if (tokenLimit !== null && tokens > tokenLimit) {
      return `The call needs up to ${tokens} tokens, more than the ${tokenLimit} tokens per minute allowed in all.`;
    }
    const requestLimit = this.#requests.declared;
    if (requestLimit !== null && requests > requestLimit) {
      return `The call counts as ${requests} requests, more than the ${requestLimit} per minute allowed in all.`;
    }
    return null;
  }

  get #isLimited(): boolean {
    return this.#requests.limit !== null || this.#tokens.limit !== null;
  }

  /** How many milliseconds of the lane's time a call takes at full speed; without a known limit, its requests. */
  #workOf(amounts: Amounts): number {
    const requestLimit = this.#requests.limit;
    const tokenLimit = this.#tokens.limit;
    if (requestLimit === null && tokenLimit === null) return amounts.requests;
    return Math.max(
      requestLimit === null ? 0 : (amounts.requests * MINUTE_MS) / requestLimit,
      tokenLimit === null ? 0 : (amounts[this.#charging.counted] * MINUTE_MS) / tokenLimit,
    );
  }

  #learnPerMinute(quota: Quota, hint: QuotaHint | undefined): void {
    if (hint?.limit === undefined) return;
    const windowMs = hint.windowMs ?? MINUTE_MS;
    if (!(windowMs > 0) || windowMs > MINUTE_MS) return;
    quota.learn((hint.limit * MINUTE_MS) / windowMs);
    if (windowMs < MINUTE_MS) this.#throttle.keepSpread();
  }

  /** The most that the window can have held of our own calls when the server took this one. */
  #ownUse(amount: Amount, call: LaneGrant): number | null {
    const { sentAtMs } = call.entry;
    if (call.sumsWhenSent === null || sentAtMs === null || this.#window.hasLeft(call.entry)) return null;
    return call.sumsWhenSent[amount] + this.#window.sentSince(amount, call.entry, sentAtMs + OVERTAKING_MS);
  }

  #seeOthers(quota: Quota, hint: QuotaHint | undefined, ownUse: number | null, now: number): void {
    const limit = hint?.limit ?? quota.shared;
    if (ownUse === null || limit === null || hint?.remaining === undefined) return;
    const others = limit - Math.max(0, hint.remaining) - ownUse;
    const fadesMs = hint.resetMs !== undefined && hint.resetMs > 0 ? hint.resetMs : this.#window.lengthMs;
    quota.setOthers(others > limit * COUNTING_SLACK ? others : 0, now, fadesMs);
  }

  #compareCharges(call: LaneGrant, hint: QuotaHint | undefined): void {
    const limit = hint?.limit ?? this.#tokens.shared;
    const expected = this.#ownUse('tokens', call);
    const atCap = this.#ownUse('tokensAtCap', call);
    if (limit === null || hint?.remaining === undefined || expected === null || atCap === null) return;
    this.#charging.compared(limit - hint.remaining, expected, atCap, limit);
  }

  #explainedByCharges(call: LaneGrant | null): boolean {
    if (call === null || call.sumsWhenSent === null) return false;
    const { tokensHeld, tokensAtCap } = call.sumsWhenSent;
    const limit = lower(call.allowedTokensWhenSent, this.#tokens.learnt);
    return this.#charging.explains(tokensHeld, tokensAtCap, limit);
  }
}

function own(grant: Grant): LaneGrant {
  if (!(grant instanceof LaneGrant)) throw new TypeError('Expected a grant made by a limiter.');
  return grant;
}

function amountsOf(cost: Cost): Amounts {
  const tokens = wholeTokens(cost.tokens) ?? 0;
  const tokensAtCap = Math.max(tokens, wholeTokens(cost.tokensAtCap ?? null) ?? 0);
  return { requests: cost.requests, tokens, tokensHeld: tokensAtCap, tokensAtCap };
}

/** Whole numbers add up without rounding errors, however long the run. Null for what is not a count. */
function wholeTokens(tokens: number | null): number | null {
  return tokens === null || !Number.isFinite(tokens) || tokens < 0 ? null : Math.ceil(tokens);
}

function positiveLimit(name: string, limit: number | null): number | null {
  if (limit === null || (Number.isFinite(limit) && limit > 0)) return limit;
  throw new RangeError(`Expected ${name} to be a positive number or null, got ${limit}`);
}
