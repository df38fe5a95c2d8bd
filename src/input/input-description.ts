/** What is kept of an input besides its documents, so that they can be written again in the input's own shape. */
import type { SchemaElement } from 'hyparquet';

/** A table of text: what its header says and how it is written. */
export interface TableDescription {
  readonly format: 'csv' | 'tsv';
  /** The header's names in their order, all different and none empty. */
  readonly columns: readonly string[];
  /** One ASCII character. */
  readonly delimiter: string;
  /** Whether the file begins with one, which is how Excel knows UTF-8. */
  readonly byteOrderMark: boolean;
}

export interface ParquetDescription {
  readonly format: 'parquet';
  /** As in the file's footer: depth first, the root included. */
  readonly schema: readonly SchemaElement[];
}

/** Rows of a database: what was asked of it. */
export interface QueryDescription {
  readonly format: 'sqlite';
  readonly query: string;
}

/** Stored with the run, so it must be JSON. */
export type InputDescription =
  | { readonly format: 'jsonl' }
  /** `files`: each document is a whole file, not a line of one. */
  | { readonly format: 'text'; readonly files: boolean }
  | TableDescription
  | ParquetDescription
  | QueryDescription;
