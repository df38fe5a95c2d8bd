/**
 * `results --join`: the input again, with the answers as columns of their own. It is made of the documents in the
 * store, so the input is not needed; every one of them is in it, in input order, whether answered yet or not.
 */
import type { TaskRow } from '../core/result-row.js';
import type { TaskPlace } from '../core/task.js';
import type { InputDescription } from '../input/input-description.js';
import { type ResultDestination, writePages } from './export.js';
import { openCsvJoin } from './join-csv.js';
import { openJsonlJoin } from './join-jsonl.js';
import { outputFieldsOf } from './output-fields.js';
import type { RowWriter } from './row-writer.js';
import type { OutputSink } from './sink.js';

export interface JoinOptions {
  readonly input: InputDescription;
  /** `Store.listTasks` of the run, in pages as large as the reader likes. */
  readonly listTasks: (afterTaskId: number) => Promise<readonly TaskPlace[]>;
  /** `Store.readTasks` of the run. */
  readonly readTasks: (taskIds: readonly number[]) => Promise<readonly TaskRow[]>;
  readonly destination: ResultDestination;
  /** CSV and TSV alone: the fields of outputs that are objects get columns of their own. */
  readonly spreadOutput: boolean;
  /** CSV and TSV alone, see `CsvStyle`. */
  readonly escapeFormulas?: boolean;
  /** Called after each page with the rows written so far. */
  readonly onProgress?: (rows: number) => void;
}

export interface WrittenJoin {
  readonly rows: number;
  /** Of them, those with an answer or an error. */
  readonly settled: number;
  /** The stream's reader went away before the end; no error. */
  readonly readerGone: boolean;
}

const PAGE_ROWS = 1_000;

/**
 * Memory: 16 bytes a document, to put them in order, besides a page of them.
 * @throws LlmBatchError OUTPUT_EXISTS, OUTPUT_PATH, OUTPUT_FIELDS, JOIN_COLUMN (exit 2), OUTPUT_WRITE (exit 5)
 */
export async function writeJoined(options: JoinOptions): Promise<WrittenJoin> {
  const taskIds = await inputOrder(options.listTasks);
  const pages = (): AsyncGenerator<readonly TaskRow[]> => pagesOf(taskIds, options.readTasks);
  const outputFields = options.spreadOutput ? await outputFieldsOf(pages()) : [];
  let rows = 0;
  let settled = 0;
  const readerGone = await writePages({
    destination: options.destination,
    openWriter: (sink) => openWriter(options, sink, outputFields, pages),
    pages: pages(),
    onPage(page) {
      rows += page.length;
      settled += page.filter(({ state }) => state === 'completed' || state === 'failed').length;
      options.onProgress?.(rows);
    },
  });
  return { rows, settled, readerGone };
}

async function openWriter(
  { input, escapeFormulas }: JoinOptions,
  sink: OutputSink,
  outputFields: readonly string[],
  pages: () => AsyncIterable<readonly TaskRow[]>,
): Promise<RowWriter<TaskRow>> {
  switch (input.format) {
    case 'csv':
    case 'tsv':
      return openCsvJoin(sink, input, outputFields, escapeFormulas);
    case 'parquet': {
      const { openParquetJoin } = await import('./join-parquet.js');
      return openParquetJoin(sink, input);
    }
    default:
      return openJsonlJoin(sink, pages());
  }
}

async function* pagesOf(
  taskIds: readonly number[],
  readTasks: JoinOptions['readTasks'],
): AsyncGenerator<readonly TaskRow[]> {
  for (let start = 0; start < taskIds.length; start += PAGE_ROWS) {
    yield await readTasks(taskIds.slice(start, start + PAGE_ROWS));
  }
}

/** The order of adding is that of the input, unless an edited input was run again. */
async function inputOrder(listTasks: JoinOptions['listTasks']): Promise<readonly number[]> {
  const taskIds: number[] = [];
  const lines: number[] = [];
  let isInOrder = true;
  for (let afterTaskId = 0; ; ) {
    const page = await listTasks(afterTaskId);
    if (page.length === 0) break;
    for (const { taskId, line } of page) {
      if (line < (lines.at(-1) ?? 0)) isInOrder = false;
      taskIds.push(taskId);
      lines.push(line);
      afterTaskId = taskId;
    }
  }
  if (isInOrder) return taskIds;
  const order = Uint32Array.from(taskIds.keys()).sort(
    (one, other) => (lines[one] ?? 0) - (lines[other] ?? 0) || one - other,
  );
  return Array.from(order, (index) => taskIds[index] ?? 0);
}
