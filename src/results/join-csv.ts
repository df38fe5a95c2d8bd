/** A table of text with answers: the input's columns, values and delimiter, with columns added at the end. */
import { type ExactJson, parseExact } from '../core/exact-json.js';
import type { TaskRow } from '../core/result-row.js';
import type { TableDescription } from '../input/input-description.js';
import { csvText, resultCells } from './csv.js';
import { fieldCell } from './output-fields.js';
import { ANSWER_COLUMNS, freeNames } from './result-columns.js';
import { type RowWriter, textRows } from './row-writer.js';
import type { OutputSink } from './sink.js';

/** @param outputFields of outputs that are objects, each a column */
export async function openCsvJoin(
  sink: OutputSink,
  { columns, delimiter, byteOrderMark }: TableDescription,
  outputFields: readonly string[],
  escapeFormulas = false,
): Promise<RowWriter<TaskRow>> {
  const style = { delimiter, escapeFormulas };
  const added = [...ANSWER_COLUMNS.map(({ name }) => name), ...outputFields];
  await sink.write(
    (byteOrderMark ? '\ufeff' : '') + csvText([[...columns, ...freeNames(added, columns)]], style),
  );
  return textRows(sink, (rows) =>
    csvText(
      rows.map((row) => {
        // Its values are strings, but a document that was kept from another form of the input may have others.
        const document = parseExact(row.body ?? '{}') as Readonly<Record<string, ExactJson>>;
        const values = columns.map((name) => fieldCell(document, name));
        return [...values, ...resultCells(row, ANSWER_COLUMNS, outputFields)];
      }),
      style,
    ),
  );
}
