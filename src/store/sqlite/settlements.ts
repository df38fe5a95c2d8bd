/**
 * What becomes of leased tasks. Every write is guarded by the attempt's token and by the state, and the number
 * of changed rows says whether the lease was still ours; what a worker without its lease brings is dropped.
 */
import type Database from 'better-sqlite3';
import type { CallEnd, CallShare } from '../../core/call.js';
import {
  type CompletedResult,
  errorWithoutCall,
  type Settlement,
  type TaskError,
  type TaskOutcome,
} from '../../core/outcome.js';
import type { TaskState } from '../../core/task.js';
import type { Ledger } from './ledger.js';
import { packResponse } from './packed-response.js';
import { storableCount, storableInteger, storableIntegerOrNull, storableTextOrNull } from './storable.js';

const LEAVE = `attempt_token = NULL, worker_id = NULL, lease_until_ms = NULL`;
const OURS = `WHERE id = ? AND attempt_token = ? AND state = 'in_progress'`;

interface LeasedRow {
  id: number;
  crash_count: number;
  lone_crash_count: number;
}

type ResultBindings = (string | number | Buffer | null)[];

export class Settlements {
  readonly #ledger: Ledger;
  readonly #complete;
  readonly #fail;
  readonly #retry;
  readonly #release;
  readonly #insertResult;
  readonly #leased;
  readonly #lone;
  readonly #rescue;
  readonly #poison;

