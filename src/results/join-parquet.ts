/** A Parquet file with answers: the input's columns in the types they had, with columns added at the end. */
import type { SchemaElement as WrittenElement } from 'hyparquet-writer';
import { EXIT_CODES, LlmBatchError } from '../core/errors.js';
import { type ExactJson, parseExact } from '../core/exact-json.js';
import type { TaskRow } from '../core/result-row.js';
import type { ParquetDescription } from '../input/input-description.js';
import { type ColumnFromJson, columnsFromJson } from '../input/parquet-from-json.js';
import { UnusableValue } from '../input/parquet-leaf.js';
import { OutputRows, ParquetFile, sizeOf, typedColumn, typedValue } from './parquet-file.js';
import { ANSWER_COLUMNS, freeNames } from './result-columns.js';
import type { RowWriter } from './row-writer.js';
import type { OutputSink } from './sink.js';

export async function openParquetJoin(
  sink: OutputSink,
  { schema }: ParquetDescription,
): Promise<RowWriter<TaskRow>> {
  const columns = columnsFromJson(schema);
  const names = freeNames(
    ANSWER_COLUMNS.map(({ name }) => name),
    columns.map(({ name }) => name),
  );
  return new OutputRows((outputs) => {
    const file = new ParquetFile(sink, [
      ...columns.map(({ name, elements }) => ({ name, elements: elements as readonly WrittenElement[] })),
      ...ANSWER_COLUMNS.map((column, index) => typedColumn(column, names[index] ?? column.name, outputs)),
    ]);
    return {
      async write(rows) {
        for (const row of rows) {
          const body = row.body ?? '{}';
          const answer = ANSWER_COLUMNS.map((column) => typedValue(column, row, outputs));
          const document = parseExact(body) as Readonly<Record<string, ExactJson>>;
          const values = columns.map((column) => columnValue(column, document, row.line));
          await file.addRow([...values, ...answer], body.length + sizeOf(answer));
        }
      },
      end: () => file.finish(),
    };
  });
}

/** Only a document that was kept from an earlier form of the input cannot fit. */
function columnValue(
  { name, toValue }: ColumnFromJson,
  document: Readonly<Record<string, ExactJson>>,
  line: number,
): unknown {
  try {
    return toValue(Object.hasOwn(document, name) ? (document[name] ?? null) : null);
  } catch (error) {
    if (!(error instanceof UnusableValue)) throw error;
    throw new LlmBatchError(`The column ${name} of row ${line} ${error.message}.`, {
      code: 'JOIN_COLUMN',
      exitCode: EXIT_CODES.usage,
      cause: error,
    });
  }
}
