/**
 * What becomes of leased tasks. Every write is guarded by the attempt's token and by the state, and the rows that were
 * changed say whether the lease was still ours; what a worker without its lease brings is dropped.
 */
import type { BatchSettlement, RemoteCall } from '../../core/batch-record.js';
import type { CallEnd, CallStart } from '../../core/call.js';
import type { Settlement, TaskOutcome } from '../../core/outcome.js';
import { type EndOfCall, RESULT, resultOf } from '../outcome-columns.js';
import type { RemoteOrigin } from '../sql/batches.js';
import { UNOWNED } from '../sql/parts.js';
import { all, type Steps, together } from '../sql/steps.js';
import { storableInteger } from '../storable.js';
import type { RecordedProgress } from '../store.js';
import { columnsOf, Ledger, type ShareOfTask } from './ledger.js';
import { type ColumnRow, namesOf, rowsOf, toColumns } from './wire.js';

const RESULT_COLUMNS = columnsOf(RESULT);
const PACKED = { response_packed: 'bytea' } as const;
const STORED_COLUMNS = { ...RESULT_COLUMNS, ...PACKED };
const STORED = namesOf(STORED_COLUMNS);
const OUTCOME = {
  task_id: 'bigint',
  ordinal: 'bigint',
  token: 'text',
  state: 'text',
  failure_kind: 'text',
  attempts: 'bigint',
  delay_ms: 'bigint',
  is_throttled: 'bigint',
} as const;
const OR_REPLACE = `ON CONFLICT (task_id) DO UPDATE SET (${STORED}) = (${namesOf(STORED_COLUMNS, 'excluded.')})`;

/** One task's outcome, with the call that led to it. */
interface OutcomeOfCall {
  readonly call: EndOfCall | RemoteCall | null;
  readonly outcome: TaskOutcome;
}

export function* recordProgress(
  started: readonly CallStart[],
  settlements: readonly Settlement[],
): Steps<Omit<RecordedProgress, 'responseIds'>> {
  const ledger = new Ledger();
  const withdrawn: number[] = [];
  const ends: CallEnd[] = [];
  for (const { call } of settlements) {
    if (call === null) continue;
    if ('isWithdrawn' in call) withdrawn.push(call.callId);
    else ends.push(call);
  }
  const outcomes = settlements.flatMap(({ call, outcomes }) =>
    outcomes.map((outcome) => ({ call: call === null || 'isWithdrawn' in call ? null : call, outcome })),
  );
  // None waits for what another says: they are on their way together.
  const [callIds, , ended, settled] = yield* together(
    ledger.start(started),
    ledger.withdraw(withdrawn),
    ledger.end(ends),
    settleTasks(outcomes),
  );
  yield* ledger.share(settlements.flatMap((settlement) => sharesOf(settlement, ended)));
  yield* ledger.flush();
  return {
    callIds,
    lostTaskIds: outcomes.flatMap(({ outcome }, ordinal) => (settled.has(ordinal) ? [] : [outcome.taskId])),
  };
}

function sharesOf({ call, outcomes }: Settlement, ended: ReadonlySet<number>): ShareOfTask[] {
  if (call === null || outcomes.length < 2 || !ended.has(call.callId)) return [];
  const { callId } = call;
  return outcomes.flatMap(({ taskId, share }) => (share === null ? [] : [{ callId, taskId, share }]));
}

/** @returns which of them, by their place, had the lease that they name */
function* settleTasks(outcomes: readonly OutcomeOfCall[]): Steps<ReadonlySet<number>> {
  // Of two that name one lease the first has used it up.
  const named = new Set<string>();
  const leased = outcomes.flatMap(({ call, outcome }, ordinal) => {
    const lease = `${outcome.taskId} ${outcome.attemptToken}`;
    if (named.has(lease)) return [];
    named.add(lease);
    return [{ outcome, ordinal, result: resultOf(outcome, call) }];
  });
  if (leased.length === 0) return new Set();
  const settled = yield* all<{ ordinal: number }>(
    `WITH settled AS (
       UPDATE tasks SET state = outcome.state, failure_kind = outcome.failure_kind,
         attempts = tasks.attempts + outcome.attempts, not_before_ms = (SELECT now_ms()) + outcome.delay_ms,
         throttled_since_ms = CASE is_throttled WHEN 1 THEN coalesce(throttled_since_ms, (SELECT now_ms())) END, ${UNOWNED}
       FROM ${rowsOf({ ...OUTCOME, ...STORED_COLUMNS }, 'outcome')}
       WHERE tasks.id = outcome.task_id AND tasks.attempt_token = outcome.token AND tasks.state = 'in_progress'
       RETURNING outcome.*),
     stored AS (
       INSERT INTO results (task_id, ${STORED})
       SELECT task_id, ${STORED} FROM settled WHERE settled_at_ms IS NOT NULL ${OR_REPLACE})
     SELECT ordinal FROM settled`,
    ...toColumns(
      OUTCOME,
      leased.map(({ outcome, ordinal }) => ({
        ...stateOf(outcome),
        ...{ ordinal, task_id: outcome.taskId, token: outcome.attemptToken },
      })),
    ),
    ...toColumns(
      RESULT_COLUMNS,
      leased.map(({ result }) => result?.columns ?? {}),
    ),
    ...toColumns(
      PACKED,
      leased.map(({ result }) => ({ response_packed: result?.responsePacked })),
    ),
  );
  return new Set(settled.map(({ ordinal }) => ordinal));
}

function stateOf(outcome: TaskOutcome): ColumnRow<typeof OUTCOME> {
  switch (outcome.action) {
    case 'completed':
      return { state: 'completed', attempts: 1 };
    case 'failed':
      return { state: 'failed', failure_kind: outcome.error.kind, attempts: 1 };
    case 'retry':
      return { state: 'delayed', delay_ms: storableInteger(outcome.delayMs), attempts: 1 };
    case 'released': {
      const { delayMs, isThrottled } = outcome;
      const state = delayMs === null ? 'ready' : 'delayed';
      const delay = delayMs === null ? null : storableInteger(delayMs);
      return { state, delay_ms: delay, is_throttled: isThrottled ? 1 : 0, attempts: 0 };
    }
  }
}

/** Of tasks that a batch has. */
export function* settleRemote(origin: RemoteOrigin, settlements: readonly BatchSettlement[]): Steps<void> {
  const ledger = new Ledger();
  yield* ledger.addRemote(
    origin,
    settlements.flatMap(({ call, outcome }) => (call === null ? [] : [{ call, taskId: outcome.taskId }])),
  );
  yield* settleTasks(settlements);
  yield* ledger.flush();
}
