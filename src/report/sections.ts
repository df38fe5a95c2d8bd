/** The parts of a report that are words and tables. */

import { disarmed, printable } from '../core/foreign-text.js';
import type { LaneSummary } from '../core/run-summary.js';
import { modelOf } from '../documents/request.js';
import type { FailureGroup } from '../runs/failure-groups.js';
import { lanesOf, type PacingSettings, settingsOfRun } from '../runs/run-settings.js';
import { adviceOn } from '../ui/failure-advice.js';
import { haltReasonText } from '../ui/halt-reason.js';
import { shellWord } from '../ui/next-command.js';
import {
  formatCount,
  formatDuration,
  formatMoney,
  formatPercent,
  formatQuantity,
  formatTokens,
} from '../ui/numbers.js';
import { inputWords } from '../ui/run-words.js';
import {
  doubtText,
  knownCost,
  openOf,
  priceTableText,
  repeatParts,
  sharingParts,
  totalOf,
} from '../ui/summary-facts.js';
import { html, Markup } from './html.js';
import type { ReportFacts } from './report-facts.js';
import { momentText } from './time-text.js';

const LONGEST_MESSAGE = 1_000;
const MOST_CODES = 5;

/** The few figures that most readers came for. */
export function tiles({ inspection }: ReportFacts): Markup {
  const { summary, prices, groups, run } = inspection;
  const { counts, calls, usage, latencyMs, shared, inDoubt, callsWithoutCost } = summary;
  const total = totalOf(summary);
  const open = openOf(summary);
  const failed =
    counts.failed === 0 ? 'no document' : `${formatPercent(counts.failed, total)} of all documents`;
  const priced =
    callsWithoutCost > 0
      ? `${formatQuantity(callsWithoutCost, 'call')} without a known price`
      : 'every call has a known price';
  const costNotes = [
    priced,
    ...(inDoubt.costMicroUsd > 0 ? [doubtText(summary)] : []),
    ...(prices === null ? [] : [`prices: ${printable(priceTableText(prices))}`]),
  ];
  const tokens = `${formatTokens(usage.inputTokens)} in, ${formatTokens(usage.outputTokens)} out`;
  const taken = shared.withinRun + shared.fromEarlierRuns;
  const parts = [
    tile(
      'Completed',
      formatCount(counts.completed),
      `${formatPercent(counts.completed, total)} of ${formatQuantity(total, 'document')}`,
    ),
    tile('Failed', formatCount(counts.failed), failed, counts.failed > 0 ? 'bad' : ''),
    open > 0 && tile('Pending', formatCount(open), 'still to be done'),
    counts.cancelled > 0 && tile('Cancelled', formatCount(counts.cancelled), 'never to be done'),
    taken > 0 &&
      tile('Shared answers', formatCount(taken), sharingParts({ ...shared, waiting: 0 }).join(', ')),
    tile(
      'Calls',
      formatCount(calls.made),
      [`${formatCount(calls.failed)} failed`, ...repeatParts(calls)].join(', '),
    ),
    tile('Tokens', formatTokens(usage.inputTokens + usage.outputTokens), tokens),
    // Nothing is paid for a rehearsal, so there is no cost to tell.
    !run.simulated && tile('Cost', knownCost(summary), costNotes.join('; ')),
    groups &&
      tile(
        'Documents a call',
        formatCount(Math.round(groups.documents / groups.calls)),
        `${formatCount(groups.fewest)} to ${formatCount(groups.most)} in calls for several; ${formatCount(groups.splits)} split`,
      ),
    latencyMs &&
      tile(
        'Typical answer',
        formatDuration(latencyMs.p50),
        `95% within ${formatDuration(latencyMs.p95)}, 99% within ${formatDuration(latencyMs.p99)}`,
      ),
  ];
  return html`<dl class="tiles">${parts.filter((part) => part instanceof Markup)}</dl>`;
}

function tile(name: string, value: string, note: string, tone = ''): Markup {
  return html`<div class="card tile ${tone}"><dt>${name}</dt><dd class="value">${value}</dd><dd class="note">${note}</dd></div>`;
}

/** The failed documents by kind, each with an example and what to do. */
export function failuresSection({ inspection, failures }: ReportFacts): Markup {
  if (failures.length === 0) {
    return html`<section aria-labelledby="failures"><h2 id="failures">Failures</h2><p class="card">No document has failed.</p></section>`;
  }
  const total = failures.reduce((sum, { count }) => sum + count, 0);
  const most = failures[0]?.count ?? 1;
  return html`<section aria-labelledby="failures"><h2 id="failures">Failures</h2>
<p>${formatQuantity(total, 'document')} failed. Each kind with the first document it met.</p>
<div class="failures">${failures.map((group) => failureCard(group, most, inspection.run.name))}</div></section>`;
}

function failureCard(group: FailureGroup, most: number, runName: string): Markup {
  const { kind, count, example, codes } = group;
  const { error } = example;
  const { meaning, advice, worthRetrying } = adviceOn(error);
  const status = error.httpStatus === null ? null : ` (HTTP ${error.httpStatus})`;
  const facts: [string, Markup][] = [
    ['Example', html`line ${formatCount(example.line)}, <bdi>${printable(example.key)}</bdi>`],
    ['Message', html`<q><bdi>${shortened(printable(error.message))}</bdi></q>${status}`],
  ];
  if (error.requestId !== null) facts.push(['Request id', html`<code>${printable(error.requestId)}</code>`]);
  if (codes.length > 0) {
    const shown = codes
      .slice(0, MOST_CODES)
      .map(({ code, count: times }) => `${printable(code)} (${formatCount(times)})`);
    const more = codes.length > MOST_CODES ? [`${codes.length - MOST_CODES} more`] : [];
    facts.push(['Codes', html`${[...shown, ...more].join(', ')}`]);
  }
  facts.push(['What to do', html`${advice}`]);
  if (worthRetrying) {
    facts.push(['Then', html`<code>llm-batch retry ${shellWord(printable(runName))} --kind ${kind}</code>`]);
  }
  return html`<article class="card failure">
<h3><span>${kind}</span> <span class="amount">${formatQuantity(count, 'document')}</span></h3>
<meter min="0" max="${most}" value="${count}" aria-label="share of the most frequent kind">${count}</meter>
<p>${meaning}</p>${definitions(facts)}</article>`;
}

