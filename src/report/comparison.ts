/** Several runs side by side as one HTML page that needs nothing else. */
import { printable } from '../core/foreign-text.js';
import type { Comparison } from '../runs/compare-runs.js';
import { FIGURES } from '../ui/comparison-page.js';
import { formatCount, formatPercent, formatQuantity } from '../ui/numbers.js';
import { html } from './html.js';
import { pageHead } from './page-head.js';

/** Documents on the page, those that differ before the others; more than that is a matter for the CSV. */
const MOST_SHOWN = 1_000;

/** Texts stand to the left and wrap, figures to the right and do not; what is too wide scrolls in its card. */
const CELLS = `
.card { overflow-x: auto; margin-bottom: 16px; }
.figures td { white-space: nowrap; }
.figures .left, .answers th, .answers td { text-align: left; }
.answers th[scope=row], .answers td { vertical-align: top; }
.answers td { min-width: 12em; white-space: pre-wrap; overflow-wrap: anywhere; }
`;

export function renderComparisonPage({ runs, documents }: Comparison): string {
  const differing = documents.filter(({ agrees }) => !agrees);
  const agreeing = documents.length - differing.length;
  const shown = [...differing, ...documents.filter(({ agrees }) => agrees)].slice(0, MOST_SHOWN);
  const names = runs.map(({ run }) => printable(run.name));
  const page = html`
<html lang="en">
${pageHead({ title: names.join(' · '), styleAfter: CELLS, scripts: [] })}
<body>
<header><h1>${names.join(' · ')}</h1></header>
<main>
<p>${formatQuantity(documents.length, 'document')} answered by all ${formatCount(runs.length)} runs; all agree on ${formatCount(agreeing)} (${formatPercent(agreeing, documents.length)}).</p>
<section class="card"><table class="figures">
<thead><tr>${FIGURES.map(({ header, align }) => html`<th scope="col" class="${align}">${header}</th>`)}</tr></thead>
<tbody>${runs.map((run) => html`<tr>${FIGURES.map(({ align, read }) => html`<td class="${align}">${printable(read(run, documents.length))}</td>`)}</tr>`)}</tbody>
</table></section>
<section class="card"><table class="answers">
<thead><tr><th scope="col">document</th>${names.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>${shown.map(({ key, agrees, answers }) => html`<tr><th scope="row">${printable(key)}${agrees ? null : ' ≠'}</th>${answers.map(({ text }) => html`<td>${printable(text)}</td>`)}</tr>`)}</tbody>
</table>
${shown.length < documents.length ? html`<p class="hint">The first ${formatCount(shown.length)} of ${formatCount(documents.length)} documents.</p>` : null}
</section>
</main>
<footer><p>Made by llm-batch.</p></footer>
</body>
</html>
`;
  return `<!doctype html>${page.text}`;
}
