/** How long a run takes under its limits, if every call goes well. */

export interface PaceLimits {
  /** Of all lanes together; null: no limit of ours. */
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly requestsPerDay: number | null;
  readonly concurrency: number;
}

/** A call's latency: a fixed part and one that grows with the answer. */
export interface Latency {
  readonly baseMs: number;
  readonly msPerOutputToken: number;
}

/** What small models of large providers take; a server of one's own differs. */
export const ASSUMED_LATENCY: Latency = { baseMs: 500, msPerOutputToken: 12.5 };

export interface Workload {
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export type SlowedBy = 'requests' | 'tokens' | 'requests_per_day' | 'concurrency';

export interface RunDuration {
  readonly ms: number;
  readonly heldBackBy: SlowedBy;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 3_600_000;

/** The slowest of what holds a run back decides; the others pass meanwhile. */
export function runDuration(work: Workload, limits: PaceLimits, latency: Latency): RunDuration {
  const { calls, inputTokens, outputTokens } = work;
  if (calls === 0) return { ms: 0, heldBackBy: 'concurrency' };
  const callMs = latency.baseMs + (latency.msPerOutputToken * outputTokens) / calls;
  const openCalls = Math.min(limits.concurrency, calls);
  const sendingMs = (share: number): number => (share * calls * callMs) / openCalls;
  const all: RunDuration = { ms: sendingMs(1), heldBackBy: 'concurrency' };
  return [
    windowed('requests', calls, limits.requestsPerMinute, MINUTE_MS, sendingMs, callMs),
    windowed('tokens', inputTokens + outputTokens, limits.tokensPerMinute, MINUTE_MS, sendingMs, callMs),
    windowed('requests_per_day', calls, limits.requestsPerDay, DAY_MS, sendingMs, callMs),
  ].reduce<RunDuration>((slowest, next) => (next !== null && next.ms > slowest.ms ? next : slowest), all);
}

/**
 * A rolling window lets its whole amount go at once and the next when the first of it is a window old: all but the
 * last amount wait a full window each, and that last one only for the calls themselves.
 */
function windowed(
  heldBackBy: SlowedBy,
  amount: number,
  limit: number | null,
  windowMs: number,
  sendingMs: (share: number) => number,
  callMs: number,
): RunDuration | null {
  if (limit === null || amount <= limit) return null;
  const fullWindows = Math.ceil(amount / limit) - 1;
  const rest = (amount - fullWindows * limit) / amount;
  return { ms: fullWindows * windowMs + Math.max(callMs, sendingMs(rest)), heldBackBy };
}
