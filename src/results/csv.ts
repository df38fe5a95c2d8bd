/**
 * Settled tasks as CSV (RFC 4180, but lines end in `\n`), one set of columns for completed and failed tasks.
 * Text is written as it is: a cell that begins with `=`, `+`, `-` or `@` is a formula to a spreadsheet program, and
 * an answer that was made from foreign text may hold one. Import such files as text, or read the JSON Lines.
 */
import { stringify } from 'csv-stringify/sync';
import type { ResultRow } from '../store/store.js';
import { costUsdJson, isoTime, settledRow } from './result-line.js';

/** In this order, and only ever added to at the end. */
export const CSV_COLUMNS = [
  'id',
  'line',
  'status',
  'output',
  'model',
  'finish_reason',
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'reasoning_tokens',
  'cost_usd',
  'attempts',
  'latency_ms',
  'request_id',
  'finished_at',
  'error_kind',
  'error_message',
  'http_status',
  'error_code',
  'partial_output',
  'metadata',
] as const;

/** A reader may take a lone carriage return for the end of a row, which the library would leave unquoted. */
const FORMAT = { record_delimiter: '\n', quoted_match: /[\r\n]/ } as const;

/** The header row with its newline; `document` is the last column when the input is included. */
export function csvHeader(includeInput: boolean): string {
  return stringify([includeInput ? [...CSV_COLUMNS, 'document'] : [...CSV_COLUMNS]], FORMAT);
}

/**
 * Rows with their newlines. Text outputs are plain text; objects, vectors, metadata and documents are JSON text.
 * @throws LlmBatchError RESULT_ROW_BROKEN
 */
export function csvRows(rows: readonly ResultRow[], includeInput: boolean): string {
  if (rows.length === 0) return '';
  return stringify(
    rows.map((row) => csvCells(row, includeInput)),
    FORMAT,
  );
}

function csvCells(row: ResultRow, includeInput: boolean): (string | number | null)[] {
  const settled = settledRow(row);
  const completed = settled.state === 'completed' ? settled.result : null;
  const failed = settled.state === 'failed' ? settled.error : null;
  const { usage } = row;
  const cells = [
    row.key,
    row.line,
    row.state,
    completed === null ? null : textOfJson(completed.outputJson),
    completed?.model ?? null,
    completed?.finishReason ?? null,
    usage?.inputTokens ?? null,
    usage?.outputTokens ?? null,
    usage?.cachedTokens ?? null,
    usage?.reasoningTokens ?? null,
    row.costMicroUsd === null ? null : costUsdJson(row.costMicroUsd),
    row.attempts,
    row.latencyMs === null ? null : Math.round(row.latencyMs),
    failed?.requestId ?? row.requestId,
    isoTime(row.settledAtMs),
    failed?.kind ?? null,
    failed?.message ?? null,
    failed?.httpStatus ?? null,
    failed?.code ?? null,
    failed === null || failed.partialOutputJson === null ? null : textOfJson(failed.partialOutputJson),
    row.metadataJson,
  ];
  return includeInput ? [...cells, row.body] : cells;
}

function textOfJson(json: string): string {
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}
