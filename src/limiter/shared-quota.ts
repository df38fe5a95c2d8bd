/**
 * One quota for several senders, each with a limiter of its own: a row that all of them read and write says how much of
 * the limits is whose. Pure: it is given the row and the time, by the clock of whoever keeps the row.
 *
 *   sum over the senders of what is theirs ≤ limit     and each sender's window ≤ what is its own, at every moment;
 *   so no window of all of them together exceeds the limit, wherever its edges are.
 *
 * A sender says what its windows hold, keeps that, and is given a chunk more when a call waits. While others wait it keeps
 * nothing beyond what its windows hold, so that what leaves its windows goes round, a chunk to each in the order in which
 * they began to wait. A sender that is heard of no more may have used all it was given, at the last moment of its lease:
 * that counts for a window longer, then it is free.
 */

export const QUOTA_AMOUNTS = ['requests', 'tokens', 'requestsPerDay'] as const;
export type QuotaAmount = (typeof QUOTA_AMOUNTS)[number];
export type QuotaAmounts = Readonly<Record<QuotaAmount, number>>;

export interface QuotaAsk {
  /** Another for every process and lane. */
  readonly sender: string;
  /** Not less than what its windows hold: it sends nothing beyond that until it has the answer. */
  readonly keeps: QuotaAmounts;
  /** What the call needs that waits; null: none does. */
  readonly wants: QuotaAmounts | null;
  /** In force for this sender; null: not limited. */
  readonly limits: Readonly<Record<QuotaAmount, number | null>>;
  /** For how long the server wants silence, as far as this sender knows. */
  readonly pausedForMs: number;
  /** How long it may use what it is given without asking again. */
  readonly leaseMs: number;
  /** Of requests and tokens. */
  readonly windowMs: number;
  /** Of a row that nobody has written yet: what was sent in the last windows, by whomever. */
  readonly earlier: QuotaAmounts;
}

export interface QuotaAnswer {
  /** What the windows of the sender may hold in all, for `leaseMs` from its question on. */
  readonly has: QuotaAmounts;
  /** False: the call that waits has to go on waiting. */
  readonly isGranted: boolean;
  /** Others wait for what is not used. */
  readonly isContended: boolean;
  readonly pausedForMs: number;
}

interface Part {
  readonly has: QuotaAmounts;
  readonly leaseEndsMs: number;
  /** In vain so far, since `wantsSinceMs`. */
  readonly wants: QuotaAmounts | null;
  readonly wantsSinceMs: number;
}

/** What is kept between two questions, as JSON. */
export interface QuotaState {
  readonly parts: Readonly<Record<string, Part>>;
  readonly pausedUntilMs: number;
  /**
   * Nothing is given before: the row may have lost what was last written, and whoever has a share that it does not know of
   * is heard of again until then, or has let it end.
   */
  readonly givesFromMs: number;
}

/** Short beside the window, so that little is idle when a sender dies; long beside a question. */
export const QUOTA_LEASE_MS = 3_000;
/** As long as the longest window, for which the requests of a day are kept. */
const DAY_MS = 24 * 3_600_000;
/** What one sender is given at once, of the whole limit: so much is idle for a window when it dies. */
const CHUNK = 0.1;

export const NO_AMOUNTS: QuotaAmounts = { requests: 0, tokens: 0, requestsPerDay: 0 };

/** What is no sender's any more, but still in the windows. */
const EARLIER = 'earlier';

/**
 * @param state null: nobody has asked so far
 * @returns the state that takes its place, and the answer
 */
