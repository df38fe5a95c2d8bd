/** Rows as they are stored, whatever the backend, and what they are to the rest of the program. No snake_case leaves this folder. */
import type { FailureKind } from '../core/failure.js';
import { isJsonObject, type Json } from '../core/json.js';
import type { CompletedResult, SharedFrom, TaskError } from '../core/outcome.js';
import type { ResultRow, TaskRow } from '../core/result-row.js';
import type { RunObservation, RunRecord, RunStatus, WrittenFile } from '../core/run.js';
import type { LeasedTask, TaskState } from '../core/task.js';
import type { TokenUsage } from '../core/usage.js';
import { RESULT } from './outcome-columns.js';
import { unpackResponse } from './packed-response.js';
import { fromStoredPath } from './stored-path.js';

/** A row of results without the server's body, which few readers want. */
export const RESULT_COLUMNS = RESULT.map((column) => `results.${column}`).join(', ');

export interface RunRow {
  id: number;
  name: string;
  status: RunStatus;
  input_path: string;
  simulated: number;
  created_at_ms: number;
  stopped_at_ms: number | null;
  halt_reason: string | null;
  output_paths_json: string;
  settings_json: string;
}

export interface ObservationRow {
  run_id: number;
  kind: RunObservation['kind'];
  subject: string;
  value_json: string;
}

/**
 * @param observations of any run
 * @param folder where the store lies now; null where it lies in no folder
 * @throws Error ROW_DAMAGED
 */
export function toRun(
  row: RunRow,
  observations: readonly ObservationRow[],
  folder: string | null,
): RunRecord {
  const outputs = storedJson(row.output_paths_json);
  const settings = storedJson(row.settings_json);
  if (!Array.isArray(outputs) || !isJsonObject(settings)) throw damaged();
  return {
    id: row.id,
    name: row.name,
    status: row.status,
    inputPath: fromStoredPath(row.input_path, folder),
    simulated: row.simulated === 1,
    settings,
    observations: observations.map(toObservation),
    createdAtMs: row.created_at_ms,
    stoppedAtMs: row.stopped_at_ms,
    haltReason: row.halt_reason,
    outputPaths: outputs.flatMap((output) =>
      typeof output === 'string' ? [fromStoredPath(output, folder)] : [],
    ),
    writtenFiles: outputs.flatMap((output) => {
      if (!isJsonObject(output) || typeof output['path'] !== 'string') return [];
      const file = output as unknown as WrittenFile;
      return [{ ...file, path: fromStoredPath(file.path, folder) }];
    }),
    folder,
  };
}

function toObservation({ kind, subject, value_json }: ObservationRow): RunObservation {
  const value = storedJson(value_json);
  if (!isJsonObject(value)) throw damaged();
  return { kind, subject, value };
}

function storedJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw damaged();
  }
}

function damaged(): Error {
  return Object.assign(new Error('what is stored of a run is not JSON'), { code: 'ROW_DAMAGED' });
}

/** A tuple: naming the columns of each row would cost a claim more than reading them. */
export type ClaimedRow = [
  id: number,
  line: number,
  key: string,
  attempts: number,
  crashCount: number,
  throttledSinceMs: number | null,
  body: string,
  maxAttempts: number | null,
  traceparent: string | null,
  submittedAtMs: number | null,
];

export function toLeasedTask(row: ClaimedRow, attemptToken: string, nowMs: number): LeasedTask {
  const [taskId, line, key, attempts, crashCount, throttledSinceMs, body, ...served] = row;
  const [maxAttempts, traceparent, submittedAtMs] = served;
  const throttledForMs = throttledSinceMs === null ? null : Math.max(0, nowMs - throttledSinceMs);
  return {
    ...{ taskId, line, key, body, attempts, crashCount, throttledForMs, attemptToken },
    ...(maxAttempts !== null && { maxAttempts }),
    ...(traceparent !== null && { traceparent }),
    ...(submittedAtMs !== null && { submittedAtMs }),
  };
}

export interface SettledColumns {
  id: number;
  line: number;
  key: string;
  state: TaskState;
  attempts: number;
  settled_at_ms: number;
  model: string | null;
  finish_reason: string | null;
  error_kind: FailureKind | null;
  error_message: string | null;
  error_code: string | null;
  http_status: number | null;
  request_id: string | null;
  latency_ms: number | null;
  cost_micro_usd: number | null;
  input_tokens: number | null;
  output_tokens: number | null;
  cached_tokens: number | null;
  reasoning_tokens: number | null;
  partial_output_json: string | null;
  output_json: string | null;
  details_json: string | null;
  response_packed: Uint8Array | null;
  shared_from: SharedFrom | null;
  metadata_json: string | null;
  id_is_number: number;
  body: string | null;
}

export function toResultRow(row: SettledColumns): ResultRow {
  return {
    taskId: row.id,
    line: row.line,
    key: row.key,
    ...(row.id_is_number === 1 && { idIsNumber: true }),
    state: row.state,
    attempts: row.attempts,
    settledAtMs: row.settled_at_ms,
    result: toResult(row),
    error: toTaskError(row),
    usage: toUsage(row),
    costMicroUsd: row.cost_micro_usd,
    latencyMs: row.latency_ms,
    requestId: row.request_id,
    sharedFrom: row.shared_from,
    metadataJson: row.metadata_json,
    body: row.body,
  };
}

/** Unsettled tasks have null in all columns of results. */
export type AnyTaskRow = Omit<SettledColumns, 'settled_at_ms'> & { settled_at_ms: number | null };

export function toTaskRow(row: AnyTaskRow): TaskRow {
  return {
    ...toResultRow({ ...row, settled_at_ms: row.settled_at_ms ?? 0 }),
    settledAtMs: row.settled_at_ms,
  };
}

function toResult(row: SettledColumns): CompletedResult | null {
  const { output_json: outputJson, details_json: detailsJson, response_packed: packed } = row;
  if (outputJson === null) return null;
  const model = row.model ?? '';
  return {
    outputJson,
    model,
    finishReason: row.finish_reason ?? '',
    ...(detailsJson !== null && { detailsJson }),
    ...(packed !== null && { responseJson: unpackResponse(packed, { model, outputJson, detailsJson }) }),
  };
}

function toTaskError(row: SettledColumns): TaskError | null {
  if (row.error_kind === null) return null;
  return {
    kind: row.error_kind,
    message: row.error_message ?? '',
    httpStatus: row.http_status,
    code: row.error_code,
    requestId: row.request_id,
    partialOutputJson: row.partial_output_json,
  };
}

function toUsage(row: SettledColumns): TokenUsage | null {
  if (row.input_tokens === null) return null;
  return {
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens ?? 0,
    cachedTokens: row.cached_tokens ?? 0,
    reasoningTokens: row.reasoning_tokens ?? 0,
  };
}
