/** A report's times are those of the clock on the wall where it is made. */
import { afterEach, describe, expect, it } from 'vitest';
import { dayText, localMs, momentText, stretchText, zoneText } from '../../src/report/time-text.js';

const HERE = process.env['TZ'];
const MOMENT_MS = Date.UTC(2026, 10, 29, 22, 48, 18);

afterEach(() => {
  if (HERE === undefined) delete process.env['TZ'];
  else process.env['TZ'] = HERE;
});

describe.each([
  ['UTC', 'UTC', '2026-11-29 22:48:18 UTC', '22:48', '2026-11-29'],
  ['Asia/Kolkata', 'UTC+05:30', '2026-11-30 04:18:18 UTC+05:30', '04:18', '2026-11-30'],
  ['America/New_York', 'UTC-05:00', '2026-11-29 17:48:18 UTC-05:00', '17:48', '2026-11-29'],
])('in %s', (zone, name, moment, minute, day) => {
  it('are told with the zone', () => {
    process.env['TZ'] = zone;
    expect(zoneText(MOMENT_MS)).toBe(name);
    expect(momentText(MOMENT_MS)).toBe(moment);
    expect(stretchText(MOMENT_MS, 60_000)).toBe(minute);
    expect(dayText(MOMENT_MS)).toBe(day);
    expect(new Date(localMs(MOMENT_MS)).toISOString().slice(11, 16)).toBe(minute);
  });
});
