/** What a run has done so far, as facts: shared by the summary at its end and by `status`. */
import type { ChalkInstance } from 'chalk';
import { FAILURE_KINDS } from '../core/failure.js';
import { printable } from '../core/foreign-text.js';
import type { GroupFigures } from '../core/group-figures.js';
import type { RunSummary } from '../core/run-summary.js';
import type { PriceTable } from '../pricing/price-book.js';
import { dotted, type Fact, fact } from './facts.js';
import { formatCount, formatDuration, formatMoney, formatQuantity, formatTokens } from './numbers.js';

/** Documents of the run, whatever their state. */
export function totalOf(summary: RunSummary): number {
  return Object.values(summary.counts).reduce((sum, count) => sum + count, 0);
}

/** Documents that are still to be done. */
export function openOf(summary: RunSummary): number {
  return summary.counts.ready + summary.counts.delayed + summary.counts.in_progress;
}

export function documentFacts(summary: RunSummary, colours: ChalkInstance): Fact[] {
  const { counts } = summary;
  const facts = [fact('completed', formatCount(counts.completed))];
  if (counts.failed > 0) {
    facts.push(fact('failed', `${formatCount(counts.failed)}${failedByKind(summary)}`, colours.red));
  }
  const open = openOf(summary);
  if (open > 0) {
    const words = dotted([
      formatCount(open),
      counts.delayed > 0 ? `${formatCount(counts.delayed)} of them wait to be tried again` : null,
      // As the bar counts them: what is taken up and waits for its call is pending all the same.
      summary.calls.open > 0 ? `${formatQuantity(summary.calls.open, 'call')} open` : null,
    ]);
    facts.push(fact('pending', words));
  }
  const shared = sharingParts(summary.shared);
  if (shared.length > 0) facts.push(fact('shared', dotted(shared)));
  if (counts.cancelled > 0) facts.push(fact('cancelled', formatCount(counts.cancelled)));
  if (summary.gone > 0) facts.push(fact('gone', `${formatCount(summary.gone)} no longer in the input`));
  return facts;
}

/** Documents that need no call of their own; empty where each has one. */
export function sharingParts({ withinRun, fromEarlierRuns, waiting }: RunSummary['shared']): string[] {
  return [
    ...(fromEarlierRuns > 0 ? [`${formatCount(fromEarlierRuns)} answered by earlier runs`] : []),
    ...(withinRun > 0 ? [`${formatCount(withinRun)} took the answer of an equal document`] : []),
    ...(waiting > 0
      ? [`${formatCount(waiting)} ${waiting === 1 ? 'waits' : 'wait'} for the answer of an equal document`]
      : []),
  ];
}

function failedByKind(summary: RunSummary): string {
  const kinds = FAILURE_KINDS.map((kind) => ({ kind, count: summary.failedByKind[kind] ?? 0 }))
    .filter(({ count }) => count > 0)
    .sort((one, other) => other.count - one.count)
    .map(({ kind, count }) => `${kind} ${formatCount(count)}`);
  return kinds.length === 0 ? '' : ` (${kinds.join(', ')})`;
}

export interface CallFactsOptions {
  /** Null where it would say nothing. */
  readonly callsPerSecond: string | null;
  /** Nothing is paid for a rehearsal, so there is no cost to tell. */
  readonly simulated: boolean;
  /** What the calls were priced by; null where that is not known. */
  readonly prices: PriceTable | null;
}

export function callFacts(
  summary: RunSummary,
  { callsPerSecond, simulated, prices }: CallFactsOptions,
): Fact[] {
  const { calls, usage, latencyMs } = summary;
  if (calls.made === 0) return [];
  const failed = calls.failed > 0 ? `${formatCount(calls.failed)} failed` : null;
  const read = `${formatTokens(usage.inputTokens)} in${usage.cachedTokens > 0 ? ` (${formatTokens(usage.cachedTokens)} cached)` : ''}`;
  const written = `${formatTokens(usage.outputTokens)} out${usage.reasoningTokens > 0 ? ` (${formatTokens(usage.reasoningTokens)} reasoning)` : ''}`;
  const facts = [
    fact('calls', dotted([formatCount(calls.made), callsPerSecond, failed, ...repeatParts(calls)])),
    fact('tokens', dotted([read, written])),
  ];
  if (!simulated) {
    facts.push(fact('cost', costText(summary)));
    if (prices !== null) facts.push(fact('prices', printable(priceTableText(prices))));
  }
  if (latencyMs !== null) {
    const times = (['mean', 'p50', 'p95', 'p99'] as const).map(
      (name) => `${name} ${formatDuration(latencyMs[name])}`,
    );
    facts.push(fact('latency', dotted(times)));
  }
  return facts;
}

/** Calls that were made again, and what became of the first ones. */
export function repeatParts({ repeated, late }: RunSummary['calls']): string[] {
  return [
    ...(repeated > 0 ? [`${formatCount(repeated)} repeated after a crash`] : []),
    ...(late > 0 ? [`${formatCount(late)} of them answered too late`] : []),
  ];
}

/** `prices.json of 2026-11-01` */
export function priceTableText({ source, date }: PriceTable): string {
  return date === null ? source : `${source} of ${date}`;
}

/** Where no call has a price, nothing is known, and `$0.00` would be a lie. */
export function knownCost(summary: RunSummary): string {
  return isCostUnknown(summary) ? 'not known' : formatMoney(summary.costMicroUsd);
}

function isCostUnknown({ costMicroUsd, callsWithoutCost }: RunSummary): boolean {
  return costMicroUsd === 0 && callsWithoutCost > 0;
}

function costText(summary: RunSummary): string {
  const { callsWithoutCost, inDoubt } = summary;
  const isUnknown = isCostUnknown(summary);
  const known = `${knownCost(summary)}${isUnknown ? ': no price for this model and tier' : ''}`;
  if (inDoubt.costMicroUsd > 0) {
    return dotted([known, isUnknown ? `at most ${formatMoney(inDoubt.costMicroUsd)}` : doubtText(summary)]);
  }
  const without = `${formatQuantity(callsWithoutCost, 'call')} without a known price`;
  return dotted([known, isUnknown || callsWithoutCost === 0 ? null : `and ${without}`]);
}

/** What calls may have cost of which nobody knows whether they were billed, or at which price. */
export function doubtText({ inDoubt, callsWithoutCost }: RunSummary): string {
  const why = [
    { calls: inDoubt.calls, words: 'cut off' },
    { calls: inDoubt.withoutUsage, words: 'whose answers do not say what they used' },
    { calls: callsWithoutCost, words: 'without a known price' },
  ]
    .filter(({ calls }) => calls > 0)
    .map(({ calls, words }) => `${formatQuantity(calls, 'call')} ${words}`);
  return `up to ${formatMoney(inDoubt.costMicroUsd)} more for ${why.join(', ')}`;
}

/** Of calls that had several documents. */
export function groupFacts(groups: GroupFigures | null): Fact[] {
  if (groups === null) return [];
  const { calls, documents, fewest, most, splits } = groups;
  const value = dotted([
    `${formatQuantity(calls, 'call')} of ${formatCount(Math.round(documents / calls))} documents on average`,
    fewest === most ? null : `from ${formatCount(fewest)} to ${formatCount(most)}`,
    splits > 0 ? `${formatCount(splits)} split` : null,
  ]);
  return [fact('groups', value)];
}
