/** Calls that are open, those of them that go on at servers, and those of the last minutes. */
import type { RecentCall } from '../../core/call.js';
import { storableInteger } from '../storable.js';
import { idsIn } from './parts.js';
import { all, one, run, type Steps } from './steps.js';

/** What a call that was lost can have been billed. */
export interface LostCall {
  readonly run_id: number;
  readonly most_tokens: number | null;
  readonly most_cost_micro_usd: number | null;
}

/** Adds calls that were lost to the sums of their runs. */
export type SumLost = (calls: readonly LostCall[]) => Steps<unknown>;

/** Ends the open calls of workers as lost. @returns how many there were, and for which tasks of which worker */
export function* loseCallsOf(
  workerIds: readonly number[],
  sumLost: SumLost,
): Steps<{
  readonly calls: number;
  readonly tasks: readonly { readonly workerId: number; readonly taskId: number }[];
}> {
  const open = `finished_at_ms IS NULL AND worker_id IN ${idsIn('$1')}`;
  const tasks = yield* all<{ workerId: number; taskId: number }>(
    `SELECT DISTINCT worker_id AS "workerId", task_id AS "taskId"
     FROM calls INDEXED BY calls_open JOIN call_tasks ON call_id = id WHERE ${open}`,
    workerIds,
  );
  const lost = yield* all<LostCall>(
    `UPDATE calls INDEXED BY calls_open SET worker_id = NULL, finished_at_ms = wall_ms(), lost = 1
     WHERE ${open} RETURNING run_id, most_tokens, most_cost_micro_usd`,
    workerIds,
  );
  yield* sumLost(lost);
  return { calls: lost.length, tasks };
}

/** The call goes on at a server, whatever becomes of its worker: the response's number, below zero, stands for that of its worker. */
export function* handOver(callId: number, responseId: number): Steps<void> {
  yield* run(
    'UPDATE calls SET worker_id = $1 WHERE id = $2 AND finished_at_ms IS NULL',
    ...[-responseId, callId],
  );
}

/** The open call of a response; undefined where it has ended. */
export function handedOver(
  responseId: number,
): Steps<{ readonly callId: number; readonly startedAtMs: number } | undefined> {
  return one(
    `SELECT id AS "callId", started_at_ms AS "startedAtMs" FROM calls INDEXED BY calls_open
     WHERE finished_at_ms IS NULL AND worker_id = $1`,
    -responseId,
  );
}

/** Calls that go on at servers and are given up. */
export function* loseResponses(responseIds: readonly number[], sumLost: SumLost): Steps<void> {
  if (responseIds.length === 0) return;
  const workerIds = responseIds.map((id) => -id);
  yield* loseCallsOf(workerIds, sumLost);
}

/** Calls of every run that started within the last `withinMs`, oldest first. */
export function recentCalls(withinMs: number): Steps<RecentCall[]> {
  // A clock that was set back, or differs, must not make a call look as if it were still to come.
  return all(
    `SELECT greatest(0, wall_ms() - started_at_ms) AS "ageMs", lane,
       coalesce(input_tokens + output_tokens, reserved_tokens) AS tokens
     FROM calls INDEXED BY calls_started
     WHERE started_at_ms >= wall_ms() - $1 AND remote_batch_id IS NULL ORDER BY started_at_ms, id`,
    storableInteger(withinMs),
  );
}
