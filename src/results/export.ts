/** `results`: the settled tasks of a run in one file or on one stream. */
import type { Writable } from 'node:stream';
import type { ResultFilter } from '../core/result-row.js';
import type { AtomicFileOptions } from './atomic-file.js';
import { outputFieldsOf } from './output-fields.js';
import { openRowWriter, type ResultFormat } from './result-format.js';
import { type ReadResultPage, resultPages } from './result-pages.js';
import type { RowWriter } from './row-writer.js';
import { type OutputSink, openFileSink, openStreamSink } from './sink.js';

export type ResultDestination =
  | { readonly kind: 'file'; readonly path: string; readonly mayReplace: AtomicFileOptions['mayReplace'] }
  /** Not ended by us; `name` is for error messages, e.g. `standard output`. */
  | { readonly kind: 'stream'; readonly stream: Writable; readonly name: string };

export interface WriteResultsOptions {
  readonly readPage: ReadResultPage;
  readonly format: ResultFormat;
  readonly only: ResultFilter;
  readonly includeInput: boolean;
  /** CSV alone: the fields of outputs that are objects get columns of their own. */
  readonly spreadOutput?: boolean;
  /** CSV alone, see `CsvStyle`. */
  readonly escapeFormulas?: boolean;
  readonly destination: ResultDestination;
  /** Called after each page with the rows written so far. */
  readonly onProgress?: (rows: number) => void;
}

export interface WrittenResults {
  readonly completed: number;
  readonly failed: number;
  /** The stream's reader went away (`| head`) before the end; no error. */
  readonly readerGone: boolean;
}

/**
 * Writes results in input order with memory that does not depend on their number. A file appears complete or not at all.
 * @throws LlmBatchError OUTPUT_EXISTS, OUTPUT_PATH (exit 2), OUTPUT_WRITE, RESULT_ROW_BROKEN (exit 5)
 */
export async function writeResults(options: WriteResultsOptions): Promise<WrittenResults> {
  const { format, includeInput, escapeFormulas = false } = options;
  const pages = () => resultPages(options.readPage, options.only);
  const outputFields = options.spreadOutput ? await outputFieldsOf(pages()) : [];
  let completed = 0;
  let failed = 0;
  const readerGone = await writePages({
    destination: options.destination,
    openWriter: (sink) => openRowWriter(format, sink, { includeInput, outputFields, escapeFormulas }),
    pages: pages(),
    onPage(page) {
      const answered = page.filter(({ state }) => state === 'completed').length;
      completed += answered;
      failed += page.length - answered;
      options.onProgress?.(completed + failed);
    },
  });
  return { completed, failed, readerGone };
}

export interface PageWriting<Row> {
  readonly destination: ResultDestination;
  readonly openWriter: (sink: OutputSink) => Promise<RowWriter<Row>>;
  readonly pages: AsyncIterable<readonly Row[]>;
  /** Told of each page that was written. */
  readonly onPage: (page: readonly Row[]) => void;
}

/** Writes all pages, or nothing of a file. @returns whether a stream's reader went away before the end */
export async function writePages<Row>({
  destination,
  openWriter,
  pages,
  onPage,
}: PageWriting<Row>): Promise<boolean> {
  const sink =
    destination.kind === 'file'
      ? await openFileSink(destination.path, { mayReplace: destination.mayReplace })
      : openStreamSink(destination.stream, destination.name);
  try {
    const writer = await openWriter(sink);
    for await (const page of pages) {
      await writer.write(page);
      onPage(page);
      if (sink.readerGone) break;
    }
    await writer.end();
    await sink.finish();
  } catch (error) {
    await sink.abort();
    throw error;
  }
  return sink.readerGone;
}
