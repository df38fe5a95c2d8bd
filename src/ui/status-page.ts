/** The `status` page of one run. */

import type { BatchRecord } from '../core/batch-record.js';
import { printable } from '../core/foreign-text.js';
import type { LaneSummary, RunSummary } from '../core/run-summary.js';
import type { RunInspection } from '../runs/inspect-run.js';
import { drawBar } from './bar.js';
import { type Appearance, inCharacterSet, paragraph } from './colours.js';
import { dotted, type Fact, fact, factLines, factsOf } from './facts.js';
import { haltReasonText } from './halt-reason.js';
import { nextCommand } from './next-command.js';
import {
  formatAgo,
  formatCount,
  formatMoney,
  formatPercent,
  formatQuantity,
  formatRate,
  formatRemaining,
  formatTimeOfDay,
  formatTokens,
} from './numbers.js';
import { inputWords } from './run-words.js';
import { callFacts, documentFacts, groupFacts, openOf, totalOf } from './summary-facts.js';

const BAR_CELLS = 40;

/** The lines of the page, none wider than the stream unless a path or a command is. */
export function renderStatus(view: RunInspection, appearance: Appearance): string[] {
  const { run, summary } = view;
  const { colours } = appearance;
  const facts: Fact[] = [
    fact('input', printable(inputWords(run.inputPath))),
    fact('started', formatAgo(view.nowMs - run.createdAtMs)),
    ...documentFacts(summary, colours),
    ...batchFacts(view),
    ...responseFacts(view),
    ...outageFacts(view),
    ...speedFacts(view),
    ...callFacts(summary, { callsPerSecond: null, simulated: run.simulated, prices: view.prices }),
    ...groupFacts(view.groups),
    ...laneFacts(summary.lanes),
    ...learntFacts(view),
  ];
  if (run.simulated) {
    facts.push(fact('simulated', 'answers are made up on this machine, no model is asked', colours.yellow));
  }
  facts.push(...factsOf('files', run.outputPaths.map(printable), colours.cyan));
  if (view.owner === null) {
    const outcome = { runName: run.name, open: openOf(summary), failed: summary.counts.failed };
    const next = nextCommand({ ...outcome, cancelled: run.status === 'cancelled', resultsPath: null });
    facts.push(fact('next', appearance.command(next), colours.bold));
  }
  return [
    ...paragraph(`${printable(run.name)} · ${stateText(view)}`, appearance, colours.bold),
    ...barLines(summary, appearance),
    ...factLines(facts, appearance),
  ];
}

function stateText(view: RunInspection): string {
  const { run, owner, nowMs } = view;
  if (owner !== null)
    return `running for ${formatRemaining(nowMs - owner.sinceMs)}, process ${owner.pid} on ${owner.host}`;
  const when = run.stoppedAtMs === null ? '' : ` ${formatAgo(nowMs - run.stoppedAtMs)}`;
  switch (run.status) {
    case 'importing':
      return 'its import was cut off; run it again on the same input';
    case 'finished':
      return `finished${when}`;
    case 'cancelled':
      return `cancelled${when}`;
    case 'open':
      return run.haltReason === null
        ? `stopped${when}`
        : `stopped${when}: ${printable(haltReasonText(run.haltReason))}`;
  }
}

function barLines(summary: RunSummary, appearance: Appearance): string[] {
  const total = totalOf(summary);
  if (total === 0) return [];
  const done = summary.counts.completed + summary.counts.failed;
  const text = `${formatPercent(done, total)} of ${formatQuantity(total, 'document')}`;
  const cells = Math.min(BAR_CELLS, appearance.columns - text.length - 4);
  if (cells < 8) return [];
  const shares = { share: done / total, failedShare: summary.counts.failed / total };
  return [inCharacterSet(`  ${drawBar(shares, cells, appearance.colours)}  ${text}`, appearance)];
}

function speedFacts(view: RunInspection): Fact[] {
  const facts: Fact[] = [];
  // The window is that of the key, for which other runs may have made the calls.
  if (view.owner !== null || (view.requestsPerMinute > 0 && view.summary.calls.made > 0)) {
    const requests = `${formatRate(view.requestsPerMinute)} requests/min${quota(view.requestsPerMinute, view.requestsPerMinuteLimit, formatCount)}`;
    const tokens = `${formatTokens(view.tokensPerMinute)} tokens/min${quota(view.tokensPerMinute, view.tokensPerMinuteLimit, formatTokens)}`;
    facts.push(fact('speed', dotted([requests, tokens])));
  }
  if (view.etaMs !== null && openOf(view.summary) > 0) facts.push(fact('ETA', formatRemaining(view.etaMs)));
  return facts;
}

