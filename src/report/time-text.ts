/** Moments as text. A report is read anywhere, so it speaks of UTC throughout. */

/** `2026-11-29 13:48:18 UTC` */
export function momentText(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** `13:48`, with seconds or their fraction where stretches are that short. */
export function stretchText(epochMs: number, lengthMs: number): string {
  const text = new Date(epochMs).toISOString();
  if (lengthMs < 1_000) return text.slice(11, 21);
  return lengthMs < 60_000 ? text.slice(11, 19) : text.slice(11, 16);
}

/** `2026-11-29` */
export function dayText(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 10);
}

const UNITS: readonly (readonly [name: string, lengthMs: number])[] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
];

/** What follows "per": `second`, `5 minutes`, `200 ms`. */
export function stretchName(lengthMs: number): string {
  const unit = UNITS.find(([, unitMs]) => lengthMs % unitMs === 0);
  if (unit === undefined) return `${lengthMs} ms`;
  const [name, unitMs] = unit;
  return lengthMs === unitMs ? name : `${lengthMs / unitMs} ${name}s`;
}
