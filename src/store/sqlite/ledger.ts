/**
 * The ledger: a row for every HTTP request and for each task in it, and the sums over them. Sums are gathered while the
 * rows are written and stored once, by `flush`, in the same transaction.
 */
import type Database from 'better-sqlite3';
import type { RemoteCall } from '../../core/batch-record.js';
import type { CallEnd, CallShare, CallStart, RecentCall } from '../../core/call.js';
import { type CallSums, type EndOfRequest, LANE_SUMS, RUN_SUMS, sumsOf } from '../call-sums.js';
import { ENDING, endingColumns } from '../outcome-columns.js';
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

/** Where a request was worked off. */
export interface RemoteOrigin {
  readonly runId: number;
  readonly lane: string;
  readonly batchId: number;
}

/** A call that is open at a server, in a response of which the number stands, below zero, for that of its worker. */
export interface HandedOverCall {
  readonly callId: number;
  readonly startedAtMs: number;
}

interface LostRow {
  run_id: number;
  most_tokens: number | null;
  most_cost_micro_usd: number | null;
}

export class Ledger {
  readonly #start;
  readonly #addRemote;
  readonly #startTask;
  readonly #end;
  readonly #share;
  readonly #owner;
  readonly #openTasks;
  readonly #lose;
  readonly #handOver;
  readonly #handedOver;
  readonly #withdraw;
  readonly #withdrawTasks;
  readonly #addRun;
  readonly #addLane;
  readonly #addLatency;
  readonly #recent;
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
    this.#openTasks = database
      .prepare<[number], number>(
        `SELECT DISTINCT task_id FROM calls INDEXED BY calls_open JOIN call_tasks ON call_id = id
         WHERE finished_at_ms IS NULL AND worker_id = ?`,
      )
      .pluck();
    this.#lose = database.prepare<[number, number], LostRow>(
      `UPDATE calls INDEXED BY calls_open SET worker_id = NULL, finished_at_ms = ?, lost = 1
       WHERE finished_at_ms IS NULL AND worker_id = ? RETURNING run_id, most_tokens, most_cost_micro_usd`,
    );
    this.#handOver = database.prepare<[number, number]>(
      'UPDATE calls SET worker_id = ? WHERE id = ? AND finished_at_ms IS NULL',
    );
    this.#handedOver = database.prepare<[number], HandedOverCall>(
      `SELECT id AS callId, started_at_ms AS startedAtMs FROM calls INDEXED BY calls_open
       WHERE finished_at_ms IS NULL AND worker_id = ?`,
    );
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
    this.#recent = database.prepare<[number, number], RecentCall>(
      // A clock that was set back must not make a call look as if it were still to come.
      `SELECT max(0, ? - started_at_ms) AS ageMs, lane, coalesce(input_tokens + output_tokens, reserved_tokens) AS tokens
       FROM calls INDEXED BY calls_started WHERE started_at_ms >= ? AND remote_batch_id IS NULL ORDER BY started_at_ms, id`,
    );
  }

  /** Forgets what a transaction that was undone had gathered. */
  begin(): void {
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

  /** The call goes on at a server, whatever becomes of its worker. */
  handOver(callId: number, responseId: number): void {
    this.#handOver.run(-responseId, callId);
  }

  /** The open call of a response; undefined where it has ended. */
  handedOver(responseId: number): HandedOverCall | undefined {
    return this.#handedOver.get(-responseId);
  }

  loseOfResponse(responseId: number, nowMs: number): void {
    this.loseOf(-responseId, nowMs);
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

  /** Ends the open calls of a worker as lost. @returns how many there were, and for which tasks */
  loseOf(workerId: number, nowMs: number): { readonly calls: number; readonly taskIds: ReadonlySet<number> } {
    const taskIds = new Set(this.#openTasks.all(workerId));
    const lost = this.#lose.all(storableInteger(nowMs), workerId);
    for (const call of lost) this.#addedTo(call.run_id).lose(call);
    return { calls: lost.length, taskIds };
  }

  /** Adds what was gathered since `begin` to the stored sums. */
  flush(): void {
    for (const [runId, { run, lanes, latencyBuckets, firstAtMs, lastAtMs }] of this.#added) {
      this.#addRun.run(runId, firstAtMs, lastAtMs, ...RUN_SUMS.map((column) => run[column]));
      for (const [name, lane] of lanes) {
        this.#addLane.run(runId, name, ...LANE_SUMS.map((column) => lane[column]));
      }
      for (const [bucket, calls] of latencyBuckets) this.#addLatency.run(runId, bucket, calls);
    }
  }

  recent(withinMs: number, nowMs: number): RecentCall[] {
    return this.#recent.all(nowMs, storableInteger(nowMs - withinMs));
  }

  #addedTo(runId: number): CallSums {
    return sumsOf(this.#added, runId);
  }
}
