/** The page of `estimate` and of `run --dry-run`: tokens, money and time, and what they rest on. */

import { disarmed, printable } from '../core/foreign-text.js';
import type { DurationRange, EstimateReport } from '../runs/estimate/estimate-input.js';
import type { CostRange } from '../runs/estimate/model-estimate.js';
import { type Appearance, inCharacterSet, paragraph } from './colours.js';
import {
  estimateFacts,
  estimateHeadline,
  estimateWarnings,
  labelOf,
  shownWays,
  WAY_HEADERS,
} from './estimate-facts.js';
import { factLines } from './facts.js';
import { formatCount, formatDuration, formatMoney, formatTokens } from './numbers.js';
import { renderTable, type TableColumn } from './table.js';
import { displayWidth } from './width.js';

export const DAYS_PER_MONTH = 30;

/** @returns lines, none wider than the stream unless a word or the first request is */
export function renderEstimate(report: EstimateReport, inputName: string, appearance: Appearance): string[] {
  const { colours } = appearance;
  return [
    ...paragraph(`${printable(inputName)}: ${estimateHeadline(report)}`, appearance, colours.bold),
    ...estimateWarnings(report).flatMap((warning) => paragraph(warning, appearance, colours.yellow)),
    '',
    ...wholeTable(modelTable(report), appearance),
    ...(report.dailyDocuments === null
      ? []
      : ['', ...wholeTable(dailyTable(report, report.dailyDocuments), appearance)]),
    '',
    ...factLines(estimateFacts(report), appearance),
    '',
    `the first request, of line ${formatCount(report.firstRequest.line)}:`,
    ...requestLines(report.firstRequest.bodyJson),
  ].map((line) => inCharacterSet(line, appearance));
}

interface Table {
  readonly columns: readonly TableColumn[];
  readonly rows: readonly (readonly string[])[];
}

/** A figure that is cut off is worse than none: what is too wide for a table becomes a block a row. */
function wholeTable(table: Table, appearance: Appearance): string[] {
  const lines = renderTable(table.columns, table.rows, { ...appearance, columns: Number.MAX_SAFE_INTEGER });
  if (lines.every((line) => displayWidth(line) <= appearance.columns)) return lines;
  return table.rows.flatMap(([title = '', ...values], row) => [
    ...(row === 0 ? [] : ['']),
    appearance.colours.bold(printable(title)),
    ...factLines(
      values.map((value, index) => ({ name: table.columns[index + 1]?.header ?? '', value })),
      appearance,
    ),
  ]);
}

function modelTable(report: EstimateReport): Table {
  const ways = shownWays(report);
  return {
    columns: [
      { header: 'model' },
      { header: 'input', align: 'right' },
      { header: 'output', align: 'right' },
      ...ways.map((way) => ({ header: WAY_HEADERS[way], align: 'right' }) as const),
      { header: 'time', align: 'right' },
    ],
    rows: report.models.map((model) => [
      labelOf(model),
      formatTokens(model.input.total),
      range(model.output.low.total, model.output.high.total, formatTokens),
      ...ways.map((way) => costText(model.cost[way])),
      durationText(model.duration),
    ]),
  };
}

function dailyTable(report: EstimateReport, dailyDocuments: number): Table {
  const share = dailyDocuments / report.documents;
  const ways = shownWays(report);
  return {
    columns: [
      { header: `${formatCount(dailyDocuments)} a day` },
      { header: 'a day', align: 'right' },
      ...ways.map(
        (way) =>
          ({
            header: `${DAYS_PER_MONTH} days${way === 'direct' ? '' : `, ${WAY_HEADERS[way]}`}`,
            align: 'right',
          }) as const,
      ),
      { header: 'time a day', align: 'right' },
    ],
    rows: report.models.map((model) => [
      labelOf(model),
      costText(model.cost.direct, share),
      ...ways.map((way) => costText(model.cost[way], share * DAYS_PER_MONTH)),
      model.dailyDuration === null ? '' : durationText(model.dailyDuration),
    ]),
  };
}

function costText(cost: CostRange | null, share = 1): string {
  return cost === null ? 'unknown' : range(cost.low * share, cost.high * share, formatMoney);
}

function durationText({ low, high }: DurationRange): string {
  return range(low.ms, high.ms, formatDuration);
}

/** One value where both ends read the same. */
function range(low: number, high: number, format: (value: number) => string): string {
  const [short, long] = [format(low), format(high)];
  return short === long ? short : `${short}–${long}`;
}

const LONGEST_DATA_URL = 60;

/** A request for people to look at: nobody reads megabytes of base64. */
export function shownRequest(bodyJson: string): unknown {
  return JSON.parse(bodyJson, (_, value: unknown) =>
    typeof value === 'string' && /^data:[^,]*;base64,/i.test(value) && value.length > LONGEST_TEXT
      ? cut(value, LONGEST_DATA_URL)
      : value,
  );
}

function cut(text: string, length: number): string {
  return `${text.slice(0, length)}… (${formatCount(text.length)} characters)`;
}

const LONGEST_TEXT = 600;
const MOST_REQUEST_LINES = 40;

/** As JSON over several lines, long texts cut: to see whether it is what was meant, not to copy it. */
function requestLines(bodyJson: string): string[] {
  const shown = JSON.stringify(
    shownRequest(bodyJson),
    (_, value: unknown) =>
      typeof value === 'string' && value.length > LONGEST_TEXT ? cut(value, LONGEST_TEXT) : value,
    2,
  );
  const lines = disarmed(shown).split('\n');
  const first = lines.length > MOST_REQUEST_LINES ? [...lines.slice(0, MOST_REQUEST_LINES), '…'] : lines;
  return first.map((line) => `  ${line}`);
}
