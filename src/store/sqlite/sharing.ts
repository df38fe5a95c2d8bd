/**
 * Equal requests share an answer. Pairing goes over the tasks in pages and notes, for each that need not be called,
 * the task whose answer it takes; until that one is settled it waits, ready but not claimed. Which answers there are is
 * looked up in a table of this connection's own, about 30 bytes for each: an index that every run would have to keep
 * costs a scattered page at each answer, and most runs share none. A pairing that another connection began starts anew.
 */
import { randomUUID } from 'node:crypto';
import type Database from 'better-sqlite3';
import { UNPAIRED } from '../sql/parts.js';
import type { SharedPage, SharingOptions } from '../store.js';

const WAITS = `state = 'ready' AND shared_task_id IS NOT NULL`;
/** Of the request's hash, behind `sha256:`: 72 bits find the task, and the whole hash is compared with it. */
const HASH_START = 'substr(request_hash, 8, 12)';

/** How far a pairing has come; each stage goes over the tasks once. */
interface Pairing {
  readonly stage: 'letting_go' | 'answered' | 'own' | 'pairing';
  readonly doneToTaskId: number;
  /** Who looks up what it has remembered, and for what. */
  readonly by: string;
}

type Range = [afterTaskId: number, upToTaskId: number];

interface WaitingRow {
  id: number;
  /** 0: not yet; null: it never will be. */
  is_settled: number | null;
  source_state: string | null;
}

export class Sharing {
  readonly #letAllGo;
  readonly #nextTask;
  readonly #rememberAnswered;
  readonly #rememberOwn;
  readonly #pair;
  readonly #forget;
  readonly #waiting;
  readonly #copyResults;
  readonly #settle;
  readonly #letGo;
  /** Of this connection, whose table it is. */
  readonly #name = randomUUID();

