/**
 * Settled tasks as CSV (RFC 4180, but lines end in `\n`), one set of columns for completed and failed tasks.
 * Text is written as it is, unless formulas are to be escaped: a cell that begins with `=`, `+`, `-` or `@` is one to a
 * spreadsheet program, and an answer that was made from foreign text may hold one.
 */
import { stringify } from 'csv-stringify/sync';
import type { ResultRow, TaskRow } from '../core/result-row.js';
import { spreadOutput } from './output-fields.js';
import { DOCUMENT_COLUMN, freeNames, RESULT_COLUMNS, type ResultColumn } from './result-columns.js';
import { costUsdJson, isoTime, settledRow } from './result-line.js';

/** In this order, and only ever added to at the end. */
export const CSV_COLUMNS = RESULT_COLUMNS.map(({ name }) => name);

export type CsvCell = string | number | null;

export interface CsvStyle {
  /** One character; default a comma. */
  readonly delimiter?: string;
  /** Texts that a spreadsheet program would take for formulas get an apostrophe in front. */
  readonly escapeFormulas?: boolean;
}

/** What begins a formula in Excel, LibreOffice or Google Sheets (OWASP, "CSV Injection"). */
const FORMULA = /^[=+\-@\t\r]/;

/** Rows with their newlines. */
export function csvText(
  rows: readonly (readonly CsvCell[])[],
  { delimiter = ',', escapeFormulas = false }: CsvStyle = {},
): string {
  if (rows.length === 0) return '';
  const safe = (cell: CsvCell): CsvCell =>
    typeof cell === 'string' && FORMULA.test(cell) ? `'${cell}` : cell;
  const cells = escapeFormulas ? rows.map((row) => row.map(safe)) : rows;
  // A reader may take a lone carriage return for the end of a row, which the library would leave unquoted.
  return stringify(cells as CsvCell[][], { delimiter, record_delimiter: '\n', quoted_match: /[\r\n]/ });
}

/**
 * The header row with its newline; `document` is the last column when the input is included.
 * @param outputFields of outputs that are objects, each a column
 */
export function csvHeader(
  includeInput: boolean,
  outputFields: readonly string[] = [],
  style: CsvStyle = {},
): string {
  const names = [...CSV_COLUMNS, ...freeNames(outputFields, [...CSV_COLUMNS, DOCUMENT_COLUMN.name])];
  return csvText([includeInput ? [...names, DOCUMENT_COLUMN.name] : names], style);
}

/**
 * Rows with their newlines. Text outputs are plain text; objects, vectors, metadata and documents are JSON text.
 * @throws LlmBatchError RESULT_ROW_BROKEN
 */
export function csvRows(
  rows: readonly ResultRow[],
  includeInput: boolean,
  outputFields: readonly string[] = [],
  style: CsvStyle = {},
): string {
  return csvText(
    rows.map((row) => {
      const cells = resultCells(settledRow(row), RESULT_COLUMNS, outputFields);
      return includeInput ? [...cells, row.body] : cells;
    }),
    style,
  );
}

/** The cells of these columns and of the fields, which take the place of an output that is an object. */
export function resultCells(
  row: TaskRow,
  columns: readonly ResultColumn[],
  outputFields: readonly string[],
): CsvCell[] {
  const spread = outputFields.length === 0 ? null : spreadOutput(row, outputFields);
  const cells = columns.map((column) =>
    column.name === 'output' && spread !== null ? null : cellOf(column, row),
  );
  return outputFields.length === 0 ? cells : [...cells, ...(spread ?? outputFields.map(() => null))];
}

function cellOf({ kind, read }: ResultColumn, row: TaskRow): CsvCell {
  const value = read(row);
  if (typeof value !== 'number') return value;
  if (kind === 'money') return costUsdJson(value);
  return kind === 'time' ? isoTime(value) : value;
}
