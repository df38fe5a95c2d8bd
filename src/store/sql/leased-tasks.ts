/** What whoever owns tasks is told of them. */
import type { LeasedTask } from '../../core/task.js';
import { toLeasedTask } from '../rows.js';

export const OF_TASK = 'id, line, key, attempts, crash_count, throttled_since_ms, attempt_token, priority';

/** @param tasks a table, or what a statement before gives, with `OF_TASK` */
export function leasedFrom(tasks: string): string {
  return `SELECT ${OF_TASK}, body, max_attempts, traceparent, submitted_at_ms, (SELECT now_ms()) AS now_ms
    FROM ${tasks} JOIN documents ON documents.task_id = id LEFT JOIN served_tasks ON served_tasks.task_id = id`;
}

export interface LeasedRow {
  id: number;
  line: number;
  key: string;
  attempts: number;
  crash_count: number;
  throttled_since_ms: number | null;
  body: string;
  max_attempts: number | null;
  traceparent: string | null;
  submitted_at_ms: number | null;
  attempt_token: string;
  now_ms: number;
}

export function leasedTask(row: LeasedRow): LeasedTask {
  const { id, line, key, attempts, crash_count, throttled_since_ms, body } = row;
  const { max_attempts, traceparent, submitted_at_ms, attempt_token, now_ms } = row;
  return toLeasedTask(
    [
      id,
      line,
      key,
      attempts,
      crash_count,
      throttled_since_ms,
      body,
      max_attempts,
      traceparent,
      submitted_at_ms,
    ],
    attempt_token,
    now_ms,
  );
}
