/**
 * One settled task as one line of a results or errors file. Stored JSON text is spliced into the line as it
 * is: parsing it again would cost most of the time of an export and would round numbers beyond 2^53.
 */
import { EXIT_CODES, LlmBatchError } from '../core/errors.js';
import { escapedJson } from '../core/foreign-text.js';
import type { CompletedResult, TaskError } from '../core/outcome.js';
import type { ResultRow } from '../core/result-row.js';
import type { TokenUsage } from '../core/usage.js';

/** The task has an answer; `result` is not null. */
export type CompletedRow = ResultRow & { readonly state: 'completed'; readonly result: CompletedResult };
/** The task failed; `error` is not null. */
export type FailedRow = ResultRow & { readonly state: 'failed'; readonly error: TaskError };
export type SettledRow = CompletedRow | FailedRow;

/**
 * Narrows a row to one with an answer or an error.
 * @throws LlmBatchError RESULT_ROW_BROKEN (exit 5) for a row that has neither, which only a damaged store holds
 */
export function settledRow(row: ResultRow): SettledRow {
  if (row.state === 'completed' && row.result !== null) return row as CompletedRow;
  if (row.state === 'failed' && row.error !== null) return row as FailedRow;
  const message = `The store holds no answer and no error for the task of line ${row.line} (state ${row.state}).`;
  throw new LlmBatchError(message, {
    code: 'RESULT_ROW_BROKEN',
    exitCode: EXIT_CODES.store,
    hint: 'check the store with `llm-batch doctor`.',
  });
}

/**
 * The JSON line of a settled task, without its newline: the results-file shape for a completed one, the
 * errors-file shape for a failed one. `id` is the document's, `cost_usd` a decimal number of dollars or
 * null where no price is known, times are ISO 8601 in UTC. With the input, that is added as `document`; it needs rows
 * read with their body.
 * @throws LlmBatchError RESULT_ROW_BROKEN
 */
export function resultLine(row: ResultRow, options: { readonly includeInput: boolean }): string {
  const settled = settledRow(row);
  const line = settled.state === 'completed' ? completedLine(settled) : failedLine(settled);
  const document = options.includeInput ? `,"document":${row.body ?? 'null'}` : '';
  return oneLine(`${line}${sharedField(row)}${metadataField(row)}${document}}`);
}

function completedLine(row: CompletedRow): string {
  const { result } = row;
  return (
    `{"id":${idJson(row)},"line":${row.line},"status":"completed"` +
    `,"output":${result.outputJson},"model":${JSON.stringify(result.model)}` +
    `,"finish_reason":${textOrNull(result.finishReason || null)},"usage":${usageJson(row.usage)}` +
    `,"cost_usd":${costUsdJson(row.costMicroUsd)},"attempts":${row.attempts}` +
    `,"latency_ms":${row.latencyMs === null ? 'null' : Math.round(row.latencyMs)}` +
    `,"request_id":${textOrNull(row.requestId)},"completed_at":"${isoTime(row.settledAtMs)}"${detailFields(result)}`
  );
}

/** The document's id as JSON text, in the type that it has there. */
export function idJson({ key, idIsNumber }: Pick<ResultRow, 'key' | 'idIsNumber'>): string {
  return idIsNumber ? key : JSON.stringify(key);
}

/** `message` and what else there is beside the text. */
function detailFields({ detailsJson }: CompletedResult): string {
  return detailsJson === undefined ? '' : `,${detailsJson.slice(1, -1)}`;
}

function failedLine(row: FailedRow): string {
  const { error } = row;
  const partial = error.partialOutputJson === null ? '' : `,"partial_output":${error.partialOutputJson}`;
  return (
    `{"id":${idJson(row)},"line":${row.line},"status":"failed"` +
    `,"error":{"kind":"${error.kind}","message":${JSON.stringify(error.message)}` +
    `,"http_status":${error.httpStatus ?? 'null'},"code":${textOrNull(error.code)}` +
    `,"request_id":${textOrNull(error.requestId)}${partial}}` +
    `,"attempts":${row.attempts},"failed_at":"${isoTime(row.settledAtMs)}"`
  );
}

/** Only where the answer was paid for elsewhere: with another document of this run, or by an earlier run. */
function sharedField({ sharedFrom }: ResultRow): string {
  return sharedFrom === null ? '' : `,"shared_from":"${sharedFrom}"`;
}

function metadataField({ metadataJson }: ResultRow): string {
  return metadataJson === null ? '' : `,"metadata":${metadataJson}`;
}

function usageJson(usage: TokenUsage | null): string {
  if (usage === null) return 'null';
  return (
    `{"input_tokens":${usage.inputTokens},"output_tokens":${usage.outputTokens}` +
    `,"cached_tokens":${usage.cachedTokens},"reasoning_tokens":${usage.reasoningTokens}}`
  );
}

/** Of a micro-dollar: a document's share of a call for many may be less than one. */
const SHARE_DIGITS = 6;
const DOLLAR_DIGITS = 6 + SHARE_DIGITS;

/**
 * Dollars as decimal text (a JSON number) from micro-dollars, or `null`. Made from digits and not by a division, so
 * that 100001 micro-dollars are 0.100001 and never 0.10000100000000001.
 */
export function costUsdJson(costMicroUsd: number | null): string {
  if (costMicroUsd === null) return 'null';
  const whole = Math.trunc(Math.abs(costMicroUsd));
  const share = Math.round((Math.abs(costMicroUsd) - whole) * 10 ** SHARE_DIGITS);
  const digits = String(BigInt(whole) * BigInt(10 ** SHARE_DIGITS) + BigInt(share)).padStart(
    DOLLAR_DIGITS + 1,
    '0',
  );
  const fraction = digits.slice(-DOLLAR_DIGITS).replace(/0+$/, '');
  const dollars = `${digits.slice(0, -DOLLAR_DIGITS)}${fraction === '' ? '' : `.${fraction}`}`;
  return costMicroUsd < 0 && dollars !== '0' ? `-${dollars}` : dollars;
}

/** ISO 8601 in UTC with milliseconds. */
export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

function textOrNull(text: string | null): string {
  return text === null ? 'null' : JSON.stringify(text);
}

/**
 * Makes JSON text safe to split at any line break. A raw line feed or carriage return can stand only between
 * tokens of valid JSON, so a space means the same; U+0085, U+2028 and U+2029 may stand raw inside strings,
 * and some readers (Python's `splitlines`) break lines there, so they are escaped, as is whatever would steer the
 * terminal that somebody shows the file on.
 */
export function oneLine(json: string): string {
  return escapedJson(json.replace(/[\n\r]/g, ' '));
}
