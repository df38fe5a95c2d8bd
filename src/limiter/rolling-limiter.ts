import type { Random } from '../core/clock.js';
import type { QuotaHint, RateLimitHints } from '../core/limits.js';
import { Charging } from './charging.js';
import { DayWindow } from './day-window.js';
import { type LaneFacts, Pace } from './pace.js';
import { Quota } from './quota.js';
import { RecentCalls } from './recent-calls.js';
import { Recovery } from './recovery.js';
import type { BlockedBy, Cost, Grant, RefusalEffect, RefusalReason, Reservation } from './reservation.js';
import { type Amount, type Amounts, RollingWindow, type WindowEntry } from './rolling-window.js';
import type { LimiterSnapshot } from './snapshot.js';
import { StrayRefusals } from './stray-refusals.js';

export interface SeedEntry {
  readonly ageMs: number;
  readonly tokens: number;
  readonly requests?: number;
}

export interface LimiterOptions {
  /** Null: not limited by the user; the server's headers may still teach a limit. */
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  /** Over any 24 hours. */
  readonly requestsPerDay?: number | null;
  readonly windowMs?: number;
  /**
   * Lengthens the window: calls sent `windowMs` apart may reach the server closer together than that, because
   * the way there takes a varying time.
   */
  readonly marginMs?: number;
  readonly random: Random;
}

const MINUTE_MS = 60_000;
const DEFAULT_MARGIN_MS = 250;
/** How much later than a call another one may have been sent and yet have reached the server before it. */
const OVERTAKING_MS = 1_000;
/** The server's counts are compared with ours this often; at every answer would cost more than it tells. */
const COMPARE_EVERY_MS = 250;
/** The server's count may differ from ours by so much, of the limit, before others are suspected. */
const COUNTING_SLACK = 0.02;

class LaneGrant implements Grant {
  settled = false;
  /** What the window held when the call was sent, itself included. */
  sumsWhenSent: Amounts | null = null;

  constructor(
    readonly cost: Cost,
    readonly entry: WindowEntry,
    readonly grantedAtMs: number,
    /** What the pace was charged for it. */
    readonly spanMs: number,
  ) {}
}

/** Puts the parts together: each knows one thing, this knows in which order they are asked. See limiter.ts. */
export class RollingLimiter {
  readonly #requests: Quota;
  readonly #tokens: Quota;
  readonly #requestsPerDay: Quota;
  readonly #window: RollingWindow;
  readonly #day = new DayWindow();
  readonly #recent = new RecentCalls();
  readonly #charging = new Charging();
  readonly #pace = new Pace();
  readonly #stray = new StrayRefusals();
  readonly #recovery: Recovery;
  #latestMs = Number.NEGATIVE_INFINITY;
  #compareAtMs = Number.NEGATIVE_INFINITY;

  readonly #laneFacts: LaneFacts;

