/** The page at the root of the service: its runs as they go. It holds no figure itself, so that it is open to everybody. */
import { html, Markup } from './html.js';
import { OVERVIEW_SCRIPT } from './overview-script.js';
import { pageHead } from './page-head.js';

const STYLE = `
[hidden] { display: none !important; }
#table { overflow-x: auto; }
td { text-align: right; }
td:first-child { text-align: left; overflow-wrap: anywhere; white-space: normal; }
td progress { width: 120px; vertical-align: middle; margin-right: 8px; accent-color: var(--good); }
form { display: flex; flex-wrap: wrap; gap: 8px; margin: 0 0 12px; }
input, button { font: inherit; padding: 4px 10px; border: 1px solid var(--edge); border-radius: 6px; background: var(--card); color: var(--text); }
button { cursor: pointer; }
input:focus-visible, button:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }`;

export function renderOverviewPage(): string {
  const page = html`<!doctype html>
<html lang="en">
${pageHead({ title: 'llm-batch', styleAfter: STYLE, scripts: [OVERVIEW_SCRIPT], connects: true })}
<body>
<main>
<h1>Runs</h1>
<form id="login" hidden>
<label for="token">Token</label>
<input id="token" type="password" autocomplete="off" required>
<button>Show the runs</button>
</form>
<p id="state" class="hint" role="status">Asking the service.</p>
<div class="card" id="table" tabindex="0" role="region" aria-label="Runs" hidden>
<table>
<caption>The runs of this store, newest first</caption>
<thead><tr><th scope="col">Run</th><th scope="col">State</th><th scope="col">Documents</th><th scope="col">Rate</th><th scope="col">Cost</th><th scope="col">Failed</th><th scope="col"><span class="hint">Action</span></th></tr></thead>
<tbody id="runs"></tbody>
</table>
</div>
<template id="row"><tr>
<th scope="row" data-part="id"></th>
<td><span data-part="state"></span></td>
<td><progress data-part="meter"></progress><span data-part="progress"></span></td>
<td data-part="rate"></td>
<td data-part="cost"></td>
<td data-part="failures"></td>
<td><button type="button" data-part="retry" hidden>Try again</button></td>
</tr></template>
<noscript><p class="banner">This page needs JavaScript; the same is at /v1/runs.</p></noscript>
</main>
<footer>The figures come from this service alone, as they change. <a href="/openapi.json">OpenAPI</a></footer>
<script>${new Markup(OVERVIEW_SCRIPT)}</script>
</body>
</html>
`;
  return page.text;
}
