/**
 * The ledger: a row for every HTTP request and for each task in it, and the sums over them. Sums are gathered while the
 * rows are written and stored once, by `flush`, in the same transaction.
 */
import type Database from 'better-sqlite3';
import type { RemoteCall } from '../../core/batch-record.js';
import type { CallEnd, CallShare, CallStart } from '../../core/call.js';
import { type CallSums, type EndOfRequest, LANE_SUMS, RUN_SUMS, sumsOf } from '../call-sums.js';
import { ENDING, endingColumns } from '../outcome-columns.js';
import type { RemoteOrigin } from '../sql/batches.js';
import type { LostCall } from '../sql/calls-underway.js';
import { storableCount, storableInteger, storableReal, storableText } from '../storable.js';

function endingOf(call: EndOfRequest): (string | number | null)[] {
  const columns = endingColumns(call);
  return ENDING.map((column) => columns[column]);
}

function addingTo(columns: readonly string[]): string {
  return columns.map((column) => `${column} = ${column} + excluded.${column}`).join(', ');
}

type EndedRow = [
  runId: number,
  lane: string,
  lost: number,
  mostTokens: number | null,
  mostCostMicroUsd: number | null,
];

export class Ledger {
  readonly #start;
  readonly #addRemote;
  readonly #startTask;
  readonly #end;
  readonly #share;
  readonly #owner;
  readonly #withdraw;
  readonly #withdrawTasks;
  readonly #addRun;
  readonly #addLane;
  readonly #addLatency;
  readonly #added = new Map<number, CallSums>();