/** One a line, but for those that are done with. */
function batchFacts({ batches, nowMs }: RunInspection): Fact[] {
  const open = batches.filter(({ state }) => state !== 'settled');
  const settled = batches.length - open.length;
  const lines = open.map((batch) => {
    const { shard, lane, requestsCompleted, requestsFailed, lines: requests, submittedAtMs, message } = batch;
    return dotted([
      `${formatCount(shard)} with ${printable(lane)}: ${batchState(batch)}`,
      `${formatCount(requestsCompleted + requestsFailed)} of ${formatQuantity(requests, 'request')}`,
      requestsFailed > 0 ? `${formatCount(requestsFailed)} failed` : null,
      batch.mostCostMicroUsd > 0 ? `at most ${formatMoney(batch.mostCostMicroUsd)}` : null,
      submittedAtMs === null ? null : `submitted ${formatAgo(nowMs - submittedAtMs)}`,
      message === null ? null : printable(message),
    ]);
  });
  if (settled > 0) lines.push(`${formatCount(settled)} done with`);
  return factsOf('remote', lines);
}

/** All in one line: there may be as many as documents. */
function responseFacts({ responses, nowMs }: RunInspection): Fact[] {
  const [oldest] = responses;
  if (oldest === undefined) return [];
  const mostMicroUsd = responses.reduce((sum, { mostCostMicroUsd }) => sum + mostCostMicroUsd, 0);
  const value = dotted([
    `${formatQuantity(responses.length, 'background response')} at the provider`,
    mostMicroUsd > 0 ? `at most ${formatMoney(mostMicroUsd)}` : null,
    `${responses.length === 1 ? 'created' : 'the first created'} ${formatAgo(nowMs - oldest.createdAtMs)}`,
  ]);
  return [fact('remote', value)];
}

function batchState({ state, remoteState }: BatchRecord): string {
  switch (state) {
    case 'building':
    case 'built':
      return 'being made';
    case 'creating':
      return 'being handed in';
    case 'settling':
      return 'its answers are being stored';
    default:
      return remoteState === 'finalizing'
        ? 'finalizing: all is worked off, its files are being made'
        : printable((remoteState ?? state).replaceAll('_', ' '));
  }
}

function outageFacts({ outages, nowMs }: RunInspection): Fact[] {
  const words = outages.map(
    ({ lane, sinceMs, message }) =>
      `${printable(lane)} has not answered since ${formatTimeOfDay(sinceMs)}, for ${formatRemaining(nowMs - sinceMs)}: ${printable(message)}`,
  );
  return factsOf('outage', words);
}

/** What the server itself says of its limits: the user may not know them. */
function learntFacts({ learntLimits }: RunInspection): Fact[] {
  const words = learntLimits.map((limit) =>
    dotted([
      learntLimits.length > 1 ? printable(limit.lane) : null,
      limit.requestsPerMinute === null ? null : `${formatCount(limit.requestsPerMinute)} requests/min`,
      limit.tokensPerMinute === null ? null : `${formatTokens(limit.tokensPerMinute)} tokens/min`,
      limit.requestsPerDay === null ? null : `${formatCount(limit.requestsPerDay)} requests/day`,
    ]),
  );
  return factsOf('learnt', words);
}

/** Of a single lane the lines above tell everything. */
function laneFacts(lanes: readonly LaneSummary[]): Fact[] {
  if (lanes.length < 2) return [];
  const words = lanes.map((lane) =>
    dotted([
      `${printable(lane.lane)}: ${formatQuantity(lane.calls, 'call')}`,
      lane.failed > 0 ? `${formatCount(lane.failed)} failed` : null,
      lane.throttled > 0 ? `${formatCount(lane.throttled)} of them throttled` : null,
      `${formatTokens(lane.usage.inputTokens)} in`,
      `${formatTokens(lane.usage.outputTokens)} out`,
      lane.costMicroUsd > 0 ? formatMoney(lane.costMicroUsd) : null,
    ]),
  );
  return factsOf('lanes', words);
}

function quota(used: number, limit: number | null, format: (count: number) => string): string {
  return limit === null || limit <= 0 ? '' : ` (${Math.round((used / limit) * 100)}% of ${format(limit)})`;
}
