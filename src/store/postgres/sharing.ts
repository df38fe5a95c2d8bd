/**
 * Equal requests share an answer. Pairing goes over the tasks in pages and notes, for each that need not be called,
 * the task whose answer it takes; until that one is settled it waits, ready but not claimed. Which answers there are is
 * looked up in a table that is filled for it and emptied afterwards: an index that every run would have to keep
 * costs a scattered page at each answer, and most runs share none.
 */
import { UNPAIRED } from '../sql/parts.js';
import type { SharedPage, SharingOptions } from '../store.js';
import type { Transaction } from './connections.js';

const WAITS = `state = 'ready' AND shared_task_id IS NOT NULL`;
const MAY_WAIT = `gone = 0 AND state IN ('ready', 'delayed')`;

/** How far a pairing has come; each stage goes over the tasks once. */
interface Pairing {
  readonly stage: 'letting_go' | 'answered' | 'own' | 'pairing';
  readonly doneToTaskId: number;
  /** For what it has remembered. */
  readonly options: string;
}

/**
 * One page.
 * @param limit tasks to look at
 * @returns where to go on; null when all are paired
 */
export async function pairPage(
  transaction: Transaction,
  options: SharingOptions,
  cursor: string | null,
  limit: number,
): Promise<string | null> {
  const wanted = JSON.stringify(options);
  const handed = cursor === null ? null : (JSON.parse(cursor) as Pairing);
  const start: Pairing = { stage: 'letting_go', doneToTaskId: 0, options: wanted };
  const next = await page(transaction, options, handed?.options === wanted ? handed : start, limit);
  return next === null ? null : JSON.stringify(next);
}

async function page(
  transaction: Transaction,
  { runId, dedupe, reuseFrom }: SharingOptions,
  pairing: Pairing,
  limit: number,
): Promise<Pairing | null> {
  const { stage, doneToTaskId } = pairing;
  const forget = () => transaction.run('DELETE FROM first_requests WHERE run_id = $1', runId);
  if (stage === 'letting_go') {
    const letGo = await transaction.run(
      `UPDATE tasks SET ${UNPAIRED} WHERE id = ANY (ARRAY(
         SELECT id FROM tasks WHERE run_id = $1 AND ${WAITS} ORDER BY id LIMIT $2))`,
      runId,
      limit,
    );
    if (letGo > 0) return pairing;
    await forget();
    return dedupe || reuseFrom.length > 0 ? { ...pairing, stage: 'answered' } : null;
  }
  const next = await transaction.one<{ id: number | null }>(
    'SELECT min(id) AS id FROM tasks WHERE id > $1',
    doneToTaskId,
  );
  if (next === undefined || next.id === null) {
    if (stage === 'answered') return { ...pairing, stage: dedupe ? 'own' : 'pairing', doneToTaskId: 0 };
    if (stage === 'own') return { ...pairing, stage: 'pairing', doneToTaskId: 0 };
    await forget();
    return null;
  }
  const range = [next.id - 1, next.id - 1 + limit] as const;
  if (stage === 'answered') {
    await transaction.run(
      `INSERT INTO first_requests (run_id, request_hash, task_id)
       SELECT DISTINCT ON (request_hash) $3, request_hash, id FROM tasks
       WHERE id > $1 AND id <= $2 AND state = 'completed' AND run_id IN (SELECT json_array_elements_text($4)::bigint)
       ORDER BY request_hash, id ON CONFLICT DO NOTHING`,
      ...range,
      runId,
      dedupe ? [runId, ...reuseFrom] : reuseFrom,
    );
  } else if (stage === 'own') {
    // The one of the highest priority is called, so that none waits for one of a lower.
    await transaction.run(
      `INSERT INTO first_requests AS first (run_id, request_hash, task_id)
       SELECT DISTINCT ON (request_hash) run_id, request_hash, id FROM tasks
       WHERE id > $1 AND id <= $2 AND run_id = $3 AND ${MAY_WAIT} ORDER BY request_hash, priority DESC, id
       ON CONFLICT (run_id, request_hash) DO UPDATE SET task_id = excluded.task_id WHERE EXISTS (
         SELECT 1 FROM tasks AS known JOIN tasks AS other ON other.id = excluded.task_id
         WHERE known.id = first.task_id AND known.state <> 'completed' AND known.priority < other.priority)`,
      ...range,
      runId,
    );
  } else {
    await transaction.run(
      `UPDATE tasks SET shared_task_id = source.id, state = 'ready', not_before_ms = NULL,
         shared_from = CASE source.run_id WHEN tasks.run_id THEN 'run' ELSE 'earlier_run' END
       FROM first_requests AS first JOIN tasks AS source ON source.id = first.task_id
       WHERE tasks.id > $1 AND tasks.id <= $2 AND tasks.run_id = $3 AND tasks.gone = 0
         AND tasks.state IN ('ready', 'delayed')
         AND first.run_id = $3 AND first.request_hash = tasks.request_hash
         AND source.request_hash = tasks.request_hash AND source.id <> tasks.id`,
      ...range,
      runId,
    );
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
export async function settlePage(
  transaction: Transaction,
  runId: number,
  afterTaskId: number,
  limit: number,
): Promise<SharedPage> {
  const rows = await transaction.all<WaitingRow>(
    `SELECT tasks.id, CASE
         WHEN source.state = 'completed' OR (source.state = 'failed' AND source.run_id = tasks.run_id) THEN 1
         WHEN source.run_id = tasks.run_id AND source.gone = 0 THEN 0
       END AS is_settled, source.state AS source_state
     FROM tasks LEFT JOIN tasks AS source
       ON source.id = tasks.shared_task_id AND source.request_hash = tasks.request_hash
     WHERE tasks.run_id = $1 AND tasks.state = 'ready' AND tasks.shared_task_id IS NOT NULL
       AND tasks.gone = 0 AND tasks.id > $2
     ORDER BY tasks.id LIMIT $3 FOR NO KEY UPDATE OF tasks`,
    runId,
    afterTaskId,
    limit,
  );
  const settledRows = rows.filter((row) => row.is_settled === 1);
  const settled = settledRows.map(({ id }) => id);
  const orphaned = rows.filter((row) => row.is_settled === null).map(({ id }) => id);
  if (settled.length > 0) {
    // No call was made for it: no tokens, no latency, and no cost.
    await transaction.run(
      `INSERT INTO results (task_id, settled_at_ms, model, finish_reason, error_kind, error_message, error_code,
         http_status, request_id, cost_micro_usd, partial_output_json, output_json, details_json, response_packed)
       SELECT tasks.id, now_ms(), model, finish_reason, error_kind, error_message, error_code, http_status, request_id,
         0, partial_output_json, output_json, details_json, response_packed
       FROM tasks JOIN results ON results.task_id = tasks.shared_task_id
       WHERE tasks.id IN (SELECT json_array_elements_text($1)::bigint)`,
      settled,
    );
    await transaction.run(
      `UPDATE tasks SET state = source.state, failure_kind = source.failure_kind
       FROM tasks AS source
       WHERE tasks.id IN (SELECT json_array_elements_text($1)::bigint) AND source.id = tasks.shared_task_id`,
      settled,
    );
  }
  if (orphaned.length > 0) {
    await transaction.run(
      `UPDATE tasks SET ${UNPAIRED} WHERE id IN (SELECT json_array_elements_text($1)::bigint)`,
      orphaned,
    );
  }
  const failed = settledRows.filter((row) => row.source_state === 'failed').length;
  return { settledTaskIds: settled, failed, lastTaskId: rows.at(-1)?.id ?? null };
}
