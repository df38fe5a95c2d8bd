/** How long a server that refused asks to wait, wherever it says so. */
import { isJsonObject } from '../../core/json.js';
import type { HeaderReader } from './headers.js';
import { parseWaitMs } from './wait-time.js';

/** No server's text is searched for a wait beyond this. */
const SEARCHED_TEXT_LENGTH = 2_000;

/** "try again in 1.146s", "in 6m0s", "after 20 seconds", "in 1 minute and 30 seconds", "in 00:10:00". */
const WAIT_IN_TEXT =
  /\b(?:try (?:your request )?again|retry|retrying|wait|replenished|resets?) (?:in|after|for) (?:about )?(\d\d:\d\d:\d\d|(?:\d+(?:\.\d+)? ?(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])(?:,? and |, | )?)+)/i;

/**
 * How long a server that refused asks to wait: the longest of `retry-after-ms` (Azure), `retry-after`
 * (RFC 9110: seconds or an HTTP date), the structured hints of Gemini (`RetryInfo.retryDelay`) and OpenRouter
 * (`metadata.headers`), and the time in the message ("Please try again in 1.146s"). Undefined when it does not say,
 * or says zero or nonsense: then our own back-off rules.
 *
 * @param error the error object of the body, or its text
 * @param nowMs wall time
 */
export function readRetryAfterMs(headers: HeaderReader, error: unknown, nowMs: number): number | undefined {
  const { message, details, metadata }: Readonly<Record<string, unknown>> = isJsonObject(error)
    ? error
    : { message: error };
  const isSpent = headers.get('x-ratelimit-remaining') === '0';
  const longestMs = Math.max(
    readMilliseconds(headers.get('retry-after-ms')),
    readRetryAfter(headers.get('retry-after'), headers.get('date'), nowMs),
    (isSpent ? parseWaitMs(headers.get('x-ratelimit-reset'), nowMs) : 0) ?? 0,
    typeof message === 'string' ? readWaitInText(message) : 0,
    readRetryInfo(details, nowMs),
    readMetadata(metadata, nowMs),
  );
  return longestMs > 0 ? longestMs : undefined;
}

const MILLISECONDS = /^\d+(?:\.\d+)?$/;

function readMilliseconds(text: string | null): number {
  return text !== null && MILLISECONDS.test(text.trim()) ? (parseWaitMs(`${text.trim()}ms`, 0) ?? 0) : 0;
}

function readRetryAfter(text: string | null, date: string | null, nowMs: number): number {
  if (text === null) return 0;
  // A date is compared with the server's own clock where it shows it: ours may be off by more than the wait.
  const serverNowMs = date === null ? Number.NaN : Date.parse(date);
  const whole = parseWaitMs(text, Number.isFinite(serverNowMs) ? serverNowMs : nowMs);
  if (whole !== undefined) return whole;
  // Sent twice, the values arrive as one list.
  return longestOf(text.split(','), nowMs);
}

const UNIT_LETTER: ReadonlyArray<readonly [RegExp, string]> = [
  [/milliseconds?/gi, 'ms'],
  [/seconds?|secs?/gi, 's'],
  [/minutes?|mins?/gi, 'm'],
  [/hours?|hrs?/gi, 'h'],
  [/days?/gi, 'd'],
  [/and|[,\s]/gi, ''],
];

function readWaitInText(text: string): number {
  const found = WAIT_IN_TEXT.exec(text.slice(0, SEARCHED_TEXT_LENGTH))?.[1];
  if (found === undefined) return 0;
  if (found.includes(':')) {
    const [hours = 0, minutes = 0, seconds = 0] = found.split(':').map(Number);
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000;
  }
  let duration = found;
  for (const [words, letter] of UNIT_LETTER) duration = duration.replace(words, letter);
  return parseWaitMs(duration.toLowerCase(), 0) ?? 0;
}

/** `google.rpc.RetryInfo` among the details of a Google API error. */
function readRetryInfo(details: unknown, nowMs: number): number {
  if (!Array.isArray(details)) return 0;
  const delays = details.map((detail) => (isJsonObject(detail) ? detail['retryDelay'] : undefined));
  return longestOf(delays, nowMs);
}

function readMetadata(metadata: unknown, nowMs: number): number {
  if (!isJsonObject(metadata) || !isJsonObject(metadata['headers'])) return 0;
  const told = Object.entries(metadata['headers']).filter(([name]) =>
    ['retry-after', 'x-ratelimit-reset'].includes(name.toLowerCase()),
  );
  return longestOf(
    told.map(([, value]) => String(value)),
    nowMs,
  );
}

function longestOf(waits: readonly unknown[], nowMs: number): number {
  return Math.max(0, ...waits.map((wait) => (typeof wait === 'string' ? parseWaitMs(wait, nowMs) : 0) ?? 0));
}
