/** Moments as text, in the local time of where the report is made; wherever it is read, the same is said. */

/** Where the clock stood then, as if local time were UTC: for whoever writes times without a zone. */
export function localMs(epochMs: number): number {
  return epochMs - new Date(epochMs).getTimezoneOffset() * 60_000;
}

/** `UTC`, `UTC+05:30` */
export function zoneText(epochMs: number): string {
  const minutes = -new Date(epochMs).getTimezoneOffset();
  if (minutes === 0) return 'UTC';
  const two = (part: number): string => String(part).padStart(2, '0');
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `UTC${minutes < 0 ? '-' : '+'}${two(hours)}:${two(rest)}`;
}

/** `2026-11-29 13:48:18 UTC` */
export function momentText(epochMs: number): string {
  return `${localText(epochMs).slice(0, 19).replace('T', ' ')} ${zoneText(epochMs)}`;
}

function localText(epochMs: number): string {
  return new Date(localMs(epochMs)).toISOString();
}

/** `13:48`, with seconds or their fraction where stretches are that short. */
export function stretchText(epochMs: number, lengthMs: number): string {
  const text = localText(epochMs);
  if (lengthMs < 1_000) return text.slice(11, 21);
  return lengthMs < 60_000 ? text.slice(11, 19) : text.slice(11, 16);
}

/** `2026-11-29` */
export function dayText(epochMs: number): string {
  return localText(epochMs).slice(0, 10);
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