  constructor(database: Database.Database) {
    database.exec(
      `CREATE TEMP TABLE IF NOT EXISTS first_requests (
         hash_start TEXT NOT NULL PRIMARY KEY, task_id INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
    );
    this.#letAllGo = database.prepare<[number, number]>(
      `UPDATE tasks SET ${UNPAIRED} WHERE id IN (
         SELECT id FROM tasks INDEXED BY tasks_paired WHERE run_id = ? AND ${WAITS} LIMIT ? + 0)`,
    );
    this.#nextTask = database
      .prepare<[number], number | null>('SELECT min(id) FROM tasks WHERE id > ?')
      .pluck();
    this.#rememberAnswered = database.prepare<[...Range, string]>(
      `INSERT OR IGNORE INTO temp.first_requests SELECT ${HASH_START}, id FROM tasks NOT INDEXED
       WHERE id > ? AND id <= ? AND state = 'completed' AND run_id IN (SELECT value FROM json_each(?))
       ORDER BY id`,
    );
    // The one of the highest priority is called, so that none waits for one of a lower.
    this.#rememberOwn = database.prepare<[...Range, number]>(
      `INSERT INTO temp.first_requests SELECT ${HASH_START}, id FROM tasks NOT INDEXED
       WHERE id > ? AND id <= ? AND run_id = ? AND gone = 0 AND (state = 'ready' OR state = 'delayed')
       ORDER BY id
       ON CONFLICT DO UPDATE SET task_id = excluded.task_id WHERE EXISTS (
         SELECT 1 FROM tasks AS first JOIN tasks AS other ON other.id = excluded.task_id
         WHERE first.id = first_requests.task_id AND first.state <> 'completed' AND first.priority < other.priority)`,
    );
    this.#pair = database.prepare<[...Range, number]>(
      `UPDATE tasks SET shared_task_id = source.id, state = 'ready', not_before_ms = NULL,
         shared_from = iif(source.run_id = tasks.run_id, 'run', 'earlier_run')
       FROM temp.first_requests AS first JOIN tasks AS source ON source.id = first.task_id
       WHERE tasks.id > ? AND tasks.id <= ? AND tasks.run_id = ? AND tasks.gone = 0
         AND (tasks.state = 'ready' OR tasks.state = 'delayed')
         AND first.hash_start = substr(tasks.request_hash, 8, 12)
         AND source.request_hash = tasks.request_hash AND source.id <> tasks.id`,
    );
    this.#forget = database.prepare<[]>('DELETE FROM temp.first_requests');
    this.#waiting = database.prepare<[number, number, number], WaitingRow>(
      `SELECT tasks.id, CASE
           WHEN source.state = 'completed' OR (source.state = 'failed' AND source.run_id = tasks.run_id) THEN 1
           WHEN source.run_id = tasks.run_id AND source.gone = 0 THEN 0
         END AS is_settled, source.state AS source_state
       FROM tasks INDEXED BY tasks_paired
         LEFT JOIN tasks AS source ON source.id = tasks.shared_task_id AND source.request_hash = tasks.request_hash
       WHERE tasks.run_id = ? AND tasks.state = 'ready' AND tasks.shared_task_id IS NOT NULL
         AND tasks.gone = 0 AND tasks.id > ?
       ORDER BY tasks.id LIMIT ? + 0`,
    );
    // No call was made for it: no tokens, no latency, and no cost.
    this.#copyResults = database.prepare<[number, string]>(
      `INSERT OR REPLACE INTO results (task_id, settled_at_ms, model, finish_reason, error_kind, error_message,
         error_code, http_status, request_id, cost_micro_usd, partial_output_json, output_json, details_json,
         response_packed)
       SELECT tasks.id, ?, model, finish_reason, error_kind, error_message, error_code, http_status, request_id,
         0, partial_output_json, output_json, details_json, response_packed
       FROM json_each(?) AS wanted CROSS JOIN tasks ON tasks.id = wanted.value
       CROSS JOIN results ON results.task_id = tasks.shared_task_id`,
    );
    this.#settle = database.prepare<[string]>(
      `UPDATE tasks SET state = source.state, failure_kind = source.failure_kind
       FROM tasks AS source
       WHERE tasks.id IN (SELECT value FROM json_each(?)) AND source.id = tasks.shared_task_id`,
    );
    this.#letGo = database.prepare<[string]>(
      `UPDATE tasks SET ${UNPAIRED} WHERE id IN (SELECT value FROM json_each(?))`,
    );
  }

  /**
   * One page. Changes nothing outside the database, so that an undone transaction is simply tried again.
   * @param limit tasks to look at
   * @returns where to go on; null when all are paired
   */
  pairPage(options: SharingOptions, cursor: string | null, limit: number): string | null {
    const by = JSON.stringify([this.#name, options]);
    const handed = cursor === null ? null : (JSON.parse(cursor) as Pairing);
    const next = this.#page(
      options,
      handed?.by === by ? handed : { stage: 'letting_go', doneToTaskId: 0, by },
      limit,
    );
    return next === null ? null : JSON.stringify(next);
  }

  #page({ runId, dedupe, reuseFrom }: SharingOptions, pairing: Pairing, limit: number): Pairing | null {
    const { stage, doneToTaskId } = pairing;
    if (stage === 'letting_go') {
      if (this.#letAllGo.run(runId, limit).changes > 0) return pairing;
      this.#forget.run();
      return dedupe || reuseFrom.length > 0 ? { ...pairing, stage: 'answered' } : null;
    }
    const next = this.#nextTask.get(doneToTaskId) ?? null;
    if (next === null) {
      if (stage === 'answered') return { ...pairing, stage: dedupe ? 'own' : 'pairing', doneToTaskId: 0 };
      if (stage === 'own') return { ...pairing, stage: 'pairing', doneToTaskId: 0 };
      this.#forget.run();
      return null;
    }
    const range: Range = [next - 1, next - 1 + limit];
    if (stage === 'answered') {
      this.#rememberAnswered.run(...range, JSON.stringify(dedupe ? [runId, ...reuseFrom] : reuseFrom));
    } else if (stage === 'own') {
      this.#rememberOwn.run(...range, runId);
    } else {
      this.#pair.run(...range, runId);
    }
    return { ...pairing, doneToTaskId: range[1] };
  }

  /** Gives the next waiting tasks their answers; one whose answer will never come waits no more. */
  settlePage(runId: number, afterTaskId: number, limit: number, nowMs: number): SharedPage {
    const rows = this.#waiting.all(runId, afterTaskId, limit);
    const settledRows = rows.filter((row) => row.is_settled === 1);
    const settled = settledRows.map(({ id }) => id);
    const orphaned = rows.filter((row) => row.is_settled === null).map(({ id }) => id);
    if (settled.length > 0) {
      const taskIds = JSON.stringify(settled);
      this.#copyResults.run(nowMs, taskIds);
      this.#settle.run(taskIds);
    }
    if (orphaned.length > 0) this.#letGo.run(JSON.stringify(orphaned));
    const failed = settledRows.filter((row) => row.source_state === 'failed').length;
    return { settledTaskIds: settled, failed, lastTaskId: rows.at(-1)?.id ?? null };
  }
}
