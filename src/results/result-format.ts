/** The formats of a results file, each as a writer of pages of rows. */
import { usageError } from '../core/errors.js';
import type { ResultRow } from '../core/result-row.js';
import { formatOfEnding } from '../input/endings.js';
import { csvHeader, csvRows } from './csv.js';
import { openaiLine } from './openai-line.js';
import { DOCUMENT_COLUMN, RESULT_COLUMNS } from './result-columns.js';
import { resultLine, settledRow } from './result-line.js';
import { type RowWriter, textRows } from './row-writer.js';
import type { OutputSink } from './sink.js';

export const RESULT_FORMATS = ['jsonl', 'csv', 'openai', 'parquet', 'tsv'] as const;

export type ResultFormat = (typeof RESULT_FORMATS)[number];

/** Of files that this program names itself. */
export const ENDINGS: Readonly<Record<ResultFormat, string>> = {
  jsonl: '.jsonl',
  csv: '.csv',
  tsv: '.tsv',
  openai: '.openai.jsonl',
  parquet: '.parquet',
};

/**
 * The format of an output: what its ending says (`.gz` left out), or what was asked for by name. An ending that says
 * nothing goes with any format; one that says another is refused, since whoever opens the file would believe it.
 * @param output as `-o` gives it; null: none was given
 * @param asked what `--format` says; null: nothing
 * @throws LlmBatchError FORMAT_ENDING (exit 2)
 */
export function formatFor(output: string | null, asked: ResultFormat | null): ResultFormat {
  const ending = output === null ? null : formatOfEnding(output);
  const said = ending === 'text' || ending === 'sqlite' ? null : ending;
  const format = asked ?? said ?? 'jsonl';
  if (said === null || said === (format === 'openai' ? 'jsonl' : format)) return format;
  throw usageError(
    'FORMAT_ENDING',
    `The ending of ${output} says ${said.toUpperCase()}, and the format asked for is ${format}.`,
    { ending: ENDINGS[format] },
  );
}

export interface RowWriterOptions {
  /** `openai` has no place for the input document, so this means nothing to it. */
  readonly includeInput: boolean;
  /** Of outputs that are objects, each a column of CSV; empty: the output is one column. */
  readonly outputFields: readonly string[];
  /** CSV alone, see `CsvStyle`. */
  readonly escapeFormulas?: boolean;
}

/** Opens the writer of a format; what stands before the first row is written. */
export async function openRowWriter(
  format: ResultFormat,
  sink: OutputSink,
  { includeInput, outputFields, escapeFormulas = false }: RowWriterOptions,
): Promise<RowWriter<ResultRow>> {
  switch (format) {
    case 'jsonl':
      return textRows(
        sink,
        linesOf((row) => resultLine(row, { includeInput })),
      );
    case 'openai':
      return textRows(sink, linesOf(openaiLine));
    case 'csv':
    case 'tsv': {
      const style = { delimiter: format === 'csv' ? ',' : '\t', escapeFormulas };
      await sink.write(csvHeader(includeInput, outputFields, style));
      return textRows(sink, (rows) => csvRows(rows, includeInput, outputFields, style));
    }
    case 'parquet':
      return parquetRows(sink, includeInput);
  }
}

export function linesOf<Row>(line: (row: Row) => string): (rows: readonly Row[]) => string {
  return (rows) => {
    let text = '';
    for (const row of rows) text += `${line(row)}\n`;
    return text;
  };
}

async function parquetRows(sink: OutputSink, includeInput: boolean): Promise<RowWriter<ResultRow>> {
  // Only who writes such a file pays for loading its writer.
  const { OutputRows, ParquetFile, sizeOf, typedColumn, typedValue } = await import('./parquet-file.js');
  const columns = includeInput ? [...RESULT_COLUMNS, DOCUMENT_COLUMN] : RESULT_COLUMNS;
  return new OutputRows((outputs) => {
    const file = new ParquetFile(
      sink,
      columns.map((column) => typedColumn(column, column.name, outputs)),
    );
    return {
      async write(rows) {
        for (const row of rows) {
          const settled = settledRow(row);
          const values = columns.map((column) => typedValue(column, settled, outputs));
          await file.addRow(values, sizeOf(values));
        }
      },
      end: () => file.finish(),
    };
  });
}
