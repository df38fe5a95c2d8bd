/** Rows as SQLite gives them, and what they are to the rest of the program. No snake_case leaves this folder. */
import type { FailureKind } from '../../core/failure.js';
import type { JsonObject } from '../../core/json.js';
import type { TaskState } from '../../core/task.js';
import type { TokenUsage } from '../../core/usage.js';
import type {
  LeasedTask,
  ResultRow,
  RunRecord,
  RunStatus,
  SharedFrom,
  TaskError,
  TaskRow,
} from '../store.js';
import { fromStoredPath } from '../stored-path.js';

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

/** @param folder where the store lies now */
export function toRun(row: RunRow, folder: string): RunRecord {
  return {
    id: row.id,
    name: row.name,
    status: row.status,
    inputPath: fromStoredPath(row.input_path, folder),
    simulated: row.simulated === 1,
    settings: JSON.parse(row.settings_json) as JsonObject,
    createdAtMs: row.created_at_ms,
    stoppedAtMs: row.stopped_at_ms,
    haltReason: row.halt_reason,
    outputPaths: (JSON.parse(row.output_paths_json) as string[]).map((path) => fromStoredPath(path, folder)),
    folder,
  };
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
];

export function toLeasedTask(row: ClaimedRow, tokenPrefix: string): LeasedTask {
  const [taskId, line, key, attempts, crashCount, throttledSinceMs, body] = row;
  const attemptToken = tokenPrefix + taskId;
  return { taskId, line, key, body, attempts, crashCount, throttledSinceMs, attemptToken };
}

export interface SettledRow {
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
  shared_from: SharedFrom | null;
  metadata_json: string | null;
  body: string | null;
}

export function toResultRow(row: SettledRow): ResultRow {
  return {
    taskId: row.id,
    line: row.line,
    key: row.key,
    state: row.state,
    attempts: row.attempts,
    settledAtMs: row.settled_at_ms,
    result:
      row.output_json === null
        ? null
        : { outputJson: row.output_json, model: row.model ?? '', finishReason: row.finish_reason ?? '' },
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
export type AnyTaskRow = Omit<SettledRow, 'settled_at_ms'> & { settled_at_ms: number | null };

export function toTaskRow(row: AnyTaskRow): TaskRow {
  return {
    ...toResultRow({ ...row, settled_at_ms: row.settled_at_ms ?? 0 }),
    settledAtMs: row.settled_at_ms,
  };
}

function toTaskError(row: SettledRow): TaskError | null {
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

function toUsage(row: SettledRow): TokenUsage | null {
  if (row.input_tokens === null) return null;
  return {
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens ?? 0,
    cachedTokens: row.cached_tokens ?? 0,
    reasoningTokens: row.reasoning_tokens ?? 0,
  };
}
