/**
 * The port that every input format fills: rows of whatever kind, each as the JSON text of a document. That text is
 * what is stored, so that neither resuming nor exporting needs the input again.
 */
import type { BadLine } from './bad-line.js';
import type { InputDescription } from './input-description.js';

export interface GoodRecord {
  /**
   * 1-based and rising: where the row begins in a text file (blank lines count), the number of the row in a Parquet
   * file, the number of the file where each document is one. Results are written in this order.
   */
  readonly line: number;
  /** JSON text of one document; not looked at yet, so it may be no JSON at all. */
  readonly text: string;
  /** The file's path where each document is a file of its own. */
  readonly place?: string;
}

export type InputRecord = GoodRecord | BadLine;

export interface RecordOptions {
  /** Bytes of one row in the input; a longer one is a bad line. Default 32 MiB. */
  readonly maxLineBytes?: number;
}

export interface RecordSource {
  /** As messages call it: the path or pattern as given, or `standard input`. */
  readonly name: string;
  readonly description: InputDescription;
  /** Bytes to be read, compressed where they are; null where the end is not known beforehand. */
  readonly totalBytes: number | null;
  /** Bytes read so far, of the same kind as `totalBytes`. */
  bytesRead(): number;
  /**
   * All rows, a page at a time; may be asked for once. A row that cannot be read is a value and never ends the reading.
   * @throws LlmBatchError (exit 2) where nothing after a place can be read
   */
  records(options: RecordOptions): AsyncIterable<readonly InputRecord[]>;
  /** Frees what was opened; safe to call at any time and twice. */
  close(): Promise<void>;
}
