/** The page of `check`: what was read, every kind of finding with its first lines, and what a run would do. */

import { printable } from '../core/foreign-text.js';
import type { CheckReport } from '../runs/check/check-input.js';
import type { Finding, FindingExample } from '../runs/check/findings.js';
import { type Appearance, inCharacterSet, paragraph } from './colours.js';
import { FINDING_WORDS } from './finding-words.js';
import { lineReason } from './line-words.js';
import { formatCount, formatQuantity } from './numbers.js';
import { displayWidth, hanging, padToWidth } from './width.js';

/** @returns lines, none wider than the stream unless a word is */
export function renderCheck(report: CheckReport, inputName: string, appearance: Appearance): string[] {
  const { colours } = appearance;
  const { errors, warnings } = countFindings(report.findings);
  const heading = `${printable(inputName)}: ${formatQuantity(report.lines, 'line')}, ${formatQuantity(report.documents, 'document')}`;
  const lines = [
    ...paragraph(heading, appearance, colours.bold),
    ...unknownModels(report).flatMap((model) => {
      const words = `the context window of ${printable(model)} is not known: whether its documents fit was not checked`;
      return paragraph(words, appearance, colours.dim);
    }),
  ];
  for (const finding of report.findings) {
    const isError = finding.severity === 'error';
    const { one, many, advice } = FINDING_WORDS[finding.kind];
    const title = `${isError ? '✗' : '■'} ${formatCount(finding.count)} ${finding.count === 1 ? one : many}`;
    lines.push('', ...paragraph(title, appearance, isError ? colours.red : colours.yellow));
    lines.push(...exampleLines(finding, appearance));
    lines.push(...hanging('  try: ', advice, 7, appearance.columns - 7));
  }
  const paintVerdict = errors > 0 ? colours.red : warnings > 0 ? colours.yellow : colours.green;
  lines.push('', ...paragraph(verdict(report, errors, warnings), appearance, paintVerdict));
  return lines.map((line) => inCharacterSet(line, appearance));
}

export function countFindings(findings: readonly Finding[]): {
  readonly errors: number;
  readonly warnings: number;
} {
  const sum = (severity: Finding['severity']): number =>
    findings
      .filter((finding) => finding.severity === severity)
      .reduce((total, { count }) => total + count, 0);
  return { errors: sum('error'), warnings: sum('warning') };
}

function unknownModels({ models }: CheckReport): string[] {
  return models.filter((model) => model.contextWindowTokens === null).map(({ model }) => model);
}

function exampleLines({ examples, count }: Finding, appearance: Appearance): string[] {
  const { colours, columns } = appearance;
  const places = examples.map(placeOf);
  const placeColumns = Math.max(0, ...places.map(displayWidth));
  const indent = placeColumns === 0 ? 4 : 4 + placeColumns + 2;
  const lines = examples.flatMap(({ id, message }, index) => {
    const words = lineReason(message);
    const named = id === null ? words : `${id}: ${words}`;
    const place = padToWidth(`    ${places[index] ?? ''}`, indent);
    return hanging(colours.dim(place), printable(named), indent, columns - indent);
  });
  if (count > examples.length)
    lines.push(colours.dim(`    … and ${formatCount(count - examples.length)} more`));
  return lines;
}

function placeOf({ line, place }: FindingExample): string {
  if (place !== undefined) return printable(place);
  return line === null ? '' : `line ${formatCount(line)}`;
}

function verdict(report: CheckReport, errors: number, warnings: number): string {
  const found = [
    ...(errors > 0 ? [formatQuantity(errors, 'error')] : []),
    ...(warnings > 0 ? [formatQuantity(warnings, 'warning')] : []),
  ].join(', ');
  const documents = formatQuantity(report.documents, 'document');
  if (report.badLines > 0) {
    return `✗ ${found}: a run would stop before its first call; with --skip-bad-lines it would send ${documents}`;
  }
  if (errors > 0) return `✗ ${found}: a run would send ${documents} and some would fail`;
  if (warnings > 0) return `✓ ${found}: a run would send all ${documents}`;
  return `✓ no problem found: a run would send all ${documents}`;
}
