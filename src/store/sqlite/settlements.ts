/**
 * What becomes of leased tasks. Every write is guarded by the attempt's token and by the state, and the number
 * of changed rows says whether the lease was still ours; what a worker without its lease brings is dropped.
 */
import type Database from 'better-sqlite3';
import type { BatchSettlement } from '../../core/batch-record.js';
import type { CallStart } from '../../core/call.js';
import type { Settlement, TaskOutcome } from '../../core/outcome.js';
import type { TaskState } from '../../core/task.js';
import { type EndOfCall, RESULT, resultOf, type StoredResult } from '../outcome-columns.js';
import type { RemoteOrigin } from '../sql/batches.js';
import { UNOWNED } from '../sql/parts.js';
import { storableInteger } from '../storable.js';
import type { RecordedProgress } from '../store.js';
import type { Ledger } from './ledger.js';

const OURS = `WHERE id = ? AND attempt_token = ? AND state = 'in_progress'`;

type ResultBindings = (string | number | Buffer | null)[];

export class Settlements {
  readonly #ledger: Ledger;
  readonly #complete;
  readonly #fail;
  readonly #retry;
  readonly #release;
  readonly #insertResult;

  constructor(database: Database.Database, ledger: Ledger) {
    this.#ledger = ledger;
    this.#complete = database.prepare<[number, string]>(
      `UPDATE tasks SET state = 'completed', attempts = attempts + 1, throttled_since_ms = NULL, ${UNOWNED} ${OURS}`,
    );
    this.#fail = database.prepare<[string, number, string]>(
      `UPDATE tasks SET state = 'failed', failure_kind = ?, attempts = attempts + 1, throttled_since_ms = NULL,
         ${UNOWNED} ${OURS}`,
    );
    this.#retry = database.prepare<[number, number, string]>(
      `UPDATE tasks SET state = 'delayed', not_before_ms = ?, attempts = attempts + 1, throttled_since_ms = NULL,
         ${UNOWNED} ${OURS}`,
    );
    this.#release = database.prepare<[TaskState, number | null, number, number, number, string]>(
      `UPDATE tasks SET state = ?, not_before_ms = ?,
         throttled_since_ms = iif(?, coalesce(throttled_since_ms, ?), NULL), ${UNOWNED} ${OURS}`,
    );
    this.#insertResult = database.prepare<ResultBindings>(
      `INSERT OR REPLACE INTO results (task_id, ${RESULT.join(', ')}, response_packed)
       VALUES (?, ${RESULT.map(() => '?').join(', ')}, ?)`,
    );
  }

  /** Writes calls that are about to be sent, and what became of leased tasks. @param nowMs from which delays count */
  record(
    started: readonly CallStart[],
    settlements: readonly Settlement[],
    nowMs: number,
  ): Omit<RecordedProgress, 'responseIds'> {
    const callIds = started.map((call) => this.#ledger.start(call));
    const lostTaskIds = settlements.flatMap((settlement) => this.#settle(settlement, nowMs));
    this.#ledger.flush();
    return { callIds, lostTaskIds };
  }

  /**
   * @param nowMs from which delays count
   * @returns the tasks whose lease was no longer ours; the call is in the ledger either way
   */
  #settle({ call, outcomes }: Settlement, nowMs: number): number[] {
    if (call !== null && 'isWithdrawn' in call) {
      this.#ledger.withdraw(call.callId);
      return this.#settle({ call: null, outcomes }, nowMs);
    }
    const isNew = call !== null && this.#ledger.end(call);
    return outcomes.flatMap((outcome) => {
      const { taskId, share } = outcome;
      if (isNew && outcomes.length > 1 && share !== null) this.#ledger.share(call.callId, taskId, share);
      return this.#settleTask(outcome, call, nowMs) ? [] : [taskId];
    });
  }

  /** What tasks of a batch came to. */
  settleRemote(origin: RemoteOrigin, settlements: readonly BatchSettlement[], nowMs: number): void {
    for (const { call, outcome } of settlements) {
      if (call !== null) this.#ledger.addRemote(origin, call, outcome.taskId);
      this.#settleTask(outcome, call, nowMs);
    }
    this.#ledger.flush();
  }

  #settleTask(outcome: TaskOutcome, call: EndOfCall | null, nowMs: number): boolean {
    const { taskId, attemptToken } = outcome;
    switch (outcome.action) {
      case 'completed':
        if (this.#complete.run(taskId, attemptToken).changes === 0) return false;
        this.#storeResult(taskId, resultOf(outcome, call));
        return true;
      case 'failed':
        if (this.#fail.run(outcome.error.kind, taskId, attemptToken).changes === 0) return false;
        this.#storeResult(taskId, resultOf(outcome, call));
        return true;
      case 'retry':
        return this.#retry.run(storableInteger(nowMs + outcome.delayMs), taskId, attemptToken).changes > 0;
      case 'released':
        return (
          this.#release.run(
            outcome.delayMs === null ? 'ready' : 'delayed',
            outcome.delayMs === null ? null : storableInteger(nowMs + outcome.delayMs),
            outcome.isThrottled ? 1 : 0,
            storableInteger(nowMs),
            taskId,
            attemptToken,
          ).changes > 0
        );
    }
  }

  #storeResult(taskId: number, result: StoredResult | null): void {
    if (result === null) return;
    const { columns, responsePacked } = result;
    this.#insertResult.run(taskId, ...RESULT.map((column) => columns[column]), responsePacked);
  }
}
