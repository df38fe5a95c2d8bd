/** Batches that providers work on, and the tasks that they own. */
import type Database from 'better-sqlite3';
import type {
  BatchLoad,
  BatchProgress,
  BatchRecord,
  BatchSettlement,
  NewBatch,
  NewResponse,
  StoredResponse,
} from '../../core/batch-record.js';
import type { CallTask } from '../../core/call.js';
import type { LeasedTask } from '../../core/task.js';
import { BATCH_COLUMNS, PROGRESS, PROGRESS_NAMES } from '../batch-columns.js';
import { type ClaimedRow, toLeasedTask } from '../rows.js';
import {
  storableCount,
  storableInteger,
  storableIntegerOrNull,
  storableReal,
  storableText,
  storableTextOrNull,
} from '../storable.js';
import type { HandedOverCall } from './ledger.js';
import { CLAIMED } from './queue.js';
import type { Settlements } from './settlements.js';

export class Batches {
  readonly #settlements: Settlements;
  readonly #insert;
  readonly #select;
  readonly #list;
  readonly #take;
  readonly #load;
  readonly #update;
  readonly #tasks;
  readonly #tasksById;
  readonly #isOwned;
  readonly #unload;
  readonly #giveBack;
  readonly #end;
  readonly #endResponse;
  readonly #endOfRun;
  readonly #insertResponse;
  readonly #responses;
  readonly #delete;

