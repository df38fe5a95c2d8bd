/** Several runs side by side in a terminal. */
import type { ComparedRun, Comparison } from '../runs/compare-runs.js';
import { type Appearance, paragraph } from './colours.js';
import { formatCount, formatDuration, formatMoney, formatPercent, formatQuantity } from './numbers.js';
import { renderTable } from './table.js';

/** Documents that somebody reads in a terminal; all are in the CSV and, where they differ, on the page. */
const MOST_SHOWN = 20;

/** None of the lines is wider than the stream. */
export function renderComparison({ runs, documents }: Comparison, appearance: Appearance): string[] {
  const differing = documents.filter(({ agrees }) => !agrees);
  const agreeing = documents.length - differing.length;
  const words = [
    `${formatQuantity(documents.length, 'document')} answered by all ${formatCount(runs.length)} runs`,
    ...(documents.length > 0
      ? [`all agree on ${formatCount(agreeing)} (${formatPercent(agreeing, documents.length)})`]
      : []),
  ];
  const shown = differing.slice(0, MOST_SHOWN);
  const unseen = differing.length - shown.length;
  return [
    ...paragraph(words.join(' · '), appearance),
    '',
    ...renderTable(
      FIGURES.map(({ header, align }) => ({ header, align })),
      runs.map((run) => FIGURES.map(({ read }) => read(run, documents.length))),
      appearance,
    ),
    ...(shown.length === 0
      ? []
      : [
          '',
          ...renderTable(
            [{ header: 'where they differ' }, ...runs.map(({ run }) => ({ header: run.name }))],
            shown.map(({ key, answers }) => [key, ...fromWhereTheyDiffer(answers.map(({ text }) => text))]),
            appearance,
          ),
        ]),
    ...(unseen > 0 ? [`and ${formatQuantity(unseen, 'document')} more: --csv has them all`] : []),
  ];
}

/** A beginning that is the same for all of a row is left out where it is longer than this: the end of a cell is cut. */
const MOST_SHARED = 12;

function fromWhereTheyDiffer(texts: readonly string[]): string[] {
  const lines = texts.map((text) => text.replace(/\s+/g, ' '));
  const [first = ''] = lines;
  let shared = 0;
  while (shared < first.length && lines.every((line) => line[shared] === first[shared])) shared += 1;
  // From the beginning of a word on.
  const start = first.lastIndexOf(' ', shared) + 1;
  return start > MOST_SHARED ? lines.map((line) => `…${line.slice(start)}`) : lines;
}

interface Figure {
  readonly header: string;
  readonly align: 'left' | 'right';
  /** @param documents that were compared */
  readonly read: (run: ComparedRun, documents: number) => string;
}

/** What is told of each run, here and on the page. */
export const FIGURES: readonly Figure[] = [
  { header: 'run', align: 'left', read: ({ run }) => run.name },
  { header: 'model', align: 'left', read: ({ models }) => models.join(', ') },
  {
    header: 'as the first',
    align: 'right',
    read: ({ agreeing }, documents) => formatPercent(agreeing, documents),
  },
  { header: 'tokens in', align: 'right', read: ({ inputTokens }) => formatCount(inputTokens) },
  { header: 'out', align: 'right', read: ({ outputTokens }) => formatCount(outputTokens) },
  {
    header: 'cost',
    align: 'right',
    read: ({ run, costMicroUsd }) =>
      costMicroUsd === null ? (run.simulated ? 'simulated' : 'not known') : formatMoney(costMicroUsd),
  },
  {
    header: 'median',
    align: 'right',
    read: ({ medianLatencyMs }) => formatDuration(medianLatencyMs ?? Number.NaN),
  },
];
