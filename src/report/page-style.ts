/** How the page looks: light and dark as the reader's system is, and black on white on paper. */
export const PAGE_STYLE = `
:root {
  --page: #f5f6f8; --card: #ffffff; --edge: #dfe3e8; --text: #1c2430; --soft: #586374; --grid: #e8ebef; --link: #1f5fbf;
  --good: #2f9e6e; --bad: #c93a3a; --throttled: #e0a021; --input: #3f78c9; --output: #8a63c7; --money: #2c8c8c; --limit: #1c2430;
  --warn-page: #fdf3d8; --warn-text: #6a4b00;  --bad-page: #fbe5e5; --bad-text: #8c1f1f; --good-page: #dff3ea; --good-text: #17583c;
}
@media screen and (prefers-color-scheme: dark) {
  :root:not([data-colours="light"]) {
    --page: #12161c; --card: #1a2029; --edge: #2d3541; --text: #e6eaf0; --soft: #9aa6b6; --grid: #272f3a; --link: #8ab8ff;
    --good: #43b581; --bad: #e5605e; --throttled: #e3b045; --input: #5b96e8; --output: #a583e0; --money: #45b3b3; --limit: #e6eaf0;
    --warn-page: #3a2f12; --warn-text: #f4d98b; --bad-page: #3f1d1f; --bad-text: #f5b5b3; --good-page: #16382a; --good-text: #9be0c0;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 24px 20px 48px; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { display: flex; flex-wrap: wrap; align-items: center; gap: 12px; margin: 0 0 16px; font-size: 28px; line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 36px 0 12px; font-size: 19px; }
h3 { margin: 0; font-size: 15px; }
p { margin: 0 0 12px; }
footer, .hint { color: var(--soft); font-size: 13px; }
footer { margin-top: 36px; }
.status { padding: 2px 10px; border-radius: 999px; background: var(--warn-page); color: var(--warn-text); font-size: 13px; font-weight: 600; }
.status.finished { background: var(--good-page); color: var(--good-text); }
.banner { padding: 10px 14px; border-radius: 8px; background: var(--warn-page); color: var(--warn-text); overflow-wrap: anywhere; }
.banner.bad { background: var(--bad-page); color: var(--bad-text); }
.card { margin: 0; padding: 16px; border: 1px solid var(--edge); border-radius: 10px; background: var(--card); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 20px 0 0; }
.tile dt { color: var(--soft); font-size: 13px; }
.tile dd { margin: 0; }
.tile .value { font-size: 26px; font-weight: 650; line-height: 1.3; font-variant-numeric: tabular-nums; }
.tile.bad .value { color: var(--bad); }
.tile .note { color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); gap: 16px; }
.chart { min-width: 0; display: grid; grid-row: span 3; grid-template-rows: subgrid; grid-template-columns: minmax(0, 1fr); row-gap: 0; }
.chart figcaption p { margin: 4px 0 8px; color: var(--soft); font-size: 13px; }
.plot { min-height: 250px; }
.plot:focus-visible, summary:focus-visible, .scroll:focus-visible, pre:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
details { margin-top: 8px; }
summary { color: var(--link); font-size: 13px; cursor: pointer; }
.scroll { max-height: 320px; overflow: auto; }
table { width: 100%; border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 10px; border-bottom: 1px solid var(--edge); text-align: right; white-space: nowrap; }
th:first-child { text-align: left; font-weight: 500; }
thead th { position: sticky; top: 0; background: var(--card); color: var(--soft); font-weight: 600; }
.failures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); gap: 16px; }
.failure { min-width: 0; }
.failure h3 { display: flex; justify-content: space-between; gap: 12px; }
.failure h3 span:first-child { color: var(--bad); font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.failure .amount { font-weight: 500; white-space: nowrap; }
meter { display: block; width: 100%; height: 8px; margin: 8px 0; border: 0; border-radius: 4px; background: var(--grid); appearance: none; -webkit-appearance: none; overflow: hidden; }
meter::-webkit-meter-inner-element { display: block; height: 8px; }
meter::-webkit-meter-bar { height: 8px; border: 0; background: var(--grid); }
meter::-webkit-meter-optimum-value { background: var(--bad); }
meter::-moz-meter-bar { background: var(--bad); }
.facts { margin: 0; font-size: 14px; }
.facts > div { display: grid; grid-template-columns: 130px minmax(0, 1fr); gap: 12px; padding: 4px 0; }
.failure .facts > div { grid-template-columns: 90px minmax(0, 1fr); }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.path { display: block; }
code, pre { font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { overflow-wrap: anywhere; }
pre { max-height: 320px; margin: 0; padding: 10px 12px; overflow: auto; border-radius: 6px; background: var(--page); white-space: pre-wrap; overflow-wrap: anywhere; }
.unseen { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.uplot { font-family: inherit; }
.u-legend { color: var(--text); font-size: 13px; }
.u-legend { padding-left: 46px; }
.u-legend tbody { display: flex; flex-wrap: wrap; }
.u-legend tr:first-child { order: 1; }
.u-legend th { padding: 0 4px; border: 0; text-align: left; }
.u-legend td { padding: 0 4px; border: 0; }
.u-legend thead th, .u-legend th { position: static; background: none; }
.u-series > * { padding: 2px 4px; }
.u-inline.u-live th::after { content: ""; }
.plot:not(:hover, :focus) .u-legend tr:first-child { visibility: hidden; }
.u-legend .u-value { min-width: 2.5em; font-weight: 600; text-align: left; }
.u-hz .u-cursor-x { border-right-color: var(--soft); }
@media print {
  body { max-width: none; padding: 0; background: #fff; font-size: 12px; }
  .card, .failure, .chart { break-inside: avoid; }
  .charts, .failures { grid-template-columns: 1fr 1fr; }
  .chart > details, .hint { display: none; }
  pre, .scroll { max-height: none; }
  h2 { break-after: avoid; }
}
@media (max-width: 560px) { .facts > div, .failure .facts > div { grid-template-columns: 1fr; gap: 0; } }
`;
