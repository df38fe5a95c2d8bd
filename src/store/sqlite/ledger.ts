/**
 * The ledger: a row for every HTTP request and for each task in it, and the sums over them. Sums are gathered while the rows are
 * written and stored once, by `flush`, in the same transaction.
 */
import type Database from 'better-sqlite3';
import type { CallEnd, CallShare, CallStart, RecentCall } from '../../core/call.js';
import { type Doubt, doubtOf } from '../../core/usage.js';
import { latencyBucket } from '../latency-buckets.js';
import {
  storableCount,
  storableInteger,
  storableIntegerOrNull,
  storableReal,
  storableText,
  storableTextOrNull,
} from './storable.js';

/** What one transaction adds to a row of `lane_totals`. */
class LaneTotals {
  made = 0;
  failed = 0;
  throttled = 0;
  costMicroUsd = 0;
  inputTokens = 0;
  outputTokens = 0;
  cachedTokens = 0;
  reasoningTokens = 0;
}

/** What one transaction adds to `run_totals`, `lane_totals` and `latency_buckets` of one run. */
class RunTotals {
  ended = 0;
  lost = 0;
  answered = 0;
  withoutCost = 0;
  inDoubt = 0;
  withoutUsage = 0;
  tokensInDoubt = 0;
  costInDoubtMicroUsd = 0;
  latencySumMs = 0;
  firstAtMs: number | null = null;
  lastAtMs: number | null = null;
  readonly lanes = new Map<string, LaneTotals>();
  readonly latencyBuckets = new Map<number, number>();

  lane(name: string): LaneTotals {
    let lane = this.lanes.get(name);
    if (lane === undefined) {
      lane = new LaneTotals();
      this.lanes.set(name, lane);
    }
    return lane;
  }

  /** @param calls 1 for one that is in doubt, -1 for one that is so no more */
  doubt(doubt: Doubt, calls: 1 | -1, mostTokens: number | null, mostCostMicroUsd: number | null): void {
    if (doubt === 'cut_off') this.inDoubt += calls;
    else this.withoutUsage += calls;
    this.tokensInDoubt += calls * (mostTokens ?? 0);
    this.costInDoubtMicroUsd += calls * (mostCostMicroUsd ?? 0);
  }

  seen(atMs: number): void {
    if (this.firstAtMs === null || atMs < this.firstAtMs) this.firstAtMs = atMs;
    if (this.lastAtMs === null || atMs > this.lastAtMs) this.lastAtMs = atMs;
  }
}

type CallRow = [
  runId: number,
  lane: string,
  lost: number,
  finishedAtMs: number | null,
  latencyMs: number | null,
  mostTokens: number | null,
  mostCostMicroUsd: number | null,
];

interface LostRow {
  run_id: number;
  most_tokens: number | null;
  most_cost_micro_usd: number | null;
}

export class Ledger {
  readonly #start;
  readonly #startTask;
  readonly #select;
  readonly #end;
  readonly #share;
  readonly #owner;
  readonly #openTasks;
  readonly #lose;
  readonly #withdraw;
  readonly #withdrawTasks;
  readonly #addTotals;
  readonly #addLane;
  readonly #addLatency;
  readonly #recent;
  readonly #totals = new Map<number, RunTotals>();

