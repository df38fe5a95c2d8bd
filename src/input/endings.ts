/** The format of an input, by the ending of its name. */
import { usageError } from '../core/errors.js';
import type { InputFormat } from '../core/input-format.js';

const FORMAT_OF_ENDING: Readonly<Record<string, InputFormat>> = {
  jsonl: 'jsonl',
  ndjson: 'jsonl',
  json: 'jsonl',
  csv: 'csv',
  tsv: 'tsv',
  tab: 'tsv',
  txt: 'text',
  md: 'text',
  markdown: 'text',
  parquet: 'parquet',
  pq: 'parquet',
  db: 'sqlite',
  sqlite: 'sqlite',
  sqlite3: 'sqlite',
};

/** Text files that are one document as a whole, rather than one per line. */
const WHOLE_FILE_ENDINGS = ['md', 'markdown'];

/** Formats that hold documents but cannot be read, and the way out. */
const OTHER_FORMATS: Readonly<Record<string, string>> = {
  xlsx: 'Save it as CSV (UTF-8).',
  xls: 'Save it as CSV (UTF-8).',
  ods: 'Save it as CSV (UTF-8).',
  arrow: 'Write it as Parquet.',
  feather: 'Write it as Parquet.',
  avro: 'Write it as Parquet or JSONL.',
  orc: 'Write it as Parquet.',
};

/**
 * The format that a name's ending stands for, `.gz` ignored; null for an ending that says nothing.
 * @throws LlmBatchError INPUT_FORMAT_UNSUPPORTED (exit 2)
 */
export function formatOfName(path: string): InputFormat | null {
  const ending = endingOf(path);
  const hint = Object.hasOwn(OTHER_FORMATS, ending) ? OTHER_FORMATS[ending] : undefined;
  if (hint !== undefined) {
    throw usageError(
      'INPUT_FORMAT_UNSUPPORTED',
      `The input ${path} is a ${ending.toUpperCase()} file, which cannot be read.`,
      hint,
    );
  }
  return formatOfEnding(path);
}

/** As `formatOfName`, but null for formats that cannot be read. */
export function formatOfEnding(path: string): InputFormat | null {
  const ending = endingOf(path);
  return Object.hasOwn(FORMAT_OF_ENDING, ending) ? (FORMAT_OF_ENDING[ending] ?? null) : null;
}

export function isWholeFileDocument(path: string): boolean {
  return WHOLE_FILE_ENDINGS.includes(endingOf(path));
}

function endingOf(path: string): string {
  return /\.([^./\\]+)$/.exec(path.toLowerCase().replace(/\.gz$/, ''))?.[1] ?? '';
}
