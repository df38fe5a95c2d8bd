/** Numbers as people read them. Every function takes plain numbers and never throws; what is no number is `–`. */

const NOTHING = '–';

/** Whole numbers with thousands separators: `300,000`. */
export function formatCount(count: number): string {
  if (!Number.isFinite(count)) return NOTHING;
  return group(String(Math.round(count)));
}

function group(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+$)/g, ',');
}

/** `1 document`, `3,000 documents`. */
export function formatQuantity(count: number, singular: string, plural = `${singular}s`): string {
  return `${formatCount(count)} ${count === 1 ? singular : plural}`;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** A measured time: `850 ms`, `12.3 s`, `4 min 05 s`, `1 h 04 min`, `2 d 03 h`. */
export function formatDuration(durationMs: number): string {
  if (!Number.isFinite(durationMs)) return NOTHING;
  const ms = Math.max(0, durationMs);
  if (Math.round(ms) < SECOND_MS) return `${Math.round(ms)} ms`;
  // Rounded before it is compared, so that 59.97 s becomes a minute and not "60.0 s".
  if (Math.round(ms / 100) < 600) return `${(Math.round(ms / 100) / 10).toFixed(1)} s`;
  return twoUnits(ms);
}

/** A time still to wait, in whole seconds at the finest: `8 s`, `4 min 05 s`, `42 min`, `1 h 04 min`, `2 d 03 h`. */
export function formatRemaining(remainingMs: number): string {
  if (!Number.isFinite(remainingMs)) return NOTHING;
  const ms = Math.max(0, remainingMs);
  const seconds = Math.ceil(ms / SECOND_MS);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(ms / MINUTE_MS);
  if (minutes >= 10 && minutes < 60) return `${minutes} min`;
  return twoUnits(minutes === 60 ? HOUR_MS : ms);
}

function twoUnits(ms: number): string {
  const seconds = Math.round(ms / SECOND_MS);
  if (seconds < 3_600) return pair(Math.floor(seconds / 60), 'min', seconds % 60, 's');
  const minutes = Math.round(ms / MINUTE_MS);
  if (minutes < 24 * 60) return pair(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
  const hours = Math.round(ms / HOUR_MS);
  return `${formatCount(Math.floor(hours / 24))} d ${String(hours % 24).padStart(2, '0')} h`;
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return `${large} ${largeUnit} ${String(small).padStart(2, '0')} ${smallUnit}`;
}

/** How long ago something was: `just now`, `5 min ago`, `3 h ago`, `12 d ago`. */
export function formatAgo(ageMs: number): string {
  if (!Number.isFinite(ageMs)) return NOTHING;
  if (ageMs < MINUTE_MS) return 'just now';
  if (ageMs < HOUR_MS) return `${Math.floor(ageMs / MINUTE_MS)} min ago`;
  if (ageMs < 2 * DAY_MS) return `${Math.floor(ageMs / HOUR_MS)} h ago`;
  return `${formatCount(Math.floor(ageMs / DAY_MS))} d ago`;
}

/** A frequency: one decimal below ten, whole numbers above: `0.4`, `7.5`, `1,204`. */
export function formatRate(rate: number): string {
  if (!Number.isFinite(rate)) return NOTHING;
  const tenths = Math.round(rate * 10);
  return tenths > 0 && tenths < 100 && tenths % 10 !== 0 ? (tenths / 10).toFixed(1) : formatCount(rate);
}

/**
 * Dollars from micro-dollars, as fine as the sum is small: `$1,234.50`, `$0.42`, `$0.0042`, `$0.000017`. Whole
 * numbers all the way, so that no binary fraction shows.
 */
export function formatMoney(costMicroUsd: number): string {
  if (!Number.isFinite(costMicroUsd)) return NOTHING;
  const sign = costMicroUsd < 0 ? '-' : '';
  const micro = Math.abs(Math.round(costMicroUsd));
  if (micro === 0) return '$0.00';
  if (micro >= 100_000) return `${sign}$${decimal(Math.round(micro / 10_000), 2)}`;
  if (micro >= 100) return `${sign}$${decimal(Math.round(micro / 100), 4)}`;
  return `${sign}$${decimal(micro, 6)}`;
}

function decimal(scaled: number, places: number): string {
  const digits = String(scaled).padStart(places + 1, '0');
  return `${group(digits.slice(0, -places))}.${digits.slice(-places)}`;
}

/** Three significant digits with a unit: `999`, `12.3k`, `412k`, `4.5M`, `1.2B`. */
export function formatTokens(tokens: number): string {
  if (!Number.isFinite(tokens)) return NOTHING;
  return scaled(tokens, 1_000, ['', 'k', 'M', 'B', 'T'], '');
}

/** Decimal units, as disks and downloads are sold: `812 B`, `1.2 GB`. */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return NOTHING;
  return scaled(bytes, 1_000, ['B', 'kB', 'MB', 'GB', 'TB'], ' ');
}

function scaled(value: number, step: number, units: readonly string[], space: string): string {
  let amount = Math.max(0, value);
  let unit = 0;
  // Half a digit early, so that 999,950 becomes 1.0M and not 1000k.
  while (unit < units.length - 1 && (unit === 0 ? Math.round(amount) >= step : amount >= step - 0.5)) {
    amount /= step;
    unit += 1;
  }
  const text =
    unit === 0 || amount >= 99.95 ? formatCount(amount) : (Math.round(amount * 10) / 10).toFixed(1);
  return `${text}${space}${units[unit] ?? ''}`;
}

/**
 * The share of a whole, rounded down so that 100% means done: `42%`, and with a decimal (`42.0%`) where the whole is
 * so large that a whole percent takes long.
 */
export function formatPercent(part: number, whole: number): string {
  if (!(whole > 0) || !Number.isFinite(part)) return NOTHING;
  const share = Math.min(1, Math.max(0, part / whole));
  if (whole < 1_000 || share === 1) return `${Math.floor(share * 100)}%`;
  return `${(Math.floor(share * 1_000) / 10).toFixed(1)}%`;
}

/** Hours and minutes of a wall time, as the clock on the wall shows them. */
export function formatTimeOfDay(atMs: number): string {
  const date = new Date(atMs);
  const two = (number: number): string => String(number).padStart(2, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}
