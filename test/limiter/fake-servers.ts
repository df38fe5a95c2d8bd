/**
 * Servers that judge calls by rules of their own, written without a look at the limiter: rolling spans, spans
 * fixed to the clock, token buckets, what they charge and what they say of it.
 */
import type { RateLimitHints } from '../../src/core/limits.js';
import type { ArrivingCall, FakeServer, ServerReply } from './simulated-lane.js';

/** A rule lets a call of some weight in or not; what was let in is put on its account. */
export interface Rule {
  admits(weight: number, nowMs: number): boolean;
  charge(weight: number, nowMs: number): void;
  used(nowMs: number): number;
}

/** At most `limit` in any span of `spanMs`. @param limit a function where it changes: what it is at a moment */
export function rolling(limit: number | ((nowMs: number) => number), spanMs: number): Rule {
  const limitAt = typeof limit === 'number' ? () => limit : limit;
  const charged: { atMs: number; weight: number }[] = [];
  let oldest = 0;
  let total = 0;
  const used = (nowMs: number): number => {
    for (
      let next = charged[oldest];
      next !== undefined && next.atMs <= nowMs - spanMs;
      next = charged[oldest]
    ) {
      total -= next.weight;
      oldest += 1;
    }
    return total;
  };
  return {
    used,
    admits: (weight, nowMs) => used(nowMs) + weight <= limitAt(nowMs),
    charge: (weight, nowMs) => {
      charged.push({ atMs: nowMs, weight });
      total += weight;
    },
  };
}

/** At most `limit` between two strokes of the clock. */
export function fixedSpans(limit: number, spanMs: number): Rule {
  let span = -1;
  let total = 0;
  const used = (nowMs: number): number => {
    if (Math.floor(nowMs / spanMs) !== span) {
      span = Math.floor(nowMs / spanMs);
      total = 0;
    }
    return total;
  };
  return {
    used,
    admits: (weight, nowMs) => used(nowMs) + weight <= limit,
    charge: (weight) => {
      total += weight;
    },
  };
}

/** Holds `depth` and refills `perSecond`. */
export function bucket(depth: number, perSecond: number): Rule {
  let level = 0;
  let asOfMs = 0;
  const used = (nowMs: number): number => {
    level = Math.max(0, level - (perSecond * (nowMs - asOfMs)) / 1_000);
    asOfMs = nowMs;
    return level;
  };
  return {
    used,
    admits: (weight, nowMs) => used(nowMs) + weight <= depth,
    charge: (weight) => {
      level += weight;
    },
  };
}

export interface FakeServerOptions {
  readonly requests?: Rule;
  readonly tokens?: Rule;
  /** What a call is charged in tokens when it is let in. */
  readonly charges?: 'use' | 'cap';
  /** Refused calls count as requests too. */
  readonly countsRefused?: boolean;
  /** Named in the answers' headers; absent: the headers say nothing. */
  readonly tellsRequests?: number;
  readonly tellsTokens?: number;
  readonly retryAfterMs?: number;
}

export function fakeServer(options: FakeServerOptions): FakeServer & { readonly books: Books } {
  const books: Books = { acceptedCalls: 0, refusedCalls: 0, usedTokens: 0, chargedTokens: 0 };
  const { requests, tokens } = options;
  const hints = (nowMs: number): RateLimitHints => ({
    ...(options.tellsRequests !== undefined &&
      requests && {
        requests: {
          limit: options.tellsRequests,
          remaining: Math.max(0, Math.floor(options.tellsRequests - requests.used(nowMs))),
        },
      }),
    ...(options.tellsTokens !== undefined &&
      tokens && {
        tokens: {
          limit: options.tellsTokens,
          remaining: Math.max(0, Math.floor(options.tellsTokens - tokens.used(nowMs))),
        },
      }),
  });
  return {
    books,
    arrive(call: ArrivingCall, nowMs: number): ServerReply {
      const use = call.promptTokens + call.outputTokens;
      const weight = options.charges === 'cap' ? call.promptTokens + call.outputCap : use;
      const accepted = (requests?.admits(1, nowMs) ?? true) && (tokens?.admits(weight, nowMs) ?? true);
      if (accepted) {
        requests?.charge(1, nowMs);
        tokens?.charge(weight, nowMs);
        books.acceptedCalls += 1;
        books.usedTokens += use;
        books.chargedTokens += weight;
      } else {
        if (options.countsRefused) requests?.charge(1, nowMs);
        books.refusedCalls += 1;
      }
      return {
        accepted,
        hints: hints(nowMs),
        ...(options.retryAfterMs !== undefined && !accepted && { retryAfterMs: options.retryAfterMs }),
      };
    },
  };
}

export interface Books {
  acceptedCalls: number;
  refusedCalls: number;
  usedTokens: number;
  chargedTokens: number;
}
