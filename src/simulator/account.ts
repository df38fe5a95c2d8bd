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

export type Admission =
  | { readonly admitted: true }
  | {
      readonly admitted: false;
      readonly limitedBy: LimitName;
      readonly limit: number;
      readonly used: number;
      readonly requested: number;
      /** Until this very call would fit, if nobody else came; null when it never will. */
      readonly waitMs: number | null;
    };

/** One limit as headers tell it. */
export interface Standing {
  readonly limit: number;
  readonly remaining: number;
  /** Until the whole limit is free again. */
  readonly resetMs: number;
}

export interface AccountStanding {
  readonly requests: Standing | null;
  readonly tokens: Standing | null;
  readonly requestsPerDay: Standing | null;
  /** The span that is really enforced, for servers whose headers tell that instead of the minute. */
  readonly enforcedRequests: Standing | null;
  readonly enforcedTokens: Standing | null;
}

interface Check {
  readonly limitedBy: LimitName;
  readonly limit: number;
  readonly used: number;
  readonly requested: number;
  readonly waitMs: number;
}

export class Account {
  #limits: Limits;
  #minute = new RollingWindow(MINUTE_MS);
  #enforced: RollingWindow | null = null;
  #day: RollingWindow | null = null;

  constructor(limits: Limits) {
    this.#limits = limits;
    this.configure(limits);
  }

  /** Changes the limits; what was used already still counts. */
  configure(limits: Limits): void {
    this.#limits = limits;
    if (limits.enforceOverMs >= MINUTE_MS) this.#enforced = null;
    else if (this.#enforced?.lengthMs !== limits.enforceOverMs)
      this.#enforced = this.#minute.withLength(limits.enforceOverMs);
    if (limits.rpd === null) this.#day = null;
    else this.#day ??= this.#minute.withLength(DAY_MS);
  }

  get limits(): Limits {
    return this.#limits;
  }

  /** Lets a call in and charges it, or says what it ran into. */
  admit(nowMs: number, tokens: number): Admission {
    const { tpm } = this.#limits;
    if (tpm !== null && tokens > tpm) {
      const used = this.#minute.tokens(nowMs);
      return { admitted: false, limitedBy: 'tokens', limit: tpm, used, requested: tokens, waitMs: null };
    }
    let longest: Check | null = null;
    for (const check of this.#checks(nowMs, tokens)) {
      if (check.waitMs > 0 && check.waitMs > (longest?.waitMs ?? 0)) longest = check;
    }
    if (longest !== null) return { admitted: false, ...longest };
    this.charge(nowMs, tokens);
    return { admitted: true };
  }

  /** Counts a call without asking. */
  charge(nowMs: number, tokens: number): void {
    this.#minute.add(nowMs, tokens);
    this.#enforced?.add(nowMs, tokens);
    this.#day?.add(nowMs, tokens);
  }

  standing(nowMs: number): AccountStanding {
    const { rpm, tpm, rpd } = this.#limits;
    const enforced = this.#enforced ?? this.#minute;
    return {
      requests: rpm === null ? null : requestStanding(this.#minute, rpm, nowMs),
      tokens: tpm === null ? null : tokenStanding(this.#minute, tpm, nowMs),
      requestsPerDay: rpd === null || this.#day === null ? null : requestStanding(this.#day, rpd, nowMs),
      enforcedRequests: rpm === null ? null : requestStanding(enforced, this.#share(rpm), nowMs),
      enforcedTokens: tpm === null ? null : tokenStanding(enforced, this.#share(tpm), nowMs),
    };
  }

  *#checks(nowMs: number, tokens: number): Generator<Check> {
    const { rpm, tpm, rpd } = this.#limits;
    if (rpm !== null) {
      yield requestCheck('requests', this.#minute, rpm, nowMs);
      if (this.#enforced !== null) yield requestCheck('requests', this.#enforced, this.#share(rpm), nowMs);
    }
    if (tpm !== null) {
      yield tokenCheck(this.#minute, tpm, tokens, nowMs);
      if (this.#enforced !== null) yield tokenCheck(this.#enforced, this.#share(tpm), tokens, nowMs);
    }
    if (rpd !== null && this.#day !== null) yield requestCheck('requests_per_day', this.#day, rpd, nowMs);
  }

  /** A minute's limit cut down to the enforced span; never nothing, or no call could ever pass. */
  #share(perMinute: number): number {
    return Math.max(1, Math.floor((perMinute * Math.min(this.#limits.enforceOverMs, MINUTE_MS)) / MINUTE_MS));
  }
}

function requestCheck(limitedBy: LimitName, window: RollingWindow, limit: number, nowMs: number): Check {
  const waitMs = window.msUntilFewerThan(limit, nowMs);
  return { limitedBy, limit, used: window.requests(nowMs), requested: 1, waitMs };
}

function tokenCheck(window: RollingWindow, limit: number, tokens: number, nowMs: number): Check {
  // A call larger than a short span's share passes when the span is empty: the minute can hold it.
  const waitMs = window.msUntilTokensAtMost(Math.max(0, limit - tokens), nowMs);
  return { limitedBy: 'tokens', limit, used: window.tokens(nowMs), requested: tokens, waitMs };
}

function requestStanding(window: RollingWindow, limit: number, nowMs: number): Standing {
  const remaining = Math.max(0, limit - window.requests(nowMs));
  return { limit, remaining, resetMs: window.msUntilEmpty(nowMs) };
}

function tokenStanding(window: RollingWindow, limit: number, nowMs: number): Standing {
  const remaining = Math.max(0, limit - window.tokens(nowMs));
  return { limit, remaining, resetMs: window.msUntilEmpty(nowMs) };
}