export function shareQuota(
  state: QuotaState | null,
  ask: QuotaAsk,
  nowMs: number,
): { readonly state: QuotaState; readonly answer: QuotaAnswer } {
  const { parts, pausedUntilMs, givesFromMs } = state ?? firstState(ask, nowMs);
  const others = Object.entries(parts).flatMap(([sender, part]): [string, Part][] => {
    const left = sender === ask.sender ? null : stillCounted(part, ask.windowMs, nowMs);
    return left === null ? [] : [[sender, left]];
  });
  const before = parts[ask.sender];
  const wantsSinceMs = before?.wants == null ? nowMs : before.wantsSinceMs;
  const waiting = others.filter(([, { wants, leaseEndsMs }]) => wants !== null && leaseEndsMs >= nowMs);
  const ahead = waiting.filter(([, part]) => part.wantsSinceMs < wantsSinceMs);
  const given = nowMs < givesFromMs ? null : chunkFor(ask, others, ahead);
  const has = given === null ? ask.keeps : mapAmounts((amount) => ask.keeps[amount] + given[amount]);
  const own: Part = {
    has,
    leaseEndsMs: nowMs + ask.leaseMs,
    wants: given === null ? ask.wants : null,
    wantsSinceMs,
  };
  const paused = Math.max(pausedUntilMs, nowMs + ask.pausedForMs);
  return {
    state: {
      parts: Object.fromEntries([...merged(others, nowMs, ask.windowMs), [ask.sender, own]]),
      pausedUntilMs: paused,
      givesFromMs,
    },
    answer: {
      has,
      isGranted: ask.wants === null || given !== null,
      isContended: waiting.length > 0,
      pausedForMs: Math.max(0, paused - nowMs),
    },
  };
}

/** The row may have lost what was last written to it: see `givesFromMs`. */
export function distrusted(state: QuotaState | null, leaseMs: number, nowMs: number): QuotaState | null {
  return state && { ...state, givesFromMs: nowMs + leaseMs };
}

/** Null where a call that waits has to go on waiting, or none does. */
function chunkFor(
  { keeps, wants, limits }: QuotaAsk,
  others: readonly [string, Part][],
  ahead: readonly [string, Part][],
): QuotaAmounts | null {
  if (wants === null) return null;
  const chunk = { ...NO_AMOUNTS };
  for (const amount of QUOTA_AMOUNTS) {
    const limit = limits[amount];
    if (limit === null) continue;
    const taken = sumOf(others, ({ has }) => has[amount]) + keeps[amount];
    const free = limit - taken - sumOf(ahead, ({ wants: theirs }) => theirs?.[amount] ?? 0);
    // More than there is at all can only be a learnt limit: it goes alone, and the server has the last word.
    const needed = Math.min(wants[amount], limit);
    if (free < needed) return null;
    chunk[amount] = Math.min(free, Math.max(needed, Math.floor(limit * CHUNK)));
  }
  return chunk;
}

/** What of a part has not left every window yet; null: all has. */
function stillCounted(part: Part, windowMs: number, nowMs: number): Part | null {
  if (nowMs < part.leaseEndsMs + windowMs) return part;
  const { requestsPerDay } = part.has;
  if (requestsPerDay === 0 || nowMs >= part.leaseEndsMs + DAY_MS) return null;
  return { ...part, has: { ...NO_AMOUNTS, requestsPerDay }, wants: null };
}

/** Of a day's requests those of dead senders lie together by the hour, or a day of short-lived ones would fill the row. */
function merged(others: readonly [string, Part][], nowMs: number, windowMs: number): [string, Part][] {
  const kept = new Map<string, Part>();
  for (const [sender, part] of others) {
    const isDayOnly = nowMs >= part.leaseEndsMs + windowMs;
    const hourEndsMs = Math.ceil(part.leaseEndsMs / 3_600_000) * 3_600_000;
    const name = isDayOnly ? `${EARLIER} ${hourEndsMs}` : sender;
    const same = kept.get(name);
    const sum = (amount: QuotaAmount): number => part.has[amount] + (same?.has[amount] ?? 0);
    kept.set(name, isDayOnly ? { ...part, has: mapAmounts(sum), leaseEndsMs: hourEndsMs } : part);
  }
  return [...kept];
}

function firstState({ earlier }: QuotaAsk, nowMs: number): QuotaState {
  const part: Part = { has: earlier, leaseEndsMs: nowMs, wants: null, wantsSinceMs: nowMs };
  return {
    parts: earlier.requests + earlier.requestsPerDay === 0 ? {} : { [EARLIER]: part },
    pausedUntilMs: 0,
    givesFromMs: 0,
  };
}

function sumOf(parts: readonly [string, Part][], amountOf: (part: Part) => number): number {
  return parts.reduce((sum, [, part]) => sum + amountOf(part), 0);
}

export function mapAmounts(amountOf: (amount: QuotaAmount) => number): QuotaAmounts {
  return {
    requests: amountOf('requests'),
    tokens: amountOf('tokens'),
    requestsPerDay: amountOf('requestsPerDay'),
  };
}
