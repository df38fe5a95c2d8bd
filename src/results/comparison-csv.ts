/** Runs side by side as CSV: a row a document, four columns a run. */
import type { ResultRow } from '../core/result-row.js';
import { type CsvCell, csvText } from './csv.js';
import { costUsdJson } from './result-line.js';

export interface ComparedRow {
  readonly key: string;
  readonly agrees: boolean;
  /** One a run, in the order of the names. */
  readonly answers: readonly { readonly text: string; readonly row: ResultRow }[];
}

export function comparisonCsv(names: readonly string[], rows: readonly ComparedRow[]): string {
  const columns = names.flatMap((name) =>
    ['', ' tokens', ' cost_usd', ' latency_ms'].map((figure) => `${name}${figure}`),
  );
  return csvText([
    ['id', 'agrees', ...columns],
    ...rows.map(({ key, agrees, answers }) => [key, String(agrees), ...answers.flatMap(cellsOf)]),
  ]);
}

function cellsOf({ text, row }: ComparedRow['answers'][number]): CsvCell[] {
  const { usage, costMicroUsd, latencyMs } = row;
  return [
    text,
    usage === null ? null : usage.inputTokens + usage.outputTokens,
    costMicroUsd === null ? null : costUsdJson(costMicroUsd),
    latencyMs === null ? null : Math.round(latencyMs),
  ];
}
