/** Parsers of setting values. Each throws an Error whose message completes "expected …". */
import { usageError } from '../core/errors.js';

/**
 * What was given somewhere, parsed.
 * @param where for people: a flag, a variable, a key in a file
 * @throws LlmBatchError (exit 2) of this code, which says what was expected there
 */
export function parseGiven<Given, Value>(
  code: string,
  where: string,
  given: Given,
  parse: (given: Given) => Value,
): Value {
  try {
    return parse(given);
  } catch (error) {
    const { message } = error as Error;
    throw usageError(code, `Expected ${where} to be ${message}, got ${JSON.stringify(given) ?? 'nothing'}.`);
  }
}

/** Both ends of `N..M`, or of `N` alone. @param parse of one end, which is what an error has to show */
export function parseRange(
  text: string,
  parse: (end: string) => number,
): { readonly low: number; readonly high: number } {
  const [first = '', last = first] = text.split('..');
  return { low: parse(first), high: parse(last) };
}

export function parseText(value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new Error('some text');
}

/** An address below another one. */
export function parseUrlPath(value: unknown): string {
  if (typeof value === 'string' && /^\/[\w.~/-]+$/.test(value) && !value.includes('//')) return value;
  throw new Error('a path that begins with /, such as /batch');
}

export function parseList(value: unknown): string[] {
  const items = Array.isArray(value) ? value : typeof value === 'string' ? value.split(',') : [];
  const names = items.map((item) => String(item).trim()).filter((item) => item !== '');
  if (names.length === 0) throw new Error('one name, or several with commas between');
  return names;
}

/** Each a host, with or without a port. */
export function parseHosts(value: unknown): string[] {
  const hosts = parseList(value);
  const odd = hosts.find(
    (host) => !URL.canParse(`http://${host}`) || new URL(`http://${host}`).pathname !== '/',
  );
  if (odd === undefined && !hosts.some((host) => /[/?#@]/.test(host))) return hosts;
  throw new Error('host or host:port, without https:// and without a path');
}

/** A whole number of at least 1; `10_000`, `10,000` and `10k` are understood. */
export function parseCount(value: unknown): number {
  const text = String(value).trim().toLowerCase().replace(/[_,]/g, '');
  const match = /^(\d+(?:\.\d+)?)([km]?)$/.exec(text);
  const factor = match?.[2] === 'k' ? 1_000 : match?.[2] === 'm' ? 1_000_000 : 1;
  const count = match === null ? Number.NaN : Number(match[1]) * factor;
  if (Number.isSafeInteger(count) && count >= 1) return count;
  throw new Error('a whole number of at least 1');
}

/** 0 stands for any that is free. */
export function parsePort(value: unknown): number {
  const port = Number(value);
  if (/^\d{1,5}$/.test(String(value)) && port < 65_536) return port;
  throw new Error('a port from 0 to 65535');
}

/** A number from 0 on. */
export function parseNumber(value: unknown): number {
  const number = Number(typeof value === 'string' && value.trim() === '' ? Number.NaN : value);
  if (Number.isFinite(number) && number >= 0) return number;
  throw new Error('a number of at least 0');
}

/** As `parseCount`, or `auto`. */
export function parseCountOrAuto(value: unknown): number | 'auto' {
  if (String(value).trim().toLowerCase() === 'auto') return 'auto';
  try {
    return parseCount(value);
  } catch {
    throw new Error("a whole number of at least 1, or 'auto'");
  }
}

const MS_PER_UNIT: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Milliseconds of `300s`, `1.5m`, `2h30m`, `500ms`; a bare number is seconds. */
export function parseDuration(value: unknown): number {
  const text = String(value).trim().toLowerCase();
  if (/^\d+(\.\d+)?$/.test(text)) return Math.round(Number(text) * 1_000);
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) throw new Error('a time such as 30s, 5m or 1h30m');
  let totalMs = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    totalMs += Number(amount) * (MS_PER_UNIT[unit ?? 's'] ?? 1_000);
  }
  return Math.round(totalMs);
}

const SHORTEST_TIME_TO_LIVE_MS = 1_000;

/** As `parseDuration`; who wants no result kept would find none. */
export function parseTimeToLive(value: unknown): number {
  const timeMs = parseDuration(value);
  if (timeMs >= SHORTEST_TIME_TO_LIVE_MS) return timeMs;
  throw new Error('a time of at least 1s, such as 24h');
}

const BYTES_PER_UNIT: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 1_000,
  kb: 1_000,
  kib: 1_024,
  m: 1_000_000,
  mb: 1_000_000,
  mib: 1_048_576,
  g: 1_000_000_000,
  gb: 1_000_000_000,
  gib: 1_073_741_824,
};

export function parseBytes(value: unknown): number {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/.exec(String(value).trim().toLowerCase());
  const factor = BYTES_PER_UNIT[match?.[2] ?? ''];
  if (match === null || factor === undefined) throw new Error('a size such as 1000000, 32MiB or 1GB');
  const bytes = Math.round(Number(match[1]) * factor);
  if (bytes < 1) throw new Error('a size of at least one byte');
  return bytes;
}

/** One of a few words, in any case. */
export function parseOneOf<Choice extends string>(choices: readonly Choice[]): (value: unknown) => Choice {
  return (value) => {
    const found = choices.find((choice) => choice === String(value).trim().toLowerCase());
    if (found === undefined) throw new Error(`one of ${choices.join(', ')}`);
    return found;
  };
}

export function parseSwitch(value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  const text = String(value).trim().toLowerCase();
  if (['1', 'true', 'yes', 'on'].includes(text)) return true;
  if (['0', 'false', 'no', 'off', ''].includes(text)) return false;
  throw new Error('true or false');
}

/** Micro-dollars of `5`, `$2.50` or `0.0001`. */
export function parseMoney(value: unknown): number {
  const match = /^\$?(\d+(?:\.\d{1,6})?)$/.exec(String(value).trim());
  const microUsd = match === null ? Number.NaN : Math.round(Number(match[1]) * 1_000_000);
  if (Number.isSafeInteger(microUsd) && microUsd > 0) return microUsd;
  throw new Error('an amount in dollars such as 5 or 0.25');
}

/** How many documents may fail: a number of them, or a share of those that are done. */
export type FailureLimit = { readonly documents: number } | { readonly share: number };

/** `100`, or `5%`. */
export function parseFailureLimit(value: unknown): FailureLimit {
  const text = String(value).trim();
  const percent = /^(\d+(?:\.\d+)?)%$/.exec(text);
  if (percent !== null && Number(percent[1]) <= 100) return { share: Number(percent[1]) / 100 };
  if (/^\d+$/.test(text)) return { documents: Number(text) };
  throw new Error('a number of documents such as 100, or a share such as 5%');
}
