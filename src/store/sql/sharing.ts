/**
 * Equal requests share an answer. Pairing goes over the tasks in pages and notes, for each that need not be called,
 * the task whose answer it takes; until that one is settled it waits, ready but not claimed. Which answers there are is
 * looked up in a table that is filled for it and emptied afterwards: an index that every run would have to keep
 * costs a scattered page at each answer, and most runs share none.
 */
import type { SharedPage, SharingOptions } from '../store.js';
import { idsIn, nextIdOf, removeResults, UNPAIRED } from './parts.js';
import { all, run, type Steps } from './steps.js';

/** How far a pairing has come; each stage goes over the tasks once. */
interface Pairing {
  readonly stage: 'letting_go' | 'answered' | 'own' | 'pairing';
  readonly doneToTaskId: number;
  /** Who looks up what it has remembered, and for what. */
  readonly by: string;
}

/** The table of requests and the first tasks that ask them. Tasks are those after `$1` up to `$2`; the run is `$3`. */
export interface FirstRequests {
  /** Another for each such table: a pairing that was begun with another starts anew. */
  readonly name: string;
  /** Completed tasks, of the runs in the list `$4`. */
  readonly rememberAnswered: string;
  /** The run's own that may wait: the one of the highest priority is called, so that none waits for one of a lower. */
  readonly rememberOwn: string;
  readonly pair: string;
  /** What is remembered for the run `$1`. */
  readonly forget: string;
}

/**
 * One page.
 * @param limit tasks to look at
 * @returns where to go on; null when all are paired
 */
export function* pairPage(
  first: FirstRequests,
  options: SharingOptions,
  cursor: string | null,
  limit: number,
): Steps<string | null> {
  const by = JSON.stringify([first.name, options]);
  const handed = cursor === null ? null : (JSON.parse(cursor) as Pairing);
  const start: Pairing = { stage: 'letting_go', doneToTaskId: 0, by };
  const next = yield* page(first, options, handed?.by === by ? handed : start, limit);
  return next === null ? null : JSON.stringify(next);
}

function* page(
  first: FirstRequests,
  { runId, dedupe, reuseFrom }: SharingOptions,
  pairing: Pairing,
  limit: number,
): Steps<Pairing | null> {
  const { stage, doneToTaskId } = pairing;
  if (stage === 'letting_go') {
    const waiting = yield* all<{ id: number }>(
      `SELECT id FROM tasks INDEXED BY tasks_paired
       WHERE run_id = $1 AND state = 'ready' AND shared_task_id IS NOT NULL ORDER BY id LIMIT CAST($2 AS bigint)`,
      ...[runId, limit],
    );
    if (waiting.length > 0) {
      yield* letGo(waiting.map(({ id }) => id));
      return pairing;
    }
    yield* run(first.forget, runId);
    return dedupe || reuseFrom.length > 0 ? { ...pairing, stage: 'answered' } : null;
  }
  const next = yield* nextIdOf('tasks', doneToTaskId);
  if (next === null) {
    if (stage === 'answered') return { ...pairing, stage: dedupe ? 'own' : 'pairing', doneToTaskId: 0 };
    if (stage === 'own') return { ...pairing, stage: 'pairing', doneToTaskId: 0 };
    yield* run(first.forget, runId);
    return null;
  }
  const range = [next - 1, next - 1 + limit] as const;
  if (stage === 'answered') {
    yield* run(first.rememberAnswered, ...range, runId, dedupe ? [runId, ...reuseFrom] : reuseFrom);
  } else {
    yield* run(stage === 'own' ? first.rememberOwn : first.pair, ...range, runId);
  }
  return { ...pairing, doneToTaskId: range[1] };
}

interface WaitingRow {
  id: number;
  /** 0: not yet; null: it never will be. */
  is_settled: number | null;
  source_state: string | null;
}

/** Gives the next waiting tasks their answers; one whose answer will never come waits no more. */
export function* settlePage(runId: number, afterTaskId: number, limit: number): Steps<SharedPage> {
  const rows = yield* all<WaitingRow>(
    `SELECT tasks.id, CASE
         WHEN source.state = 'completed' OR (source.state = 'failed' AND source.run_id = tasks.run_id) THEN 1
         WHEN source.run_id = tasks.run_id AND source.gone = 0 THEN 0
       END AS is_settled, source.state AS source_state
     FROM tasks INDEXED BY tasks_paired LEFT JOIN tasks AS source
       ON source.id = tasks.shared_task_id AND source.request_hash = tasks.request_hash
     WHERE tasks.run_id = $1 AND tasks.state = 'ready' AND tasks.shared_task_id IS NOT NULL
       AND tasks.gone = 0 AND tasks.id > $2
     ORDER BY tasks.id LIMIT CAST($3 AS bigint) FOR NO KEY UPDATE OF tasks`,
    ...[runId, afterTaskId, limit],
  );
  const settledRows = rows.filter((row) => row.is_settled === 1);
  const settled = settledRows.map(({ id }) => id);
  const orphaned = rows.filter((row) => row.is_settled === null).map(({ id }) => id);
  if (settled.length > 0) {
    yield* removeResults(settled);
    // No call was made for it: no tokens, no latency, and no cost.
    yield* run(
      `INSERT INTO results (task_id, settled_at_ms, model, finish_reason, error_kind, error_message, error_code,
         http_status, request_id, cost_micro_usd, partial_output_json, output_json, details_json, response_packed)
       SELECT tasks.id, wall_ms(), model, finish_reason, error_kind, error_message, error_code, http_status, request_id,
         0, partial_output_json, output_json, details_json, response_packed
       FROM tasks JOIN results ON results.task_id = tasks.shared_task_id WHERE tasks.id IN ${idsIn('$1')}`,
      settled,
    );
    yield* run(
      `UPDATE tasks SET state = source.state, failure_kind = source.failure_kind
       FROM tasks AS source WHERE tasks.id IN ${idsIn('$1')} AND source.id = tasks.shared_task_id`,
      settled,
    );
  }
  if (orphaned.length > 0) yield* letGo(orphaned);
  const failed = settledRows.filter((row) => row.source_state === 'failed').length;
  return { settledTaskIds: settled, failed, lastTaskId: rows.at(-1)?.id ?? null };
}

function* letGo(taskIds: readonly number[]): Steps<void> {
  yield* run(`UPDATE tasks SET ${UNPAIRED} WHERE id IN ${idsIn('$1')}`, taskIds);
}
