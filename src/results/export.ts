/** `results`: the settled tasks of a run in one file or on one stream. */
import type { Writable } from 'node:stream';
import type { ResultFilter } from '../core/result-row.js';
import type { AtomicFileOptions } from './atomic-file.js';
import { OutputFields } from './output-fields.js';
import { openRowWriter, type ResultFormat } from './result-format.js';
import { type ReadResultPage, resultPages } from './result-pages.js';
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
  const outputFields = options.spreadOutput ? await fieldsOf(options) : [];
  const sink = await openSink(options.destination);
  let completed = 0;
  let failed = 0;
  try {
    const writer = await openRowWriter(options.format, sink, {
      includeInput: options.includeInput,
      outputFields,
      escapeFormulas: options.escapeFormulas ?? false,
    });
    for await (const page of resultPages(options.readPage, options.only)) {
      await writer.write(page);
      for (const row of page) {
        if (row.state === 'completed') completed += 1;
        else failed += 1;
      }
      if (sink.readerGone) break;
      options.onProgress?.(completed + failed);
    }
    await writer.end();
    await sink.finish();
  } catch (error) {
    await sink.abort();
    throw error;
  }
  return { completed, failed, readerGone: sink.readerGone };
}

/** A table's header comes first, so all outputs are looked at before. */
async function fieldsOf({ readPage, only }: WriteResultsOptions): Promise<readonly string[]> {
  const fields = new OutputFields();
  for await (const page of resultPages(readPage, only)) for (const row of page) fields.add(row);
  return fields.names;
}

export async function openSink(destination: ResultDestination): Promise<OutputSink> {
  return destination.kind === 'file'
    ? openFileSink(destination.path, { mayReplace: destination.mayReplace })
    : openStreamSink(destination.stream, destination.name);
}