function shortened(message: string): string {
  return message.length <= LONGEST_MESSAGE ? message : `${message.slice(0, LONGEST_MESSAGE - 1)}…`;
}

function definitions(facts: readonly (readonly [string, Markup])[]): Markup {
  return html`<dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** What each key at each server has done; null where there was only one. */
export function lanesSection({ inspection }: ReportFacts): Markup | null {
  const { lanes } = inspection.summary;
  if (lanes.length < 2) return null;
  const limits = new Map(lanesOf(settingsOfRun(inspection.run)).map((lane) => [lane.name, lane]));
  const limitOf = (limit: number | null | undefined): string => (limit == null ? 'none' : formatCount(limit));
  const row = (lane: LaneSummary): Markup => html`<tr><th scope="row">${printable(lane.lane)}</th>
<td>${formatCount(lane.calls)}</td><td>${formatCount(lane.failed)}</td><td>${formatCount(lane.throttled)}</td>
<td>${formatTokens(lane.usage.inputTokens)}</td><td>${formatTokens(lane.usage.outputTokens)}</td><td>${formatMoney(lane.costMicroUsd)}</td>
<td>${limitOf(limits.get(lane.lane)?.rpm)}</td><td>${limitOf(limits.get(lane.lane)?.tpm)}</td></tr>`;
  return html`<section aria-labelledby="lanes"><h2 id="lanes">Lanes</h2>
<div class="card scroll" tabindex="0" role="region" aria-labelledby="lanes"><table><thead><tr>${[
    'lane',
    'calls',
    'failed',
    'throttled',
    'tokens in',
    'tokens out',
    'cost',
    'requests/min limit',
    'tokens/min limit',
  ].map(
    (head) => html`<th scope="col">${head}</th>`,
  )}</tr></thead><tbody>${lanes.map(row)}</tbody></table></div></section>`;
}

/** What was run, and how. */
export function runSection({ inspection }: ReportFacts): Markup {
  const { run, summary, nowMs } = inspection;
  const settings = settingsOfRun(run);
  const { request, pacing, pricesFile } = settings;
  const { promptTemplate } = request;
  const packaged = 'those that come with llm-batch';
  const text = (value: string): Markup => html`<bdi>${printable(value)}</bdi>`;
  const block = (value: string): Markup => html`<pre tabindex="0">${disarmed(value)}</pre>`;
  const facts: [string, Markup][] = [
    ['Input', text(inputWords(run.inputPath))],
    ['Endpoint', text(request.endpoint ?? 'what each document shows')],
    ['Model', text(request.model ?? `${modelOf(request)} (default)`)],
    ['Server', text([...new Set(lanesOf(settings).map((lane) => lane.baseUrl))].join(', '))],
    ['Prompt', promptTemplate === null ? text("the document's own request or text") : block(promptTemplate)],
  ];
  if (request.systemTemplate !== null) facts.push(['System message', block(request.systemTemplate)]);
  if (Object.keys(request.parameters).length > 0) {
    facts.push(['Parameters', html`<code>${printable(JSON.stringify(request.parameters))}</code>`]);
  }
  facts.push(
    ['Calls open at once', text(String(pacing.concurrency))],
    ['Limits a lane', text(limitsText(pacing))],
    ['Prices', text(pricesFile === null ? packaged : `${pricesFile}, else ${packaged}`)],
    ['Created', text(momentText(run.createdAtMs))],
  );
  const { firstCallAtMs, lastCallAtMs } = summary;
  if (firstCallAtMs !== null && lastCallAtMs !== null) {
    const last = `${momentText(lastCallAtMs)}, ${formatDuration(lastCallAtMs - firstCallAtMs)} after the first`;
    facts.push(['First call', text(momentText(firstCallAtMs))], ['Last call', text(last)]);
  }
  if (run.haltReason !== null) facts.push(['Stopped because', text(haltReasonText(run.haltReason))]);
  if (summary.gone > 0) facts.push(['Gone from the input', text(formatQuantity(summary.gone, 'document'))]);
  if (run.outputPaths.length > 0) {
    const paths = run.outputPaths.map((path) => html`<bdi class="path">${printable(path)}</bdi>`);
    facts.push(['Files', html`${paths}`]);
  }
  facts.push(['Report made', text(momentText(nowMs))]);
  return html`<section aria-labelledby="run"><h2 id="run">The run</h2><div class="card">${definitions(facts)}</div></section>`;
}

function limitsText({ rpm, tpm, rpd }: PacingSettings): string {
  const parts = [
    rpm === null ? null : `${formatCount(rpm)} requests a minute`,
    tpm === null ? null : `${formatCount(tpm)} tokens a minute`,
    rpd == null ? null : `${formatCount(rpd)} requests a day`,
  ].filter((part) => part !== null);
  return parts.length === 0 ? 'none set; what the server says is kept to' : parts.join(', ');
}
