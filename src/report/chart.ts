/** What the page's script is given to draw, and the same as words and as a table for those who do not see it. */
import { html, type Markup } from './html.js';

/** Names of colours that the style sheet defines, light and dark. */
export type ChartColour = 'good' | 'bad' | 'throttled' | 'input' | 'output' | 'money' | 'limit';

/** How numbers on an axis and in the legend are written. */
export type ChartUnit = 'count' | 'tokens' | 'money';

export interface ChartSeries {
  readonly name: string;
  readonly colour: ChartColour;
  /** `area` is filled; `limit` is a dashed line over everything. */
  readonly look: 'area' | 'limit';
  /** One number for each stretch. */
  readonly values: readonly number[];
}

export interface Chart {
  readonly id: string;
  readonly title: string;
  /** The picture in a sentence or two. */
  readonly summary: string;
  /**
   * Edges of the stretches, one more than there are values: milliseconds since the epoch, or a time taken. Moments
   * stand at equal distances, whatever was cut out between them.
   */
  readonly edges: readonly number[];
  /** `moments` runs over time, `durations` over how long calls took, with a logarithmic scale. */
  readonly along: 'moments' | 'durations';
  readonly unit: ChartUnit;
  /** Areas stand on each other instead of before each other. */
  readonly stacked: boolean;
  readonly series: readonly ChartSeries[];
  /** How long each stretch is, for `moments`. */
  readonly stretchMs: number;
  /** Upright lines with a name: at a time taken, or at the edge of this number. */
  readonly marks: readonly { readonly name: string; readonly at: number }[];
  /** The figures behind it. */
  readonly table: ChartTable;
}

export interface ChartTable {
  readonly heads: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The part of a chart that the script needs. */
export function drawable({ id, edges, along, stretchMs, unit, stacked, series, marks }: Chart): object {
  return { id, edges, along, stretchMs, unit, stacked, series, marks };
}

export function chartFigure(chart: Chart): Markup {
  const { id, title, summary, table } = chart;
  return html`<figure class="card chart">
<figcaption><h3>${title}</h3><p id="${id}-summary">${summary}</p></figcaption>
<div class="plot" id="${id}" role="img" tabindex="0" aria-label="${title}. ${summary}"></div>
<p class="unseen" id="${id}-reading" aria-live="polite"></p>
<details><summary>Figures: ${title}</summary><div class="scroll" tabindex="0" role="region" aria-label="Figures: ${title}">${dataTable(table)}</div></details>
</figure>`;
}

/** The first column names the row. */
export function dataTable({ heads, rows }: ChartTable): Markup {
  return html`<table><thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows.map(
    ([first = '', ...rest]) =>
      html`<tr><th scope="row">${first}</th>${rest.map((cell) => html`<td>${cell}</td>`)}</tr>`,
  )}</tbody></table>`;
}
