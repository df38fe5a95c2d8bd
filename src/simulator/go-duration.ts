/** Go's notation of a duration, rounded up to milliseconds: `20ms`, `1.146s`, `6m0s`, `1h2m3s`. */
export function goDuration(durationMs: number): string {
  const wholeMs = Math.ceil(durationMs);
  if (wholeMs <= 0) return '0s';
  if (wholeMs < 1_000) return `${wholeMs}ms`;
  const hours = Math.floor(wholeMs / 3_600_000);
  const minutes = Math.floor(wholeMs / 60_000) % 60;
  const seconds = `${(wholeMs % 60_000) / 1_000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
