/** Parts of statements that are the same for every backend: which tables and columns there are for what. */
import { one, run, type Steps } from './steps.js';

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

/** State of a task that is not settled. */
export const IS_OPEN = `(state = 'ready' OR state = 'delayed' OR state = 'in_progress')`;

/** What a task has that was cancelled. */
export const CANCELLED = `state = 'cancelled', not_before_ms = NULL, throttled_since_ms = NULL, ${UNOWNED}, ${UNPAIRED}`;

/** What a task has that is to be asked as if it never had been. */
export const ASKED_ANEW = `state = 'ready', attempts = 0, crash_count = 0, lone_crash_count = 0, throttled_since_ms = NULL,
  failure_kind = NULL, ${UNPAIRED}`;

/** What a result has that is an answer and no error. */
export const ANSWER = `settled_at_ms, model, finish_reason, request_id, latency_ms, cost_micro_usd,
  input_tokens, output_tokens, cached_tokens, reasoning_tokens, output_json, details_json, response_packed`;

/** The numbers in a list that is a parameter, e.g. `$1`. */
export function idsIn(list: string): string {
  return `(SELECT json_array_elements_text(${list})::bigint)`;
}

/** The next number that is given in a table; null after the last. */
export function* nextIdOf(table: 'tasks' | 'calls', afterId: number): Steps<number | null> {
  const next = yield* one<{ id: number | null }>(`SELECT min(id) AS id FROM ${table} WHERE id > $1`, afterId);
  return next?.id ?? null;
}

/** A task that is to have another result may have one where a store was damaged. */
export function* removeResults(taskIds: readonly number[]): Steps<void> {
  yield* run(`DELETE FROM results WHERE task_id IN ${idsIn('$1')}`, taskIds);
}