  constructor(database: Database.Database) {
    this.#start = database.prepare<[number, string, number, number, number, number | null, number]>(
      `INSERT INTO calls (run_id, lane, started_at_ms, reserved_tokens, most_tokens, most_cost_micro_usd, worker_id)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#addRemote = database.prepare<(string | number | null)[]>(
      `INSERT INTO calls (run_id, lane, remote_batch_id, started_at_ms, reserved_tokens, most_tokens, most_cost_micro_usd,
         finished_at_ms, ${ENDING.join(', ')})
       VALUES (?, ?, ?, ?, 0, ?, ?, ?, ${ENDING.map(() => '?').join(', ')})`,
    );
    this.#startTask = database.prepare<[number, number]>(
      'INSERT OR IGNORE INTO call_tasks (call_id, task_id) VALUES (?, ?)',
    );
    this.#end = database
      .prepare<(string | number | null)[], EndedRow>(
        `UPDATE calls SET worker_id = NULL, finished_at_ms = ?, latency_ms = ?,
           ${ENDING.map((column) => `${column} = ?`).join(', ')}
         WHERE id = ? AND (finished_at_ms IS NULL OR (lost = 1 AND latency_ms IS NULL))
         RETURNING run_id, lane, lost, most_tokens, most_cost_micro_usd`,
      )
      .raw();
    this.#share = database.prepare<[number | null, number | null, number | null, number, number]>(
      `UPDATE call_tasks SET input_tokens = ?, output_tokens = ?, cost_micro_usd = ?
       WHERE call_id = ? AND task_id = ?`,
    );
    this.#owner = database
      .prepare<[number, string], number | null>(
        'SELECT worker_id FROM tasks WHERE id = ? AND attempt_token = ?',
      )
      .pluck();
    this.#withdraw = database
      .prepare<[number], [runId: number, lane: string]>(
        'DELETE FROM calls WHERE id = ? AND finished_at_ms IS NULL RETURNING run_id, lane',
      )
      .raw();
    this.#withdrawTasks = database.prepare<[number]>('DELETE FROM call_tasks WHERE call_id = ?');
    this.#addRun = database.prepare<(number | null)[]>(
      `INSERT INTO run_totals (run_id, first_call_at_ms, last_call_at_ms, ${RUN_SUMS.join(', ')})
       VALUES (?, ?, ?, ${RUN_SUMS.map(() => '?').join(', ')}) ON CONFLICT DO UPDATE SET ${addingTo(RUN_SUMS)},
         first_call_at_ms = coalesce(min(first_call_at_ms, excluded.first_call_at_ms), first_call_at_ms,
           excluded.first_call_at_ms),
         last_call_at_ms = coalesce(max(last_call_at_ms, excluded.last_call_at_ms), last_call_at_ms,
           excluded.last_call_at_ms)`,
    );
    this.#addLane = database.prepare<(number | string)[]>(
      `INSERT INTO lane_totals (run_id, lane, ${LANE_SUMS.join(', ')}) VALUES (?, ?, ${LANE_SUMS.map(() => '?').join(', ')})
       ON CONFLICT DO UPDATE SET ${addingTo(LANE_SUMS)}`,
    );
    this.#addLatency = database.prepare<[number, number, number]>(
      `INSERT INTO latency_buckets (run_id, bucket, calls) VALUES (?, ?, ?)
       ON CONFLICT DO UPDATE SET calls = calls + excluded.calls`,
    );
  }

  /** Of a transaction that was undone. */
  forget(): void {
    this.#added.clear();
  }

  /** @returns the call's id; null where a task of it is not its worker's any more, who would pay for what others do */
  start(call: CallStart): number | null {
    let workerId: number | null = null;
    for (const { taskId, attemptToken } of call.tasks) {
      workerId = this.#owner.get(taskId, attemptToken) ?? null;
      if (workerId === null) return null;
    }
    if (workerId === null) return null;
    const startedAtMs = storableInteger(call.startedAtMs);
    const lane = storableText(call.lane);
    const { lastInsertRowid } = this.#start.run(
      call.runId,
      lane,
      startedAtMs,
      storableCount(call.reservedTokens),
      storableCount(call.mostTokens),
      call.mostCostMicroUsd,
      workerId,
    );
    const added = this.#addedTo(call.runId);
    added.made(lane, 1);
    added.seen(startedAtMs);
    const callId = Number(lastInsertRowid);
    for (const { taskId } of call.tasks) this.#startTask.run(callId, taskId);
    return callId;
  }

  /**
   * A call that a rescue had given up as lost gets its figures all the same: it may have been billed. One that
   * has ended already keeps what it has, so that a repeated `record` counts nothing twice.
   * @returns whether it has ended only now
   */
  end(call: CallEnd): boolean {
    const finishedAtMs = storableInteger(call.finishedAtMs);
    const latencyMs = storableReal(call.latencyMs);
    const row = this.#end.get(finishedAtMs, latencyMs, ...endingOf(call), call.callId);
    if (row === undefined) return false;
    const [runId, laneName, lost, most_tokens, most_cost_micro_usd] = row;
    this.#addedTo(runId).end(laneName, call, { most_tokens, most_cost_micro_usd }, lost === 1);
    return true;
  }

  /** A request that was worked off in a batch. */
  addRemote({ runId, lane, batchId }: RemoteOrigin, call: RemoteCall, taskId: number): void {
    const { mostCostMicroUsd } = call;
    const mostTokens = storableCount(call.mostTokens);
    const { lastInsertRowid } = this.#addRemote.run(
      ...[
        runId,
        storableText(lane),
        batchId,
        storableInteger(call.startedAtMs),
        mostTokens,
        mostCostMicroUsd,
      ],
      storableInteger(call.finishedAtMs),
      ...endingOf(call),
    );
    this.#startTask.run(Number(lastInsertRowid), taskId);
    const most = { most_tokens: mostTokens, most_cost_micro_usd: mostCostMicroUsd };
    this.#addedTo(runId).workedOff(lane, call, most);
  }

  /** Takes back a call that has not left; one that a rescue gave up as lost in the meantime stays. */
  withdraw(callId: number): void {
    const row = this.#withdraw.get(callId);
    if (row === undefined) return;
    this.#withdrawTasks.run(callId);
    this.#addedTo(row[0]).made(row[1], -1);
  }

  /** Notes what one task of a call with several takes of its bill. */
  share(callId: number, taskId: number, { usage, costMicroUsd }: CallShare): void {
    this.#share.run(
      usage === null ? null : storableCount(usage.inputTokens),
      usage === null ? null : storableCount(usage.outputTokens),
      costMicroUsd,
      callId,
      taskId,
    );
  }

  /** Calls that were ended as lost. */
  lose(calls: readonly LostCall[]): void {
    for (const call of calls) this.#addedTo(call.run_id).lose(call);
    this.flush();
  }

  /** Adds what was gathered to the stored sums. */
  flush(): void {
    for (const [runId, { run, lanes, latencyBuckets, firstAtMs, lastAtMs }] of this.#added) {
      this.#addRun.run(runId, firstAtMs, lastAtMs, ...RUN_SUMS.map((column) => run[column]));
      for (const [name, lane] of lanes) {
        this.#addLane.run(runId, name, ...LANE_SUMS.map((column) => lane[column]));
      }
      for (const [bucket, calls] of latencyBuckets) this.#addLatency.run(runId, bucket, calls);
    }
    this.#added.clear();
  }

  #addedTo(runId: number): CallSums {
    return sumsOf(this.#added, runId);
  }
}
