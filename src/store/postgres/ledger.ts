/**
 * The ledger: a row for every HTTP request and for each task in it, and the sums over them. What a transaction writes
 * goes in a few statements, each for all of its calls; sums are gathered meanwhile and stored once, by `flush`.
 */
import type { RemoteCall } from '../../core/batch-record.js';
import type { CallEnd, CallShare, CallStart } from '../../core/call.js';
import { type CallSums, LANE_SUMS, RUN_SUMS, sumsOf } from '../call-sums.js';
import { ENDING, endingColumns, type OutcomeColumn } from '../outcome-columns.js';
import type { RemoteOrigin } from '../sql/batches.js';
import type { LostCall } from '../sql/calls-underway.js';
import { idsIn } from '../sql/parts.js';
import { all, run, type Steps } from '../sql/steps.js';
import { storableCount, storableInteger, storableReal, storableText } from '../storable.js';
import { type Columns, namesOf, rowsOf, toColumns } from './wire.js';

/** Counts and moments are whole; latencies and costs are fractions. */
const TYPES: Readonly<Record<OutcomeColumn, 'bigint' | 'double precision' | 'text'>> = {
  ...{ http_status: 'bigint', kind: 'text', message: 'text', request_id: 'text', settled_at_ms: 'bigint' },
  ...{ input_tokens: 'bigint', output_tokens: 'bigint', cached_tokens: 'bigint', reasoning_tokens: 'bigint' },
  ...{ cost_micro_usd: 'double precision', latency_ms: 'double precision' },
  ...{ model: 'text', finish_reason: 'text', error_kind: 'text', error_message: 'text', error_code: 'text' },
  ...{ partial_output_json: 'text', output_json: 'text', details_json: 'text' },
};

export function columnsOf(names: readonly OutcomeColumn[]): Columns {
  return Object.fromEntries(names.map((name) => [name, TYPES[name]]));
}

const ASKED = { task_id: 'bigint', ordinal: 'bigint', token: 'text' } as const;
/** What is known of a call before it leaves. */
const START = {
  run_id: 'bigint',
  lane: 'text',
  started_at_ms: 'bigint',
  reserved_tokens: 'bigint',
  most_tokens: 'bigint',
  most_cost_micro_usd: 'double precision',
  worker_id: 'bigint',
} as const;
const AFTER_START = Object.keys(START).length + 1;
/** `number`: that of its call among those that are written with it, from 1 on. */
const TASK_OF_CALL = { number: 'bigint', task_id: 'bigint' } as const;
/** How a request ended. */
const ENDING_COLUMNS = columnsOf(ENDING);
const ENDED = { finished_at_ms: 'bigint', latency_ms: 'double precision', ...ENDING_COLUMNS } as const;
const END = { id: 'bigint', ...ENDED } as const;
const OF_REMOTE = {
  started_at_ms: 'bigint',
  finished_at_ms: 'bigint',
  most_tokens: 'bigint',
  most_cost_micro_usd: 'double precision',
  ...ENDING_COLUMNS,
} as const;
const REMOTE = { task_id: 'bigint', ...OF_REMOTE } as const;

interface CallRow extends LostCall {
  id: number;
  lane: string;
  /** 1: it had been given up, and so it ends for the second time. */
  lost: number;
}

export interface ShareOfTask {
  readonly callId: number;
  readonly taskId: number;
  readonly share: CallShare;
}

/** For one transaction. */
export class Ledger {
  readonly #added = new Map<number, CallSums>();

  /** @returns ids in the order of the calls; null where a task is not its worker's any more, who would pay for what others do */
  *start(calls: readonly CallStart[]): Steps<(number | null)[]> {
    if (calls.length === 0) return [];
    const owners = yield* this.#ownersOf(calls);
    const started = calls.flatMap((call, ordinal) => {
      const [workerId] = owners[ordinal] ?? [];
      return workerId === undefined ? [] : [{ call, ordinal, workerId }];
    });
    if (started.length === 0) return calls.map(() => null);
    const rows = yield* all<{ id: number }>(
      `WITH started AS MATERIALIZED (SELECT nextval('calls_id_seq') AS id, call.* FROM ${rowsOf(START, 'call')}),
       stored AS (INSERT INTO calls (id, ${namesOf(START)}) SELECT id, ${namesOf(START)} FROM started),
       their_tasks AS (
         INSERT INTO call_tasks (call_id, task_id) SELECT (ARRAY(SELECT id FROM started))[number::int], task_id
         FROM ${rowsOf(TASK_OF_CALL, 'task', AFTER_START)})
       SELECT id FROM started`,
      ...toColumns(
        START,
        started.map(({ call, workerId }) => ({
          run_id: call.runId,
          lane: call.lane,
          started_at_ms: storableInteger(call.startedAtMs),
          reserved_tokens: storableCount(call.reservedTokens),
          most_tokens: storableCount(call.mostTokens),
          most_cost_micro_usd: call.mostCostMicroUsd,
          worker_id: workerId,
        })),
      ),
      ...toColumns(
        TASK_OF_CALL,
        started.flatMap(({ call }, index) =>
          [...new Set(call.tasks.map(({ taskId }) => taskId))].map((taskId) => ({
            ...{ number: index + 1, task_id: taskId },
          })),
        ),
      ),
    );
    for (const { call } of started) {
      const added = this.#addedTo(call.runId);
      added.made(storableText(call.lane), 1);
      added.seen(storableInteger(call.startedAtMs));
    }
    const ids = new Map(started.map(({ ordinal }, index) => [ordinal, rows[index]?.id]));
    return calls.map((_, ordinal) => ids.get(ordinal) ?? null);
  }

