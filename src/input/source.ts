/**
 * The port that every input format fills: it turns rows of any kind into the JSON text of documents. That text is what is
 * stored, so neither resuming nor exporting needs the input again.
 */
import type { BadLine } from './bad-line.js';
import type { InputDescription } from './input-description.js';

export interface GoodRecord {
  /**
   * 1-based and rising: the line on which the row begins in a text file (blank lines count), the number of the row in a
   * Parquet file, or the number of the file if each document is one. Results are written in this order.
   */
  readonly line: number;
  /** The JSON text of one document. Nobody has looked at it yet, so it may not be JSON at all. */
  readonly text: string;
  /** The file's path, if each document is a file of its own. */
  readonly place?: string;
}

export type InputRecord = GoodRecord | BadLine;

export interface RecordOptions {
  /** The most bytes of one row in the input; a longer row is a bad line. Default: 32 MiB. */
  readonly maxLineBytes?: number;
}

export interface RecordSource {
  /** As messages call it: the path or pattern as given, or `standard input`. */
  readonly name: string;
  readonly description: InputDescription;
  /** Bytes to be read, as compressed as they are; null when the length is not known in advance. */
  readonly totalBytes: number | null;
  /** Bytes read so far, counted like `totalBytes`. */
  bytesRead(): number;
  /**
   * All rows, a page at a time; can be asked for once. A row that cannot be read is a value and never ends the reading.
   * @throws LlmBatchError (exit 2) when nothing after some place can be read
   */
  records(options: RecordOptions): AsyncIterable<readonly InputRecord[]>;
  /** Frees what was opened; safe to call at any time and twice. */
  close(): Promise<void>;
}
