/** Several runs side by side as one HTML page that needs nothing else. */
import { printable } from '../core/foreign-text.js';
import { answerText, type Comparison } from '../runs/compare-runs.js';
import { FIGURES } from '../ui/comparison-page.js';
import { formatCount, formatPercent, formatQuantity } from '../ui/numbers.js';
import { html, Markup } from './html.js';
import { PAGE_STYLE } from './page-style.js';

/** Documents on the page, those that differ before the others; more than that is a matter for the CSV. */
const MOST_SHOWN = 1_000;

export function renderComparisonPage({ runs, documents }: Comparison): string {
  const differing = documents.filter(({ agrees }) => !agrees);
  const agreeing = documents.length - differing.length;
  const shown = [...differing, ...documents.filter(({ agrees }) => agrees)].slice(0, MOST_SHOWN);
  const names = runs.map(({ run }) => printable(run.name));
  const page = html`
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="llm-batch">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'">
<title>${names.join(' · ')}</title>
<style>${new Markup(PAGE_STYLE)}
td { vertical-align: top; white-space: pre-wrap; overflow-wrap: anywhere; }</style>
</head>
<body>
<header><h1>${names.join(' · ')}</h1></header>
<main>
<p>${formatQuantity(documents.length, 'document')} answered by all ${formatCount(runs.length)} runs; all agree on ${formatCount(agreeing)} (${formatPercent(agreeing, documents.length)}).</p>
<section class="card"><table>
<thead><tr>${FIGURES.map(({ header }) => html`<th scope="col">${header}</th>`)}</tr></thead>
<tbody>${runs.map((run) => html`<tr>${FIGURES.map(({ read }) => html`<td>${printable(read(run, documents.length))}</td>`)}</tr>`)}</tbody>
</table></section>
<section class="card"><table>
<thead><tr><th scope="col">document</th>${names.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>${shown.map(({ key, agrees, answers }) => html`<tr><th scope="row">${printable(key)}${agrees ? null : ' ≠'}</th>${answers.map((row) => html`<td>${printable(answerText(row))}</td>`)}</tr>`)}</tbody>
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