  /** Workers of the tasks of each call, locked against those that would take them for dead; none where a task is lost. */
  *#ownersOf(calls: readonly CallStart[]): Steps<readonly number[][]> {
    const asked = calls.flatMap(({ tasks }, ordinal) =>
      tasks.map(({ taskId, attemptToken }) => ({ ordinal, task_id: taskId, token: attemptToken })),
    );
    const owned = yield* all<{ ordinal: number; worker_id: number }>(
      `WITH owned AS MATERIALIZED (
         SELECT ordinal, worker_id FROM ${rowsOf(ASKED, 'asked')}
         JOIN tasks ON tasks.id = task_id AND attempt_token = token),
       alive AS (SELECT id FROM workers WHERE id IN (SELECT worker_id FROM owned) FOR KEY SHARE)
       SELECT ordinal, worker_id FROM owned JOIN alive ON alive.id = worker_id`,
      ...toColumns(ASKED, asked),
    );
    const owners = calls.map((): number[] => []);
    for (const { ordinal, worker_id } of owned) owners[ordinal]?.push(worker_id);
    return owners.map((own, ordinal) => (own.length === calls[ordinal]?.tasks.length ? own : []));
  }

  /**
   * A call that a rescue had given up as lost gets its figures all the same: it may have been billed. One that
   * has ended already keeps what it has, so that a repeated `record` counts nothing twice.
   * @returns the ids of those that have ended only now
   */
  *end(calls: readonly CallEnd[]): Steps<ReadonlySet<number>> {
    if (calls.length === 0) return new Set();
    // Of two that end one call the first does. All lock calls by ascending number.
    const first = new Map([...calls].reverse().map((call) => [call.callId, call]));
    const ends = [...first.values()].sort((one, other) => one.callId - other.callId);
    const ended = yield* all<CallRow>(
      `UPDATE calls SET worker_id = NULL, (${namesOf(ENDED)}) = (${namesOf(ENDED, 'ended.')})
       FROM ${rowsOf(END, 'ended')}
       WHERE calls.id = ended.id AND (calls.finished_at_ms IS NULL OR (lost = 1 AND calls.latency_ms IS NULL))
       RETURNING calls.id, run_id, lane, lost, most_tokens, most_cost_micro_usd`,
      ...toColumns(
        END,
        ends.map((call) => ({
          ...endingColumns(call),
          id: call.callId,
          finished_at_ms: storableInteger(call.finishedAtMs),
          latency_ms: storableReal(call.latencyMs),
        })),
      ),
    );
    for (const row of ended) {
      const call = first.get(row.id);
      if (call !== undefined) this.#addedTo(row.run_id).end(row.lane, call, row, row.lost === 1);
    }
    return new Set(ended.map(({ id }) => id));
  }

  /** Requests that were worked off in a batch. */
  *addRemote(
    { runId, lane, batchId }: RemoteOrigin,
    calls: readonly { readonly call: RemoteCall; readonly taskId: number }[],
  ): Steps<void> {
    if (calls.length === 0) return;
    yield* run(
      `WITH ended AS MATERIALIZED (
         SELECT nextval('calls_id_seq') AS id, call.* FROM ${rowsOf(REMOTE, 'call', 4)}),
       their_tasks AS (INSERT INTO call_tasks (call_id, task_id) SELECT id, task_id FROM ended)
       INSERT INTO calls (id, run_id, lane, remote_batch_id, reserved_tokens, ${namesOf(OF_REMOTE)})
       SELECT id, $1, $2, $3, 0, ${namesOf(OF_REMOTE)} FROM ended`,
      runId,
      lane,
      batchId,
      ...toColumns(
        REMOTE,
        calls.map(({ call, taskId }) => ({
          ...endingColumns(call),
          task_id: taskId,
          started_at_ms: storableInteger(call.startedAtMs),
          finished_at_ms: storableInteger(call.finishedAtMs),
          most_tokens: storableCount(call.mostTokens),
          most_cost_micro_usd: call.mostCostMicroUsd,
        })),
      ),
    );
    const added = this.#addedTo(runId);
    for (const { call } of calls) {
      const most_tokens = storableCount(call.mostTokens);
      added.workedOff(lane, call, { most_tokens, most_cost_micro_usd: call.mostCostMicroUsd });
    }
  }

  /** Takes back calls that have not left; what a rescue gave up as lost in the meantime stays. */
  *withdraw(callIds: readonly number[]): Steps<void> {
    if (callIds.length === 0) return;
    const rows = yield* all<{ run_id: number; lane: string }>(
      `WITH withdrawn AS (
         DELETE FROM calls WHERE id IN ${idsIn('$1')} AND finished_at_ms IS NULL
         RETURNING id, run_id, lane),
       their_tasks AS (DELETE FROM call_tasks WHERE call_id IN (SELECT id FROM withdrawn))
       SELECT run_id, lane FROM withdrawn`,
      callIds,
    );
    for (const { run_id, lane } of rows) this.#addedTo(run_id).made(lane, -1);
  }

  /** Notes what tasks of calls with several take of their bills. */
  *share(shares: readonly ShareOfTask[]): Steps<void> {
    if (shares.length === 0) return;
    yield* run(
      `UPDATE call_tasks SET input_tokens = shared.input_tokens, output_tokens = shared.output_tokens,
         cost_micro_usd = shared.cost_micro_usd
       FROM json_to_recordset($1) AS shared (call_id bigint, task_id bigint, input_tokens bigint, output_tokens bigint,
         cost_micro_usd double precision)
       WHERE call_tasks.call_id = shared.call_id AND call_tasks.task_id = shared.task_id`,
      shares.map(({ callId, taskId, share: { usage, costMicroUsd } }) => ({
        call_id: callId,
        task_id: taskId,
        input_tokens: usage === null ? null : storableCount(usage.inputTokens),
        output_tokens: usage === null ? null : storableCount(usage.outputTokens),
        cost_micro_usd: costMicroUsd,
      })),
    );
  }

  lose(calls: readonly LostCall[]): void {
    for (const call of calls) this.#addedTo(call.run_id).lose(call);
  }

  /** Adds what was gathered to the stored sums. */
  *flush(): Steps<void> {
    if (this.#added.size === 0) return;
    const runs = [...this.#added].sort(([one], [other]) => one - other);
    const sums = runs.map(([runId, { run, firstAtMs, lastAtMs }]) => ({
      ...{ run_id: runId, first_call_at_ms: firstAtMs, last_call_at_ms: lastAtMs },
      ...run,
    }));
    const lanes = runs.flatMap(([runId, added]) =>
      [...added.lanes].map(([lane, laneSums]) => ({ run_id: runId, lane, ...laneSums })),
    );
    const buckets = runs.flatMap(([runId, { latencyBuckets }]) =>
      [...latencyBuckets].map(([bucket, calls]) => ({ run_id: runId, bucket, calls })),
    );
    yield* run(FLUSH, sums, lanes, buckets);
  }

  #addedTo(runId: number): CallSums {
    return sumsOf(this.#added, runId);
  }
}

function addingTo(columns: readonly string[]): string {
  return columns.map((column) => `${column} = kept.${column} + excluded.${column}`).join(', ');
}

function typed(columns: readonly string[]): string {
  return columns
    .map((column) => `${column} ${/_ms$|_usd$/.test(column) ? 'double precision' : 'bigint'}`)
    .join(', ');
}

const FLUSH = `WITH of_runs AS (
  INSERT INTO run_totals AS kept (run_id, shard, ${RUN_SUMS.join(', ')}, first_call_at_ms, last_call_at_ms)
  SELECT run_id, shard(), ${RUN_SUMS.join(', ')}, first_call_at_ms, last_call_at_ms
  FROM json_to_recordset($1) AS added (run_id bigint, ${typed(RUN_SUMS)}, first_call_at_ms bigint, last_call_at_ms bigint)
  ORDER BY run_id
  ON CONFLICT (run_id, shard) DO UPDATE SET ${addingTo(RUN_SUMS)},
    first_call_at_ms = least(kept.first_call_at_ms, excluded.first_call_at_ms),
    last_call_at_ms = greatest(kept.last_call_at_ms, excluded.last_call_at_ms)),
of_lanes AS (
  INSERT INTO lane_totals AS kept (run_id, lane, shard, ${LANE_SUMS.join(', ')})
  SELECT run_id, lane, shard(), ${LANE_SUMS.join(', ')}
  FROM json_to_recordset($2) AS added (run_id bigint, lane text, ${typed(LANE_SUMS)})
  ORDER BY run_id, lane
  ON CONFLICT (run_id, lane, shard) DO UPDATE SET ${addingTo(LANE_SUMS)})
INSERT INTO latency_buckets AS kept (run_id, bucket, shard, calls)
SELECT run_id, bucket, shard(), calls FROM json_to_recordset($3) AS added (run_id bigint, bucket integer, calls bigint)
ORDER BY run_id, bucket
ON CONFLICT (run_id, bucket, shard) DO UPDATE SET calls = kept.calls + excluded.calls`;

/** By itself, with nothing else that is gathered. */
export function* sumLost(calls: readonly LostCall[]): Steps<void> {
  const ledger = new Ledger();
  ledger.lose(calls);
  yield* ledger.flush();
}
