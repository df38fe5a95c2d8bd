/**
 * One key's account: its limits and what it used of them. Strict: a call that does not fit every window is
 * refused and, unless asked otherwise, leaves no trace in them.
 */
import { RollingWindow } from './rolling-window.js';

export const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Null means no such limit. */
export interface Limits {
  /** Requests in any 60 seconds. */
  readonly rpm: number | null;
  /** Tokens in any 60 seconds, as charged at admission. */
  readonly tpm: number | null;
  /** Requests in any 24 hours. */
  readonly rpd: number | null;
  /**
   * The span over which the minute's limits are really enforced, at most 60,000: a limit of 600 a minute over
   * 1,000 ms lets in 10 a second. The minute itself holds as well.
   */
  readonly enforceOverMs: number;
}

export type LimitName = 'requests' | 'tokens' | 'requests_per_day';

/** What a call ran into. */
export interface LimitHit {
  readonly limitedBy: LimitName;
  readonly limit: number;
  readonly used: number;
  readonly requested: number;
  /** Until this very call would fit, if nobody else came; null when it never will. */
  readonly waitMs: number | null;
}

/** One limit as headers tell it. */
export interface Standing {
  readonly limit: number;
  readonly remaining: number;
  /** Until the whole limit is free again. */
  readonly resetMs: number;
}

/** The limits there may be; those that are enforced are over the span that really is, where that is not the minute. */
export type RuleName = 'requests' | 'enforcedRequests' | 'tokens' | 'enforcedTokens' | 'requestsPerDay';

/** A limit over one span. */
interface Rule {
  readonly limitedBy: LimitName;
  readonly window: RollingWindow;
  readonly limit: number;
}

export class Account {
  #limits: Limits;
  #minute = new RollingWindow(MINUTE_MS);
  #enforced = this.#minute;
  #day: RollingWindow | null = null;
  readonly #rules = new Map<RuleName, Rule>();

  constructor(limits: Limits) {
    this.#limits = limits;
    this.configure(limits);
  }

  /** Changes the limits; what was used already still counts. */
  configure(limits: Limits): void {
    this.#limits = limits;
    const { rpm, tpm, rpd } = limits;
    const enforceOverMs = Math.min(limits.enforceOverMs, MINUTE_MS);
    if (this.#enforced.lengthMs !== enforceOverMs) {
      this.#enforced = enforceOverMs === MINUTE_MS ? this.#minute : this.#minute.withLength(enforceOverMs);
    }
    if (rpd === null) this.#day = null;
    else this.#day ??= this.#minute.withLength(DAY_MS);
    this.#rules.clear();
    const add = (
      name: RuleName,
      limitedBy: LimitName,
      window: RollingWindow | null,
      limit: number | null,
    ): void => {
      if (window !== null && limit !== null) this.#rules.set(name, { limitedBy, window, limit });
    };
    // Never nothing, or no call could ever pass.
    const share = (perMinute: number | null): number | null =>
      perMinute && Math.max(1, Math.floor((perMinute * enforceOverMs) / MINUTE_MS));
    add('requests', 'requests', this.#minute, rpm);
    add('enforcedRequests', 'requests', this.#enforced, share(rpm));
    add('tokens', 'tokens', this.#minute, tpm);
    add('enforcedTokens', 'tokens', this.#enforced, share(tpm));
    add('requestsPerDay', 'requests_per_day', this.#day, rpd);
  }

  get limits(): Limits {
    return this.#limits;
  }

  /** Lets a call in and charges it. @returns what it ran into; null when it was let in */
  admit(nowMs: number, tokens: number): LimitHit | null {
    const { tpm } = this.#limits;
    if (tpm !== null && tokens > tpm) {
      const used = this.#minute.tokens(nowMs);
      return { limitedBy: 'tokens', limit: tpm, used, requested: tokens, waitMs: null };
    }
    let longestMs = 0;
    let hit: Rule | null = null;
    for (const [name, rule] of this.#rules) {
      // Where the minute itself is enforced, it is asked once.
      if (name.startsWith('enforced') && rule.window === this.#minute) continue;
      const waitMs = waitFor(rule, tokens, nowMs);
      if (waitMs <= longestMs) continue;
      longestMs = waitMs;
      hit = rule;
    }
    if (hit === null) {
      this.charge(nowMs, tokens);
      return null;
    }
    const { limitedBy, limit } = hit;
    const requested = limitedBy === 'tokens' ? tokens : 1;
    return { limitedBy, limit, used: usedOf(hit, nowMs), requested, waitMs: longestMs };
  }

  /** Counts a call without asking. */
  charge(nowMs: number, tokens: number): void {
    this.#minute.add(nowMs, tokens);
    if (this.#enforced !== this.#minute) this.#enforced.add(nowMs, tokens);
    this.#day?.add(nowMs, tokens);
  }

  /** @returns null where there is no such limit */
  standing(name: RuleName, nowMs: number): Standing | null {
    const rule = this.#rules.get(name);
    if (rule === undefined) return null;
    const { limit, window } = rule;
    const remaining = Math.max(0, limit - usedOf(rule, nowMs));
    return { limit, remaining, resetMs: window.msUntilEmpty(nowMs) };
  }
}

function waitFor({ limitedBy, window, limit }: Rule, tokens: number, nowMs: number): number {
  return limitedBy === 'tokens'
    ? // A call larger than a short span's share passes when the span is empty: the minute can hold it.
      window.msUntilTokensAtMost(Math.max(0, limit - tokens), nowMs)
    : window.msUntilFewerThan(limit, nowMs);
}

function usedOf({ limitedBy, window }: Rule, nowMs: number): number {
  return limitedBy === 'tokens' ? window.tokens(nowMs) : window.requests(nowMs);
}
