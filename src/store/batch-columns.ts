/** Batches as they are stored, whatever the backend. */
import type { BatchProgress } from '../core/batch-record.js';

/** What is noted of a batch, as it is named in the program and in its column. */
export const PROGRESS = {
  state: 'state',
  fileHash: 'file_hash',
  refusals: 'refusals',
  inputFileId: 'input_file_id',
  remoteId: 'remote_id',
  outputFileId: 'output_file_id',
  errorFileId: 'error_file_id',
  remoteState: 'remote_state',
  requestsCompleted: 'requests_completed',
  requestsFailed: 'requests_failed',
  polls: 'polls',
  submittedAtMs: 'submitted_at_ms',
  message: 'message',
} as const satisfies Record<keyof BatchProgress, string>;

export const PROGRESS_NAMES = Object.keys(PROGRESS) as readonly (keyof BatchProgress)[];

/** A `BatchRecord` as a statement reads it. */
export const BATCH_COLUMNS = [
  ...['id', 'kind', 'lane', 'shard', 'endpoint', 'model', 'lines', 'bytes', 'run_id AS "runId"'],
  ...[
    'most_tokens AS "mostTokens"',
    'most_cost_micro_usd AS "mostCostMicroUsd"',
    'created_at_ms AS "createdAtMs"',
  ],
  ...PROGRESS_NAMES.map((name) => `${PROGRESS[name]} AS "${name}"`),
].join(', ');