  constructor(database: Database.Database, ledger: Ledger) {
    this.#ledger = ledger;
    this.#complete = database.prepare<[number, string]>(
      `UPDATE tasks SET state = 'completed', attempts = attempts + 1, throttled_since_ms = NULL, ${LEAVE} ${OURS}`,
    );
    this.#fail = database.prepare<[string, number, string]>(
      `UPDATE tasks SET state = 'failed', failure_kind = ?, attempts = attempts + 1, throttled_since_ms = NULL,
         ${LEAVE} ${OURS}`,
    );
    this.#retry = database.prepare<[number, number, string]>(
      `UPDATE tasks SET state = 'delayed', not_before_ms = ?, attempts = attempts + 1, throttled_since_ms = NULL,
         ${LEAVE} ${OURS}`,
    );
    this.#release = database.prepare<[TaskState, number | null, number | null, number, string]>(
      `UPDATE tasks SET state = ?, not_before_ms = ?, throttled_since_ms = ?, ${LEAVE} ${OURS}`,
    );
    this.#insertResult = database.prepare<ResultBindings>(
      `INSERT OR REPLACE INTO results (task_id, settled_at_ms, model, finish_reason, error_kind, error_message,
         error_code, http_status, request_id, latency_ms, cost_micro_usd, input_tokens, output_tokens,
         cached_tokens, reasoning_tokens, partial_output_json, output_json, details_json, response_packed)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#leased = database.prepare<[number], LeasedRow>(
      `SELECT id, crash_count, lone_crash_count
       FROM tasks INDEXED BY tasks_leased WHERE state = 'in_progress' AND lease_until_ms < ? ORDER BY id`,
    );
    this.#lone = database
      .prepare<[], number>(
        `SELECT min(id) FROM tasks INDEXED BY tasks_leased WHERE state = 'in_progress'
         GROUP BY run_id, worker_id HAVING count(*) = 1`,
      )
      .pluck();
    this.#rescue = database.prepare<[number, number, number]>(
      `UPDATE tasks SET state = 'ready', crash_count = ?, lone_crash_count = ?, ${LEAVE} WHERE id = ?`,
    );
    this.#poison = database.prepare<[number, number, number]>(
      `UPDATE tasks SET state = 'failed', failure_kind = 'poison', crash_count = ?, lone_crash_count = ?, ${LEAVE}
       WHERE id = ?`,
    );
  }

  /** @returns the tasks whose lease was no longer ours; the call is in the ledger either way */
  settle({ call, outcomes }: Settlement): number[] {
    const lostTaskIds: number[] = [];
    if (call !== null && 'isWithdrawn' in call) {
      this.#ledger.withdraw(call.callId);
      return this.settle({ call: null, outcomes });
    }
    if (call !== null) this.#ledger.end(call);
    for (const outcome of outcomes) {
      if (call !== null && outcomes.length > 1 && outcome.share !== null) {
        this.#ledger.share(call.callId, outcome.taskId, outcome.share);
      }
      if (!this.#settleTask(outcome, call)) lostTaskIds.push(outcome.taskId);
    }
    return lostTaskIds;
  }

  #settleTask(outcome: TaskOutcome, call: CallEnd | null): boolean {
    const { taskId, attemptToken } = outcome;
    switch (outcome.action) {
      case 'completed':
        if (this.#complete.run(taskId, attemptToken).changes === 0) return false;
        this.#storeResult(taskId, outcome.atMs, call, outcome.share, outcome.result, null);
        return true;
      case 'failed':
        if (this.#fail.run(outcome.error.kind, taskId, attemptToken).changes === 0) return false;
        this.#storeResult(taskId, outcome.atMs, call, outcome.share, null, outcome.error);
        return true;
      case 'retry':
        return this.#retry.run(storableInteger(outcome.notBeforeMs), taskId, attemptToken).changes > 0;
      case 'released':
        return (
          this.#release.run(
            outcome.notBeforeMs === null ? 'ready' : 'delayed',
            storableIntegerOrNull(outcome.notBeforeMs),
            storableIntegerOrNull(outcome.throttledSinceMs),
            taskId,
            attemptToken,
          ).changes > 0
        );
    }
  }

  /**
   * Puts tasks back whose lease ended before `beforeMs`, and ends their open calls as lost. A task whose call was open
   * may have brought its worker down; only one that was alone besides can be blamed.
   * @param isCrash false where the worker's death is no evidence against anybody
   */
  rescue(
    nowMs: number,
    beforeMs: number,
    crashLimit: number,
    isCrash: boolean,
  ): { rescued: number; lostCallIds: ReadonlySet<number>; poisoned: number } {
    let rescued = 0;
    let poisoned = 0;
    const lostCallIds = new Set<number>();
    const leased = this.#leased.all(beforeMs);
    const lone = new Set(this.#lone.all());
    const openCalls = this.#ledger.openTasks();
    for (const task of leased) {
      const lost = openCalls.filter(({ taskId }) => taskId === task.id);
      for (const { callId } of lost) lostCallIds.add(callId);
      const wasOpen = isCrash && lost.length > 0;
      const isAlone = wasOpen && lone.has(task.id);
      const crashCount = task.crash_count + (wasOpen ? 1 : 0);
      const loneCrashCount = task.lone_crash_count + (isAlone ? 1 : 0);
      if (isAlone && loneCrashCount >= crashLimit) {
        this.#poison.run(crashCount, loneCrashCount, task.id);
        const message = `The program died ${loneCrashCount} times while it worked on this document alone.`;
        this.#storeResult(task.id, nowMs, null, null, null, errorWithoutCall('poison', message));
        poisoned += 1;
      } else {
        this.#rescue.run(crashCount, loneCrashCount, task.id);
        rescued += 1;
      }
    }
    this.#ledger.lose(lostCallIds, nowMs);
    return { rescued, lostCallIds, poisoned };
  }

  /** Either an answer or an error; what may be long comes last, as in the table. */
  #storeResult(
    taskId: number,
    atMs: number,
    call: CallEnd | null,
    share: CallShare | null,
    answer: CompletedResult | null,
    error: TaskError | null,
  ): void {
    const usage = share?.usage ?? null;
    const model = storableTextOrNull(answer?.model ?? null);
    const outputJson = storableTextOrNull(answer?.outputJson ?? null);
    const detailsJson = storableTextOrNull(answer?.detailsJson ?? null);
    const responseJson = storableTextOrNull(answer?.responseJson ?? null);
    this.#insertResult.run(
      taskId,
      storableInteger(atMs),
      model,
      storableTextOrNull(answer?.finishReason ?? null),
      error?.kind ?? null,
      storableTextOrNull(error?.message ?? null),
      storableTextOrNull(error?.code ?? null),
      storableIntegerOrNull(error?.httpStatus ?? null),
      storableTextOrNull(call?.requestId ?? error?.requestId ?? null),
      call?.latencyMs ?? null,
      share?.costMicroUsd ?? null,
      usage === null ? null : storableCount(usage.inputTokens),
      usage === null ? null : storableCount(usage.outputTokens),
      usage === null ? null : storableCount(usage.cachedTokens),
      usage === null ? null : storableCount(usage.reasoningTokens),
      storableTextOrNull(error?.partialOutputJson ?? null),
      outputJson,
      detailsJson,
      outputJson === null || responseJson === null
        ? null
        : packResponse(responseJson, { model: model ?? '', outputJson, detailsJson }),
    );
  }
}
