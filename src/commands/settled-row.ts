/** A task that has just been committed, in the shape in which the store would give it back. */
import { isJsonObject } from '../core/json.js';
import type { SettledTask } from '../engine/drain.js';
import type { ResultRow, TaskRow } from '../store/store.js';

/** @returns null for an outcome that settles nothing (sent back, tried again later) */
export function settledRowOf({ task, outcome }: SettledTask): ResultRow | null {
  if (outcome.action !== 'completed' && outcome.action !== 'failed') return null;
  return {
    taskId: task.taskId,
    line: task.line,
    key: task.key,
    state: outcome.action,
    attempts: task.attempts + 1,
    settledAtMs: outcome.atMs,
    result: outcome.action === 'completed' ? outcome.result : null,
    error: outcome.action === 'failed' ? outcome.error : null,
    usage: outcome.call?.usage ?? null,
    costMicroUsd: outcome.call?.costMicroUsd ?? null,
    latencyMs: outcome.call?.latencyMs ?? null,
    requestId: outcome.call?.requestId ?? null,
    sharedFrom: null,
    metadataJson: metadataOf(task.body),
    body: null,
  };
}

/** A task read from the store, if it is settled. */
export function settledTaskRow(row: TaskRow): ResultRow | null {
  return row.settledAtMs === null ? null : { ...row, settledAtMs: row.settledAtMs };
}

function metadataOf(body: string): string | null {
  if (!body.includes('"metadata"')) return null;
  const document: unknown = JSON.parse(body);
  const metadata = isJsonObject(document) ? document['metadata'] : undefined;
  return metadata === undefined ? null : JSON.stringify(metadata);
}