  constructor(database: Database.Database) {
    this.#start = database.prepare<[number, string, number, number, number, number | null, number]>(
      `INSERT INTO calls (run_id, lane, started_at_ms, reserved_tokens, most_tokens, most_cost_micro_usd, worker_id)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#startTask = database.prepare<[number, number]>(
      'INSERT OR IGNORE INTO call_tasks (call_id, task_id) VALUES (?, ?)',
    );
    this.#select = database
      .prepare<[number], CallRow>(
        `SELECT run_id, lane, lost, finished_at_ms, latency_ms, most_tokens, most_cost_micro_usd
         FROM calls WHERE id = ?`,
      )
      .raw();
    this.#end = database.prepare<(string | number | null)[]>(
      `UPDATE calls SET worker_id = NULL, finished_at_ms = ?, latency_ms = ?, http_status = ?, kind = ?, message = ?, request_id = ?,
         cost_micro_usd = ?, input_tokens = ?, output_tokens = ?, cached_tokens = ?, reasoning_tokens = ?
       WHERE id = ?`,
    );
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
    this.#withdraw = database
      .prepare<[number], [runId: number, lane: string]>(
        'DELETE FROM calls WHERE id = ? AND finished_at_ms IS NULL RETURNING run_id, lane',
      )
      .raw();
    this.#withdrawTasks = database.prepare<[number]>('DELETE FROM call_tasks WHERE call_id = ?');
    this.#addTotals = database.prepare<(number | null)[]>(
      `UPDATE run_totals SET
         calls_ended = calls_ended + ?, calls_lost = calls_lost + ?, calls_answered = calls_answered + ?,
         calls_without_cost = calls_without_cost + ?, calls_in_doubt = calls_in_doubt + ?,
         calls_without_usage = calls_without_usage + ?,
         tokens_in_doubt = tokens_in_doubt + ?, cost_in_doubt_micro_usd = cost_in_doubt_micro_usd + ?,
         latency_sum_ms = latency_sum_ms + ?,
         first_call_at_ms = coalesce(min(first_call_at_ms, ?), first_call_at_ms, ?),
         last_call_at_ms = coalesce(max(last_call_at_ms, ?), last_call_at_ms, ?)
       WHERE run_id = ?`,
    );
    this.#addLane = database.prepare<(number | string)[]>(
      `INSERT INTO lane_totals (run_id, lane, calls_made, calls_failed, calls_throttled, cost_micro_usd,
         input_tokens, output_tokens, cached_tokens, reasoning_tokens)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET
         calls_made = calls_made + excluded.calls_made, calls_failed = calls_failed + excluded.calls_failed,
         calls_throttled = calls_throttled + excluded.calls_throttled,
         cost_micro_usd = cost_micro_usd + excluded.cost_micro_usd,
         input_tokens = input_tokens + excluded.input_tokens,
         output_tokens = output_tokens + excluded.output_tokens,
         cached_tokens = cached_tokens + excluded.cached_tokens,
         reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens`,
    );
    this.#addLatency = database.prepare<[number, number, number]>(
      `INSERT INTO latency_buckets (run_id, bucket, calls) VALUES (?, ?, ?)
       ON CONFLICT DO UPDATE SET calls = calls + excluded.calls`,
    );
    this.#recent = database.prepare<[number, number], RecentCall>(
      // A clock that was set back must not make a call look as if it were still to come.
      `SELECT max(0, ? - started_at_ms) AS ageMs, lane, coalesce(input_tokens + output_tokens, reserved_tokens) AS tokens
       FROM calls INDEXED BY calls_started WHERE started_at_ms >= ? ORDER BY started_at_ms, id`,
    );
  }

  /** Forgets what a transaction that was undone had gathered. */
  begin(): void {
    this.#totals.clear();
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
    const totals = this.#totalsOf(call.runId);
    totals.lane(lane).made += 1;
    totals.seen(startedAtMs);
    const callId = Number(lastInsertRowid);
    for (const { taskId } of call.tasks) this.#startTask.run(callId, taskId);
    return callId;
  }

  /**
   * A call that a rescue had given up as lost gets its figures all the same: it may have been billed. One that
   * has ended already keeps what it has, so that a repeated `record` counts nothing twice.
   */
  end(call: CallEnd): void {
    const row = this.#select.get(call.callId);
    if (row === undefined) return;
    const [runId, laneName, lost, endedAtMs, knownLatencyMs, mostTokens, mostCostMicroUsd] = row;
    if (endedAtMs !== null && (lost === 0 || knownLatencyMs !== null)) return;

    const { usage, kind } = call;
    const finishedAtMs = storableInteger(call.finishedAtMs);
    const latencyMs = storableReal(call.latencyMs);
    this.#end.run(
      finishedAtMs,
      latencyMs,
      storableIntegerOrNull(call.httpStatus),
      kind,
      storableTextOrNull(call.message),
      storableTextOrNull(call.requestId),
      call.costMicroUsd,
      usage === null ? null : storableCount(usage.inputTokens),
      usage === null ? null : storableCount(usage.outputTokens),
      usage === null ? null : storableCount(usage.cachedTokens),
      usage === null ? null : storableCount(usage.reasoningTokens),
      call.callId,
    );

    const totals = this.#totalsOf(runId);
    const lane = totals.lane(laneName);
    if (endedAtMs === null) totals.ended += 1;
    const doubt = doubtOf(usage, call.httpStatus);
    if (doubt !== null) totals.doubt(doubt, 1, mostTokens, mostCostMicroUsd);
    // A lost call was in doubt already.
    if (endedAtMs !== null) totals.doubt('cut_off', -1, mostTokens, mostCostMicroUsd);
    totals.seen(finishedAtMs);
    if (kind === null) {
      totals.answered += 1;
      totals.latencySumMs += latencyMs;
      const bucket = latencyBucket(latencyMs);
      totals.latencyBuckets.set(bucket, (totals.latencyBuckets.get(bucket) ?? 0) + 1);
    } else if (kind !== 'aborted') {
      lane.failed += 1;
      if (kind === 'rate_limited') lane.throttled += 1;
    }
    if (call.costMicroUsd !== null) lane.costMicroUsd += storableReal(call.costMicroUsd);
    if (usage === null) return;
    lane.inputTokens += storableCount(usage.inputTokens);
    lane.outputTokens += storableCount(usage.outputTokens);
    lane.cachedTokens += storableCount(usage.cachedTokens);
    lane.reasoningTokens += storableCount(usage.reasoningTokens);
    if (call.costMicroUsd === null && usage.inputTokens + usage.outputTokens > 0) {
      totals.withoutCost += 1;
      totals.costInDoubtMicroUsd += mostCostMicroUsd ?? 0;
    }
  }

  /** Takes back a call that has not left; one that a rescue gave up as lost in the meantime stays. */
  withdraw(callId: number): void {
    const row = this.#withdraw.get(callId);
    if (row === undefined) return;
    this.#withdrawTasks.run(callId);
    this.#totalsOf(row[0]).lane(row[1]).made -= 1;
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
    for (const call of lost) {
      const totals = this.#totalsOf(call.run_id);
      totals.ended += 1;
      totals.lost += 1;
      totals.doubt('cut_off', 1, call.most_tokens, call.most_cost_micro_usd);
    }
    return { calls: lost.length, taskIds };
  }

  /** Adds what was gathered since `begin` to the stored sums. */
  flush(): void {
    for (const [runId, totals] of this.#totals) {
      this.#addTotals.run(
        totals.ended,
        totals.lost,
        totals.answered,
        totals.withoutCost,
        totals.inDoubt,
        totals.withoutUsage,
        totals.tokensInDoubt,
        totals.costInDoubtMicroUsd,
        totals.latencySumMs,
        totals.firstAtMs,
        totals.firstAtMs,
        totals.lastAtMs,
        totals.lastAtMs,
        runId,
      );
      for (const [name, lane] of totals.lanes) this.#storeLane(runId, name, lane);
      for (const [bucket, calls] of totals.latencyBuckets) this.#addLatency.run(runId, bucket, calls);
    }
  }

  recent(withinMs: number, nowMs: number): RecentCall[] {
    return this.#recent.all(nowMs, storableInteger(nowMs - withinMs));
  }

  #storeLane(runId: number, name: string, lane: LaneTotals): void {
    this.#addLane.run(
      runId,
      name,
      lane.made,
      lane.failed,
      lane.throttled,
      lane.costMicroUsd,
      lane.inputTokens,
      lane.outputTokens,
      lane.cachedTokens,
      lane.reasoningTokens,
    );
  }

  #totalsOf(runId: number): RunTotals {
    let totals = this.#totals.get(runId);
    if (totals === undefined) {
      totals = new RunTotals();
      this.#totals.set(runId, totals);
    }
    return totals;
  }
}
