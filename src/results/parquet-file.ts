/** Parquet as it is written: a row group at a time, so that memory does not grow with the file. Compressed with Snappy. */
import type { SchemaElement } from 'hyparquet-writer';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { usageError } from '../core/errors.js';
import type { TaskRow } from '../core/result-row.js';
import { isVector, type ResultColumn } from './result-columns.js';
import type { RowWriter } from './row-writer.js';
import type { OutputSink } from './sink.js';

/** One column of the file: its elements of the schema, depth first, and how its value is made. */
export interface ParquetColumn {
  readonly name: string;
  readonly elements: readonly SchemaElement[];
}

/**
 * Files of rows with outputs, each opened when the type of its outputs is known: with the first row that has one, or
 * at its end. What came before, failed documents, is held until then.
 */
export class OutputRows<Row extends TaskRow> implements RowWriter<Row> {
  readonly #open: (outputs: OutputType) => RowWriter<Row>;
  #early: Row[] = [];
  #writer: RowWriter<Row> | null = null;

  constructor(open: (outputs: OutputType) => RowWriter<Row>) {
    this.#open = open;
  }

  async write(rows: readonly Row[]): Promise<void> {
    if (this.#writer !== null) return this.#writer.write(rows);
    this.#early.push(...rows);
    const first = rows.find(({ result }) => result !== null);
    if (first !== undefined) await this.#begin(isVector(first) ? 'vector' : 'text');
  }

  async end(): Promise<void> {
    const writer = this.#writer ?? (await this.#begin('text'));
    await writer.end();
  }

  async #begin(outputs: OutputType): Promise<RowWriter<Row>> {
    const writer = this.#open(outputs);
    this.#writer = writer;
    await writer.write(this.#early);
    this.#early = [];
    return writer;
  }
}

/** Large enough to compress well, small enough to be held as values and as bytes at once. */
const GROUP_CHARACTERS = 16 * 1024 * 1024;
const GROUP_ROWS = 50_000;

export class ParquetFile {
  readonly #sink: OutputSink;
  readonly #names: readonly string[];
  readonly #bytes = new ByteWriter();
  readonly #writer: ParquetWriter;
  #columns: unknown[][];
  #characters = 0;

  constructor(sink: OutputSink, columns: readonly ParquetColumn[]) {
    this.#sink = sink;
    this.#names = columns.map(({ name }) => name);
    this.#columns = columns.map(() => []);
    const root = { name: 'schema', num_children: columns.length };
    this.#writer = new ParquetWriter({
      writer: this.#bytes,
      schema: [root, ...columns.flatMap(({ elements }) => elements)],
      statistics: false,
      createdBy: 'llm-batch',
    });
  }

  /** @param values one for each column, in its physical type @param characters about how large the row is */
  async addRow(values: readonly unknown[], characters: number): Promise<void> {
    for (const [index, column] of this.#columns.entries()) column.push(values[index]);
    this.#characters += characters;
    const rows = this.#columns[0]?.length ?? 0;
    if (rows >= GROUP_ROWS || this.#characters >= GROUP_CHARACTERS) await this.#writeGroup(rows);
  }

  /** Writes what is left and the footer, which a file without rows has too. */
  async finish(): Promise<void> {
    await this.#writeGroup(this.#columns[0]?.length ?? 0);
    this.#writer.finish();
    await this.#hand();
  }

  async #writeGroup(rows: number): Promise<void> {
    if (rows === 0) return;
    const columnData = this.#names.map((name, index) => ({ name, data: this.#columns[index] ?? [] }));
    this.#writer.write({ columnData, rowGroupSize: rows });
    this.#columns = this.#names.map(() => []);
    this.#characters = 0;
    await this.#hand();
  }

  /** `offset` goes on counting what has been handed over. */
  async #hand(): Promise<void> {
    await this.#sink.writeBytes(this.#bytes.getBytes());
    this.#bytes.index = 0;
  }
}

/** What outputs are in a file, whose columns have one type from the first row to the last. */
export type OutputType = 'text' | 'vector';

/** A column of results in the type that fits it; any of them may be null. */
export function typedColumn({ kind }: ResultColumn, name: string, outputs: OutputType): ParquetColumn {
  const repetition_type = 'OPTIONAL';
  switch (kind === 'output' ? outputs : kind) {
    case 'vector':
      return {
        name,
        elements: [
          { name, repetition_type, num_children: 1, converted_type: 'LIST' },
          { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
          { name: 'element', repetition_type: 'REQUIRED', type: 'DOUBLE' },
        ],
      };
    case 'text':
      return { name, elements: [{ name, type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type }] };
    case 'integer':
      return { name, elements: [{ name, type: 'INT64', repetition_type }] };
    case 'money':
      return { name, elements: [{ name, type: 'DOUBLE', repetition_type }] };
    case 'time':
      return {
        name,
        elements: [{ name, type: 'INT64', converted_type: 'TIMESTAMP_MILLIS', repetition_type }],
      };
  }
}

const MICRO_USD_PER_USD = 1_000_000;

/**
 * The value of a column as its type takes it.
 * @throws LlmBatchError OUTPUT_MIXED (exit 2) for text where vectors are, and the other way round
 */
export function typedValue({ kind, read }: ResultColumn, row: TaskRow, outputs: OutputType): unknown {
  const value = read(row);
  if (kind === 'output' && row.result !== null) {
    if (isVector(row) !== (outputs === 'vector')) {
      throw usageError(
        'OUTPUT_MIXED',
        `The answers of this run are of several kinds (line ${row.line} differs from those before it), and a Parquet column is of one.`,
        'write them as JSONL',
      );
    }
    return outputs === 'vector' ? JSON.parse(row.result.outputJson) : value;
  }
  if (typeof value !== 'number') return value;
  return kind === 'money' ? value / MICRO_USD_PER_USD : BigInt(Math.round(value));
}

/** About how large the values of a row are, a character of text being one. */
export function sizeOf(values: readonly unknown[]): number {
  let characters = 0;
  for (const value of values)
    characters += typeof value === 'string' ? value.length : 8 * (Array.isArray(value) ? value.length : 1);
  return characters;
}