  constructor(options: LimiterOptions) {
    this.#requests = new Quota(positiveLimit('requestsPerMinute', options.requestsPerMinute));
    this.#tokens = new Quota(positiveLimit('tokensPerMinute', options.tokensPerMinute));
    this.#requestsPerDay = new Quota(positiveLimit('requestsPerDay', options.requestsPerDay ?? null));
    this.#window = new RollingWindow(
      (options.windowMs ?? MINUTE_MS) + (options.marginMs ?? DEFAULT_MARGIN_MS),
    );
    this.#recovery = new Recovery(options.random);
    const limited = (): boolean => this.#requests.limit !== null || this.#tokens.limit !== null;
    this.#laneFacts = {
      get limited() {
        return limited();
      },
      letInPerMs: (spanMs, untilMs) => {
        const { requests, tokens } = this.#recent.perMs(spanMs, untilMs);
        return { requests, share: this.#spanMs(requests, tokens) };
      },
    };
  }

  reserve(asked: Cost, nowMs: number): Reservation {
    const now = this.#advance(nowMs);
    const amounts = amountsOf(asked);
    const impossible = this.#impossible(amounts);
    if (impossible !== null) return { granted: false, impossible: true, reason: impossible };

    const flowing = this.#recovery.isFlowingAt(now);
    if (this.#recovery.pausedForMs(now) === 0) this.#pace.advance(this.#laneFacts, flowing, now);
    const { by, atMs } = this.#opensAt(amounts, now);
    if (atMs > now) return { granted: false, impossible: false, waitMs: atMs - now, blockedBy: by };

    this.#recovery.granted(now);
    const spanMs = this.#spanMs(amounts.requests, amounts[this.#charging.counted]);
    this.#pace.spend(spanMs, now);
    this.#day.reserve(amounts.requests);
    this.#charging.opened(amounts.tokensAtCap);
    return { granted: true, grant: new LaneGrant(asked, this.#window.reserve(amounts), now, spanMs) };
  }

  sent(grant: Grant, nowMs: number): void {
    this.#send(own(grant), this.#advance(nowMs));
  }

  commit(grant: Grant, actualTokens: number | null, nowMs: number): void {
    const now = this.#advance(nowMs);
    const call = own(grant);
    if (call.settled) return;
    call.settled = true;
    this.#send(call, now);
    this.#charging.closed(call.entry.amounts.tokensAtCap);
    const actual = wholeTokens(actualTokens);
    if (actual === null) return;
    const { entry } = call;
    const before = entry.amounts[this.#charging.counted];
    this.#recent.correct(0, actual - entry.amounts.tokens, entry.sentAtMs ?? now);
    this.#window.correct(entry, 'tokens', actual);
    this.#window.correct(entry, 'tokensHeld', actual);
    const capCharged = actual > 0 && call.cost.tokensAtCap !== undefined;
    this.#window.correct(
      entry,
      'tokensAtCap',
      capCharged ? Math.max(actual, entry.amounts.tokensAtCap) : actual,
    );
    if (entry.amounts[this.#charging.counted] !== before) {
      this.#pace.giveBack(
        call.spanMs - this.#spanMs(entry.amounts.requests, entry.amounts[this.#charging.counted]),
      );
    }
  }

  cancel(grant: Grant, nowMs: number): void {
    this.#advance(nowMs);
    const call = own(grant);
    if (call.settled) return;
    call.settled = true;
    if (call.entry.state !== 'reserved') return;
    this.#charging.closed(call.entry.amounts.tokensAtCap);
    this.#window.cancel(call.entry);
    this.#day.cancel(call.entry.amounts.requests);
    this.#recovery.cancelled(call.grantedAtMs);
    this.#pace.giveBack(call.spanMs);
  }

  throttled(
    retryAfterMs: number | null,
    nowMs: number,
    grant?: Grant,
    reason: RefusalReason = 'rate',
  ): RefusalEffect {
    const now = this.#advance(nowMs);
    const call = grant === undefined ? null : own(grant);
    const sentAtMs = call?.entry.sentAtMs ?? null;
    this.#stray.refused(now, sentAtMs);
    if (call !== null && sentAtMs !== null) {
      this.#recent.correct(-call.entry.amounts.requests, -call.entry.amounts.tokens, sentAtMs);
    }
    const held = this.#laneFacts.limited || this.#pace.share !== null;
    if (this.#stray.areStray(reason, held, now) && this.#recovery.isFlowingAt(now)) return 'stray';
    if (reason === 'unreachable') {
      this.#recovery.throttled(retryAfterMs, now, sentAtMs);
      return 'slowed';
    }
    if (reason !== 'overload' || retryAfterMs !== null) {
      const refused = this.#recovery.throttled(retryAfterMs, now, sentAtMs);
      if (refused === 'known' || refused === 'probing') return 'slowed';
    }
    if (reason === 'rate' && this.#pace.share !== null && this.#explainedByCharges(call)) return 'slowed';
    if (reason === 'overload') this.#stray.slowed(now);
    this.#pace.refused({
      atMs: now,
      sentAtMs: sentAtMs ?? now,
      reason,
      longStorm: this.#recovery.longStormAt(now),
      rare: this.#stray.areRare(now),
    });
    return 'slowed';
  }

  succeeded(nowMs: number, grant?: Grant): void {
    const now = this.#advance(nowMs);
    const call = grant === undefined ? null : own(grant);
    const sentAtMs = call?.entry.sentAtMs ?? null;
    this.#stray.letIn(now, sentAtMs);
    this.#recovery.succeeded(now, sentAtMs);
    if (call?.sumsWhenSent) this.#charging.accepted(call.sumsWhenSent.tokensAtCap, this.#tokens.limit);
  }

  observe(hints: RateLimitHints, nowMs: number, grant?: Grant): void {
    const now = this.#advance(nowMs);
    if (hints.requestsPerDay?.limit !== undefined) this.#requestsPerDay.learn(hints.requestsPerDay.limit);
    this.#learnPerMinute(this.#requests, hints.requests, now);
    this.#learnPerMinute(this.#tokens, hints.tokens, now);
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
    return {
      requestsInWindow: this.#window.sums.requests,
      tokensInWindow: this.#window.sums[this.#charging.counted],
      requestsInDay: this.#day.requests,
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
      pausedForMs: this.#recovery.pausedForMs(now),
    };
  }

  #paceNow(): LimiterSnapshot['pace'] {
    const { share, assumedRequestsPerMs } = this.#pace;
    if (share === null) return null;
    const requests =
      this.#requests.limit ?? (assumedRequestsPerMs === null ? null : assumedRequestsPerMs * MINUTE_MS);
    const tokens = this.#tokens.limit;
    return {
      requestsPerMinute: requests === null ? null : requests * share,
      tokensPerMinute: tokens === null ? null : tokens * share,
    };
  }

  /** Time as the limiter takes it: an earlier moment than one already seen counts as that one. */
  #advance(nowMs: number): number {
    this.#latestMs = Math.max(this.#latestMs, nowMs);
    this.#window.advance(this.#latestMs);
    this.#day.advance(this.#latestMs);
    return this.#latestMs;
  }

  /** When everything lets a call go, and what does so last. */
  #opensAt(amounts: Amounts, now: number): { by: BlockedBy; atMs: number } {
    const window = this.#window;
    const opens: readonly (readonly [BlockedBy, number])[] = [
      [
        'requests',
        Math.max(
          this.#requests.fitsAtMs(
            amounts.requests,
            window.sums.requests,
            window.leaving('requests', now),
            now,
          ),
          this.#pace.readyAtMs(now),
        ),
      ],
      ['tokens', this.#tokensFitAtMs(amounts, now)],
      [
        'requests_per_day',
        this.#requestsPerDay.fitsAtMs(amounts.requests, this.#day.requests, this.#day.leaving(now), now),
      ],
      ['pause', this.#recovery.readyAtMs(now)],
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
    if (entry.state !== 'reserved') return;
    this.#window.send(entry, now);
    this.#day.send(entry.amounts.requests, now);
    this.#recent.sent(entry.amounts.requests, entry.amounts.tokens, now);
    call.sumsWhenSent = { ...this.#window.sums };
  }

  /** Only what the user declared: a learnt limit may be wrong, and the server says so itself when it is not. */
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

  /** How much of the lane's time a call takes at full speed. */
  #spanMs(requests: number, tokens: number): number {
    const requestLimit = this.#requests.limit;
    const tokenLimit = this.#tokens.limit;
    if (requestLimit === null && tokenLimit === null) {
      const assumed = this.#pace.assumedRequestsPerMs;
      return assumed === null ? 0 : requests / assumed;
    }
    return Math.max(
      requestLimit === null ? 0 : (requests * MINUTE_MS) / requestLimit,
      tokenLimit === null ? 0 : (tokens * MINUTE_MS) / tokenLimit,
    );
  }

  #learnPerMinute(quota: Quota, hint: QuotaHint | undefined, now: number): void {
    if (hint?.limit === undefined) return;
    const windowMs = hint.windowMs ?? MINUTE_MS;
    if (!(windowMs > 0) || windowMs > MINUTE_MS) return;
    quota.learn((hint.limit * MINUTE_MS) / windowMs);
    if (windowMs < MINUTE_MS) this.#pace.keepSpread(now);
  }

  /** What the window held of our own when the server took this call, at most. */
  #ownUse(amount: Amount, call: LaneGrant): number | null {
    const { sentAtMs } = call.entry;
    if (call.sumsWhenSent === null || sentAtMs === null || call.entry.state === 'left') return null;
    return call.sumsWhenSent[amount] + this.#window.sentSince(amount, call.entry, sentAtMs + OVERTAKING_MS);
  }

  #seeOthers(quota: Quota, hint: QuotaHint | undefined, ownUse: number | null, now: number): void {
    const limit = hint?.limit ?? quota.limit;
    if (ownUse === null || limit === null || hint?.remaining === undefined) return;
    const others = limit - Math.max(0, hint.remaining) - ownUse;
    const fadesMs = hint.resetMs !== undefined && hint.resetMs > 0 ? hint.resetMs : this.#window.lengthMs;
    quota.setOthers(others > limit * COUNTING_SLACK ? others : 0, now, fadesMs);
  }

  #compareCharges(call: LaneGrant, hint: QuotaHint | undefined): void {
    const limit = hint?.limit ?? this.#tokens.limit;
    const expected = this.#ownUse('tokens', call);
    const atCap = this.#ownUse('tokensAtCap', call);
    if (limit === null || hint?.remaining === undefined || expected === null || atCap === null) return;
    this.#charging.compared(limit - hint.remaining, expected, atCap, limit);
  }

  #explainedByCharges(call: LaneGrant | null): boolean {
    if (call === null || call.sumsWhenSent === null) return false;
    const { tokensHeld, tokensAtCap } = call.sumsWhenSent;
    return this.#charging.explains(tokensHeld, tokensAtCap, this.#tokens.limit);
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

/** Whole numbers add up without rounding errors however long the run; null for what is no count. */
function wholeTokens(tokens: number | null): number | null {
  return tokens === null || !Number.isFinite(tokens) || tokens < 0 ? null : Math.ceil(tokens);
}

function positiveLimit(name: string, limit: number | null): number | null {
  if (limit === null || (Number.isFinite(limit) && limit > 0)) return limit;
  throw new RangeError(`Expected ${name} to be a positive number or null, got ${limit}`);
}
