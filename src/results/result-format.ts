/** The formats of a results file, each as a header and a way to write one page of rows. */
import type { ResultRow } from '../store/store.js';
import { csvHeader, csvRows } from './csv.js';
import { openaiLine } from './openai-line.js';
import { resultLine } from './result-line.js';

export const RESULT_FORMATS = ['jsonl', 'csv', 'openai'] as const;

export type ResultFormat = (typeof RESULT_FORMATS)[number];

export interface RowWriter {
  /** Written once, before the first row; empty for JSON Lines. */
  readonly header: string;
  /** Rows with their newlines. @throws LlmBatchError RESULT_ROW_BROKEN */
  rows(rows: readonly ResultRow[]): string;
}

/** `openai` has no place for the input document, so `includeInput` means nothing to it. */
export function rowWriter(format: ResultFormat, includeInput: boolean): RowWriter {
  switch (format) {
    case 'jsonl':
      return { header: '', rows: linesOf((row) => resultLine(row, { includeInput })) };
    case 'openai':
      return { header: '', rows: linesOf(openaiLine) };
    case 'csv':
      return { header: csvHeader(includeInput), rows: (rows) => csvRows(rows, includeInput) };
  }
}

function linesOf(line: (row: ResultRow) => string): RowWriter['rows'] {
  return (rows) => {
    let text = '';
    for (const row of rows) text += `${line(row)}\n`;
    return text;
  };
}
