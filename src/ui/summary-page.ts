/** The page that ends a run. */

import type { RunEvent } from '../core/event.js';
import { printable } from '../core/foreign-text.js';
import type { RunRecord } from '../core/run.js';
import { type Appearance, paragraph } from './colours.js';
import { type Fact, fact, factLines } from './facts.js';
import { haltReasonText } from './halt-reason.js';
import { nextCommand } from './next-command.js';
import { formatCount, formatDuration, formatQuantity, formatRate } from './numbers.js';
import { callFacts, documentFacts, openOf, totalOf } from './summary-facts.js';

type Ended = RunEvent & { readonly type: 'ended' };

export interface RunEndReport
  extends Pick<Ended, 'summary' | 'elapsedMs' | 'prices'>,
    Pick<RunRecord, 'haltReason' | 'simulated'> {
  readonly runName: string;
  /** Calls that this drain has made. */
  readonly callsMade: number;
  /** The documents that were asked for are done, others are left. */
  readonly isTry: boolean;
  /** As they are to be shown; null where there is none. */
  readonly files: Readonly<Record<'results' | 'errors' | 'rejects', string | null>>;
}

/** The lines of the summary, none wider than the stream unless a path or a command is. */
export function renderSummary(report: RunEndReport, appearance: Appearance): string[] {
  const { colours } = appearance;
  const { summary, files } = report;
  const open = openOf(summary);
  const seconds = report.elapsedMs / 1_000;
  const callsPerSecond =
    report.callsMade > 1 && seconds > 0 ? `${formatRate(report.callsMade / seconds)} per second` : null;

  const facts: Fact[] = [
    ...documentFacts(summary, colours),
    fact('elapsed', formatDuration(report.elapsedMs)),
    ...callFacts(summary, { callsPerSecond, simulated: report.simulated, prices: report.prices }),
  ];
  if (report.simulated) {
    const words = 'these answers were made up on this machine, no model was asked';
    facts.push(fact('simulated', words, colours.yellow));
  }
  if (files.results !== null) facts.push(fact('results', files.results, colours.cyan));
  if (files.errors !== null) facts.push(fact('errors', files.errors, colours.cyan));
  if (files.rejects !== null) facts.push(fact('bad lines', files.rejects, colours.cyan));
  const { failed, cancelled } = summary.counts;
  const outcome = { runName: report.runName, open, failed, cancelled: cancelled > 0 };
  const next = nextCommand({ ...outcome, resultsPath: files.results });
  facts.push(fact('next', appearance.command(next), colours.bold));
  const [title, paint] = headline(report, open, appearance);
  return [...paragraph(title, appearance, paint), ...factLines(facts, appearance)];
}

/** Whether the run is at its end, in a word, and the colour of that. */
function headline(report: RunEndReport, open: number, { colours }: Appearance): [string, typeof colours.red] {
  const { counts } = report.summary;
  const runName = printable(report.runName);
  const documents = formatQuantity(totalOf(report.summary), 'document');
  const done = `${formatCount(counts.completed + counts.failed)} of ${documents} done`;
  if (open > 0 && report.haltReason !== null)
    return [`✗ ${runName} stopped, ${done}: ${printable(haltReasonText(report.haltReason))}`, colours.red];
  if (open > 0 && report.isTry) return [`✓ ${runName} was tried, ${done}`, colours.green];
  if (open > 0) return [`■ ${runName} was stopped, ${done}`, colours.yellow];
  if (counts.cancelled > 0) return [`■ ${runName} was cancelled, ${done}`, colours.yellow];
  if (counts.failed === 0) return [`✓ ${runName} is complete: ${documents}`, colours.green];
  return [`■ ${runName} is finished, ${formatCount(counts.failed)} of ${documents} failed`, colours.yellow];
}