  constructor(database: Database.Database, settlements: Settlements) {
    this.#settlements = settlements;
    this.#insert = database.prepare<(string | number)[]>(
      `INSERT INTO remote_batches (run_id, kind, lane, endpoint, model, created_at_ms, shard)
       SELECT ?, ?, ?, ?, ?, ?, count(*) + 1 FROM remote_batches WHERE run_id = ?`,
    );
    this.#select = database.prepare<[number], BatchRecord>(
      `SELECT ${BATCH_COLUMNS} FROM remote_batches WHERE id = ?`,
    );
    this.#list = database.prepare<[number], BatchRecord>(
      `SELECT ${BATCH_COLUMNS} FROM remote_batches WHERE run_id = ? ORDER BY id`,
    );
    this.#take = database.prepare<[number, number, string]>(
      `UPDATE tasks SET worker_id = NULL, remote_batch_id = ?
       WHERE id = ? AND attempt_token = ? AND state = 'in_progress' AND worker_id IS NOT NULL`,
    );
    this.#load = database.prepare<[number, number, number, number, number]>(
      `UPDATE remote_batches SET lines = lines + ?, bytes = bytes + ?, most_tokens = most_tokens + ?,
         most_cost_micro_usd = most_cost_micro_usd + ? WHERE id = ?`,
    );
    this.#update = database.prepare<(string | number | null)[]>(
      `UPDATE remote_batches SET ${PROGRESS_NAMES.map((name) => `${PROGRESS[name]} = ?`).join(', ')} WHERE id = ?`,
    );
    const task = `SELECT attempt_token, ${CLAIMED} FROM tasks`;
    this.#tasks = database
      .prepare<[number, number], OwnedRow>(
        `${task} INDEXED BY tasks_remote WHERE remote_batch_id = ? ORDER BY id LIMIT ? + 0`,
      )
      .raw();
    this.#tasksById = database
      .prepare<[string, number], OwnedRow>(
        `${task} WHERE id IN (SELECT value FROM json_each(?)) AND remote_batch_id = ? ORDER BY id`,
      )
      .raw();
    this.#isOwned = database
      .prepare<[number, string, number], number>(
        'SELECT 1 FROM tasks WHERE id = ? AND attempt_token = ? AND remote_batch_id = ?',
      )
      .pluck();
    this.#unload = database.prepare<[number, number, number]>(
      `UPDATE remote_batches SET most_tokens = max(0, most_tokens - ?),
         most_cost_micro_usd = max(0, most_cost_micro_usd - ?) WHERE id = ?`,
    );
    this.#giveBack = database.prepare<[number, number]>(
      `UPDATE tasks SET state = 'ready', attempt_token = NULL, remote_batch_id = NULL WHERE id IN (
         SELECT id FROM tasks INDEXED BY tasks_remote WHERE remote_batch_id = ? ORDER BY id LIMIT ? + 0)`,
    );
    const settled = `state = 'settled', most_tokens = 0, most_cost_micro_usd = 0`;
    this.#end = database.prepare<[number]>(
      `UPDATE remote_batches SET ${settled} WHERE id = ?
         AND NOT EXISTS (SELECT 1 FROM tasks WHERE remote_batch_id = remote_batches.id)`,
    );
    this.#insertResponse = database.prepare<(string | number)[]>(
      `INSERT INTO remote_batches (run_id, kind, lane, endpoint, model, created_at_ms, submitted_at_ms, shard, state,
         lines, remote_id, most_tokens, most_cost_micro_usd)
       VALUES (?, ?, ?, ?, ?, ?, ?, 0, 'submitted', 1, ?, ?, ?)`,
    );
    this.#responses = database.prepare<[number], BatchRecord>(
      `SELECT ${BATCH_COLUMNS} FROM remote_batches WHERE run_id = ? AND kind = 'response' AND state <> 'settled' ORDER BY id`,
    );
    // Nobody asks for it any more, and there may be one for each document.
    this.#endResponse = database.prepare<[number]>(
      `DELETE FROM remote_batches WHERE id = ? AND kind = 'response'
         AND NOT EXISTS (SELECT 1 FROM tasks WHERE remote_batch_id = remote_batches.id)`,
    );
    this.#delete = database.prepare<[number]>('DELETE FROM remote_batches WHERE id = ?');
    this.#endOfRun = database.prepare<[number]>(`UPDATE remote_batches SET ${settled} WHERE run_id = ?`);
  }

  begin({ runId, kind, lane, endpoint, model, createdAtMs }: NewBatch): BatchRecord {
    const { lastInsertRowid } = this.#insert.run(
      ...[runId, kind, storableText(lane), endpoint, storableText(model), storableInteger(createdAtMs)],
      runId,
    );
    return this.#get(Number(lastInsertRowid));
  }

  give(batchId: number, tasks: readonly CallTask[], load: BatchLoad): number[] {
    const lost = tasks.flatMap(({ taskId, attemptToken }) =>
      this.#take.run(batchId, taskId, attemptToken).changes === 0 ? [taskId] : [],
    );
    const { bytes, mostTokens, mostCostMicroUsd } = load;
    this.#load.run(
      tasks.length - lost.length,
      storableCount(bytes),
      storableCount(mostTokens),
      storableReal(mostCostMicroUsd),
      batchId,
    );
    return lost;
  }

  note(batchId: number, progress: Partial<BatchProgress>): void {
    const before = this.#get(batchId);
    if (before.state === 'settled') return;
    const after = { ...before, ...progress };
    const values = PROGRESS_NAMES.map((name) => {
      const value = after[name];
      return typeof value === 'number' ? storableIntegerOrNull(value) : storableTextOrNull(value);
    });
    this.#update.run(...values, batchId);
  }

  /** @param nowMs by which throttling is told */
  tasksOf(batchId: number, taskIds: readonly number[] | null, limit: number, nowMs: number): LeasedTask[] {
    const rows =
      taskIds === null
        ? this.#tasks.all(batchId, limit)
        : this.#tasksById.all(JSON.stringify(taskIds), batchId);
    return rows.map(([attemptToken, ...row]) => toLeasedTask(row, attemptToken, nowMs));
  }

  /** @returns the tasks that were not the batch's any more */
  settle(batchId: number, settlements: readonly BatchSettlement[], nowMs: number): number[] {
    const { runId, lane } = this.#get(batchId);
    return settlements.flatMap(({ call, outcome }) => {
      const { taskId, attemptToken } = outcome;
      if (this.#isOwned.get(taskId, attemptToken, batchId) === undefined) return [taskId];
      this.#settlements.settleRemote({ runId, lane, batchId }, call, outcome, nowMs);
      if (call !== null)
        this.#unload.run(storableCount(call.mostTokens), call.mostCostMicroUsd ?? 0, batchId);
      return [];
    });
  }

  giveBack(batchId: number, limit: number): number {
    return this.#giveBack.run(batchId, limit).changes;
  }

  end(batchId: number): boolean {
    return this.#endResponse.run(batchId).changes + this.#end.run(batchId).changes > 0;
  }

  /** Of a run whose tasks were cancelled. */
  endOfRun(runId: number): void {
    this.#endOfRun.run(runId);
  }

  /** @returns the response's number; null where the task is not its worker's any more */
  take({ task, batch, remoteId, mostTokens, mostCostMicroUsd }: NewResponse): number | null {
    const { runId, kind, lane, endpoint, model } = batch;
    const createdAtMs = storableInteger(batch.createdAtMs);
    const { lastInsertRowid } = this.#insertResponse.run(
      ...[runId, kind, storableText(lane), endpoint, storableText(model), createdAtMs, createdAtMs],
      storableText(remoteId),
      ...[storableCount(mostTokens), mostCostMicroUsd ?? 0],
    );
    const batchId = Number(lastInsertRowid);
    if (this.#take.run(batchId, task.taskId, task.attemptToken).changes > 0) return batchId;
    this.#delete.run(batchId);
    return null;
  }

  /**
   * @param callOf the open call of a response
   * @param nowMs by which throttling is told
   */
  responsesOf(
    runId: number,
    callOf: (batchId: number) => HandedOverCall | undefined,
    nowMs: number,
  ): StoredResponse[] {
    return this.#responses.all(runId).map((batch) => {
      const [task] = this.tasksOf(batch.id, null, 1, nowMs);
      const call = callOf(batch.id);
      return {
        batch,
        remoteId: batch.remoteId ?? '',
        open: task === undefined || call === undefined ? null : { task, ...call },
      };
    });
  }

  list(runId: number): BatchRecord[] {
    return this.#list.all(runId);
  }

  #get(batchId: number): BatchRecord {
    const batch = this.#select.get(batchId);
    if (batch === undefined) throw new RangeError(`there is no batch with the number ${batchId}`);
    return batch;
  }
}

type OwnedRow = [attemptToken: string, ...claimed: ClaimedRow];
