/** What `doctor` finds, a line a check, with the way out below where one is needed. */

import { printable } from '../core/foreign-text.js';
import type { Diagnosis } from '../runs/diagnose/diagnose.js';
import { type Appearance, inCharacterSet } from './colours.js';
import { formatQuantity } from './numbers.js';
import { padToWidth, wrapToWidth } from './width.js';

/** As long as the longest name of a check. */
const NAME_COLUMNS = 'storage engine'.length;
const INDENT = 2 + NAME_COLUMNS + 2;

const SIGNS: Readonly<Record<Diagnosis['level'], string>> = { ok: '✓', warning: '!', fault: '✗' };

/**
 * @param advice the way out in words, where one is needed
 * @param showLane where there are several; then the message begins with its name
 */
export function renderFinding(
  finding: Diagnosis,
  advice: string | undefined,
  showLane: boolean,
  appearance: Appearance,
): string[] {
  const { colours } = appearance;
  const paint = { ok: colours.green, warning: colours.yellow, fault: colours.red }[finding.level];
  const room = Math.max(20, appearance.columns - INDENT);
  const name = padToWidth(finding.check.replaceAll('_', ' '), NAME_COLUMNS);
  const message = printable(finding.message);
  const text = showLane && finding.lane !== null ? `${printable(finding.lane)}: ${message}` : message;
  const lead = advice === undefined ? [] : wrapToWidth(printable(`try: ${appearance.command(advice)}`), room);
  const lines = [...wrapToWidth(text, room), ...lead.map((line) => colours.bold(line))];
  return lines.map((line, index) =>
    inCharacterSet(
      index === 0 ? `${paint(SIGNS[finding.level])} ${name}  ${line}` : `${' '.repeat(INDENT)}${line}`,
      appearance,
    ),
  );
}

/** The line that ends the list. */
export function renderVerdict(findings: readonly Diagnosis[], appearance: Appearance): string {
  const count = (level: Diagnosis['level']): number => findings.filter((each) => each.level === level).length;
  const faults = count('fault');
  const warnings = count('warning');
  const { colours } = appearance;
  if (faults > 0) return colours.red(`${formatQuantity(faults, 'fault')} to mend.`);
  if (warnings > 0) return colours.yellow(`Fit to run, with ${formatQuantity(warnings, 'warning')}.`);
  return colours.green('Fit to run.');
}
