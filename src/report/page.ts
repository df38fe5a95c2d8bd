/** The report as one HTML page that needs nothing else: no network, no other file. */
import { printable } from '../core/foreign-text.js';
import { haltReasonText } from '../ui/halt-reason.js';
import { chartFigure, drawable } from './chart.js';
import type { ChartLibrary } from './chart-library.js';
import { embeddedJson, html, Markup } from './html.js';
import { latencyChart } from './latency-chart.js';
import { pageHead } from './page-head.js';
import { PAGE_SCRIPT } from './page-script.js';
import type { ReportFacts } from './report-facts.js';
import { failuresSection, lanesSection, runSection, tiles } from './sections.js';
import { zoneText } from './time-text.js';
import { timelineCharts } from './timeline-charts.js';

const MARK = '<!doctype html>\n<!-- llm-batch report of run ';

/** How every report of this run begins; by this a later one knows that it may take its place. */
export function reportMark(runName: string): string {
  // Two hyphens would end the comment.
  return `${MARK}${encodeURIComponent(printable(runName)).replaceAll('-', '%2D')} -->`;
}

export function renderReport(facts: ReportFacts, library: ChartLibrary): string {
  const { run, summary } = facts.inspection;
  const charts = facts.timeline === null ? [] : timelineCharts(facts.timeline, facts.inspection);
  if (summary.latencyMs !== null && facts.latencies.length > 0) {
    charts.splice(1, 0, latencyChart(facts.latencies, summary.latencyMs));
  }
  const page = html`
<html lang="en">
${pageHead({ title: `Report of ${printable(run.name)}`, styleBefore: library.style, scripts: [library.script, PAGE_SCRIPT] })}
<body>
<header>
<h1><bdi>${printable(run.name)}</bdi> <span class="status ${run.status}">${run.status}</span></h1>
${run.simulated ? html`<p class="banner" role="note"><strong>Simulated.</strong> Every answer in this run was made up on this machine; no model was asked and nothing was paid.</p>` : null}
${run.haltReason === null ? null : html`<p class="banner bad" role="note"><strong>Stopped.</strong> ${printable(haltReasonText(run.haltReason))}</p>`}
</header>
<main>
${tiles(facts)}
<section aria-labelledby="charts"><h2 id="charts">How it went</h2>
${charts.length === 0 ? html`<p class="card">No call has been made yet.</p>` : html`<p class="hint">Times are local (${zoneText(run.createdAtMs)}); pauses of more than ten minutes are cut out. The arrow keys move through a chart that has the focus; the figures are below each.</p>`}
<noscript><p class="card">Charts need JavaScript; their figures are in the tables.</p></noscript>
<div class="charts">${charts.map(chartFigure)}</div></section>
${failuresSection(facts)}
${lanesSection(facts)}
${runSection(facts)}
</main>
<footer><p>Made by llm-batch. Charts: uPlot, MIT licence.</p></footer>
<script type="application/json" id="chart-data">${embeddedJson(charts.map(drawable))}</script>
<script>${new Markup(library.script)}</script>
<script>${new Markup(PAGE_SCRIPT)}</script>
</body>
</html>
`;
  return `${reportMark(run.name)}${page.text}`;
}
