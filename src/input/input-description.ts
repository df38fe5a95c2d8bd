/** What is kept of an input besides its documents, so that they can be written back in the input's own shape. */
import type { SchemaElement } from 'hyparquet';

/** A CSV or TSV file: what its header says and how it is written. */
export interface TableDescription {
  readonly format: 'csv' | 'tsv';
  /** The header's names in their order, all different and none empty. */
  readonly columns: readonly string[];
  /** One ASCII character. */
  readonly delimiter: string;
  /** Whether the file begins with one: Excel takes it as the sign of UTF-8. */
  readonly byteOrderMark: boolean;
}

export interface ParquetDescription {
  readonly format: 'parquet';
  /** As in the file's footer: depth first, the root included. */
  readonly schema: readonly SchemaElement[];
}

/** A database, and the query it was asked. */
export interface QueryDescription {
  readonly format: 'sqlite';
  readonly query: string;
}

/** Stored with the run, so it must be JSON. */
export type InputDescription =
  | { readonly format: 'jsonl' }
  /** `files`: each document is a whole file rather than a line of one. */
  | { readonly format: 'text'; readonly files: boolean }
  | TableDescription
  | ParquetDescription
  | QueryDescription;
