/**
 * The many ways in which servers write "how long": Go durations (`6m0s`, `20ms`, `2m59.56s`), bare seconds,
 * Unix time in seconds or milliseconds, RFC 3339 and HTTP dates. All come out as milliseconds from now.
 */

/** A wait or reset beyond this is a server's mistake, not a quota. */
const LONGEST_WAIT_MS = 31 * 24 * 3_600_000;

const EPOCH_MS_FLOOR = 1e12;
const EPOCH_SECONDS_FLOOR = 1e9;

const NUMBER = /^\d+(?:\.\d+)?$/;
const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|us|µs|ns|d|h|m|s))+$/;
/** `ms` stands before `m` and `s`, or `20ms` would read as twenty minutes. */
const DURATION_PART = /(\d+(?:\.\d+)?)(ms|us|µs|ns|d|h|m|s)/g;
const DATE = /^\d{4}-\d\d-\d\d[T ]|\bGMT\b|\bUTC\b/;

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/**
 * Milliseconds from `nowMs` until what `text` says, in any of the forms above. A bare number is seconds,
 * unless it is large enough to be a Unix time. A moment that has passed is 0. Undefined for anything else:
 * garbage, negative numbers, and waits of more than a month.
 */
export function parseWaitMs(text: string | null | undefined, nowMs: number): number | undefined {
  if (text === null || text === undefined || text === '') return undefined;
  const trimmed = text.trim();
  if (NUMBER.test(trimmed)) {
    const value = Number(trimmed);
    if (value >= EPOCH_MS_FLOOR) return plausible(value - nowMs);
    if (value >= EPOCH_SECONDS_FLOOR) return plausible(value * 1_000 - nowMs);
    return plausible(value * 1_000);
  }
  const durationMs = parseDurationMs(trimmed);
  if (durationMs !== undefined) return plausible(durationMs);
  if (!DATE.test(trimmed)) return undefined;
  return plausible(Date.parse(trimmed) - nowMs);
}

function plausible(waitMs: number): number | undefined {
  if (!(waitMs <= LONGEST_WAIT_MS)) return undefined;
  return Math.max(0, Math.round(waitMs));
}

function parseDurationMs(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  let totalMs = 0;
  for (const part of text.matchAll(DURATION_PART)) totalMs += Number(part[1]) * (UNIT_MS[part[2] ?? ''] ?? 0);
  return totalMs;
}
