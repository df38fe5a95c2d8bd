/** Writers of pages of rows, whatever the format. */
import type { OutputSink } from './sink.js';

/** Writes to a sink that somebody else finishes or aborts. */
export interface RowWriter<Row> {
  /** @throws LlmBatchError RESULT_ROW_BROKEN, and as the sink does */
  write(rows: readonly Row[]): Promise<void>;
  /** After the last row. */
  end(): Promise<void>;
}

/** @param textOf rows with their newlines */
export function textRows<Row>(sink: OutputSink, textOf: (rows: readonly Row[]) => string): RowWriter<Row> {
  return {
    write: async (rows) => sink.write(textOf(rows)),
    async end() {},
  };
}
