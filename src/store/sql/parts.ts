/** Parts of statements that are the same for every backend: which tables and columns there are for what. */

/** What is kept once for a run; small. Whatever refers to another table comes before it, here and below. */
export const TABLES_OF_RUN = [
  'served_runs',
  'run_observations',
  'remote_batches',
  'task_counts',
  'latency_buckets',
  'lane_totals',
  'run_totals',
] as const;

/** What a task has beside its own row. */
export const TABLES_OF_TASK = [
  'webhooks',
  'served_tasks',
  'results',
  'earlier_answers',
  'documents',
] as const;

/** What a task has that is nobody's. */
export const UNOWNED = 'attempt_token = NULL, worker_id = NULL, remote_batch_id = NULL';

/** What a task has that shares nothing. */
export const UNPAIRED = 'shared_from = NULL, shared_task_id = NULL';

/** What a result has that is an answer and no error. */
export const ANSWER = `settled_at_ms, model, finish_reason, request_id, latency_ms, cost_micro_usd,
  input_tokens, output_tokens, cached_tokens, reasoning_tokens, output_json, details_json, response_packed`;
