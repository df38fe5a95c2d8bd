/**
 * Every count and sum that is kept, against the rows themselves: reads all tasks and calls, 2 s at a million. The
 * statements are such that every backend understands them.
 */
import { GAVE_UP_STATUSES } from '../../core/usage.js';
import type { CountDifference } from '../maintenance.js';

/** As `doubtOf` says. */
const IN_DOUBT = `finished_at_ms IS NOT NULL AND input_tokens IS NULL
  AND (http_status IS NULL OR http_status IN (${GAVE_UP_STATUSES.join(', ')}))`;
const WITHOUT_USAGE = 'finished_at_ms IS NOT NULL AND input_tokens IS NULL AND http_status < 300';
const WITHOUT_COST = 'cost_micro_usd IS NULL AND coalesce(input_tokens, 0) + coalesce(output_tokens, 0) > 0';

/** As a fraction, which no sum is too large for. */
function total(column: string, where = 'true'): string {
  return `coalesce(sum(1.0 * ${column}) FILTER (WHERE ${where}), 0)`;
}

function counted(where: string): string {
  return `count(*) FILTER (WHERE ${where})`;
}

/** What is kept for a run, and for a lane of it, with how it is counted from its calls. */
const CALL_SUMS: readonly (readonly [column: string, counted: string])[] = [
  ['calls_made', 'count(*)'],
  ['calls_ended', 'count(finished_at_ms)'],
  ['calls_failed', counted(`kind IS NOT NULL AND kind <> 'aborted'`)],
  ['calls_throttled', counted(`kind = 'rate_limited'`)],
  ['calls_lost', total('lost')],
  ['calls_late', counted('lost = 1 AND kind IS NULL AND latency_ms IS NOT NULL')],
  ['calls_answered', counted('kind IS NULL AND latency_ms IS NOT NULL')],
  ['calls_without_cost', counted(WITHOUT_COST)],
  ['calls_in_doubt', counted(IN_DOUBT)],
  ['calls_without_usage', counted(WITHOUT_USAGE)],
  ['tokens_in_doubt', total('most_tokens', `${IN_DOUBT} OR ${WITHOUT_USAGE}`)],
  [
    'cost_in_doubt_micro_usd',
    total('most_cost_micro_usd', `${IN_DOUBT} OR ${WITHOUT_USAGE} OR ${WITHOUT_COST}`),
  ],
  ['cost_micro_usd', total('cost_micro_usd')],
  ['input_tokens', total('input_tokens')],
  ['output_tokens', total('output_tokens')],
  ['cached_tokens', total('cached_tokens')],
  ['reasoning_tokens', total('reasoning_tokens')],
];

/** Costs are sums of fractions, added up in another order. */
const RELATIVE_TOLERANCE = 1e-9;

type SumsRow = { run_id: number; lane?: string } & Record<string, number>;

/** What there must be none of, by run. */
const FAULTS = {
  'documents that are settled and have no result': `
    SELECT run_id, '' AS what, count(*) AS count FROM tasks LEFT JOIN results ON task_id = tasks.id
    WHERE state IN ('completed', 'failed') AND task_id IS NULL GROUP BY run_id`,
  'documents that have a result and are not settled': `
    SELECT run_id, '' AS what, count(*) AS count FROM results JOIN tasks ON tasks.id = task_id
    WHERE state NOT IN ('completed', 'failed') GROUP BY run_id`,
  'documents that a batch has which is done with': `
    SELECT tasks.run_id, '' AS what, count(*) AS count FROM tasks LEFT JOIN remote_batches AS batch
      ON batch.id = remote_batch_id
    WHERE remote_batch_id IS NOT NULL AND coalesce(batch.state, 'settled') = 'settled' GROUP BY tasks.run_id`,
  'calls whose shares do not add up to their bill': `
    SELECT run_id, '' AS what, count(*) AS count FROM calls JOIN (
      SELECT call_id, ${total('input_tokens')} AS input, ${total('output_tokens')} AS output,
        ${total('cost_micro_usd')} AS cost
      FROM call_tasks WHERE coalesce(input_tokens, cost_micro_usd) IS NOT NULL GROUP BY call_id) AS shares
      ON call_id = id
    WHERE input <> coalesce(input_tokens, 0) OR output <> coalesce(output_tokens, 0)
      OR abs(cost - coalesce(cost_micro_usd, 0)) > ${RELATIVE_TOLERANCE} * cost GROUP BY run_id`,
} as const;

/** What a recount asks for. Sums that a backend keeps in several rows may come in several. */
export const RECOUNT = {
  runs: 'SELECT id, name FROM runs WHERE deleted = 0',
  tasksKept: `SELECT run_id, trim(state || ' ' || kind) AS what, sum(tasks) AS count FROM task_counts
    GROUP BY run_id, state, kind HAVING sum(tasks) <> 0`,
  tasksCounted: `SELECT run_id, what, count(*) AS count FROM (
      SELECT run_id, CASE gone WHEN 1 THEN 'gone' ELSE trim(state || ' ' || coalesce(failure_kind, shared_from, '')) END
        AS what FROM tasks) AS named GROUP BY run_id, what`,
  runSumsKept: 'SELECT * FROM run_totals',
  laneSumsKept: 'SELECT * FROM lane_totals',
  laneSumsCounted: `SELECT run_id, lane, ${CALL_SUMS.map(([column, counted]) => `${counted} AS ${column}`).join(', ')}
    FROM calls GROUP BY run_id, lane`,
  /** Runs whose calls are removed when they are old: their sums are of more than is there. */
  forgetful: 'SELECT run_id FROM served_runs WHERE is_bulk = 0',
  latencies: `SELECT run_id, '' AS what, sum(calls) AS count FROM latency_buckets GROUP BY run_id`,
  ...FAULTS,
} as const;

/** Rows for each of the questions. */
export type Recounted = Readonly<Record<keyof typeof RECOUNT, readonly object[]>>;

export function countDifferences(rows: Recounted): CountDifference[] {
  const found = new Differences(rows.runs as { id: number; name: string }[]);
  const tasks = countsByName(rows.tasksKept as CountRow[]);
  for (const [name, [runId, what, counted]] of countsByName(rows.tasksCounted as CountRow[])) {
    found.compare(runId, `${what} documents`, tasks.get(name)?.[2] ?? 0, counted);
    tasks.delete(name);
  }
  for (const [runId, what, kept] of tasks.values()) found.compare(runId, `${what} documents`, kept, 0);
  compareCalls(rows, found);
  for (const what of Object.keys(FAULTS) as (keyof typeof FAULTS)[]) {
    for (const { run_id, count } of rows[what] as CountRow[]) found.compare(run_id, what, 0, count);
  }
  return found.all;
}

function compareCalls(rows: Recounted, found: Differences): void {
  const forgetful = new Set((rows.forgetful as { run_id: number }[]).map(({ run_id }) => run_id));
  const whole = (sums: readonly object[]): SumsRow[] =>
    (sums as SumsRow[]).filter(({ run_id }) => !forgetful.has(run_id));
  const lanes = sumsByName(whole(rows.laneSumsKept));
  const runs = new Map<number, SumsRow>();
  for (const counted of whole(rows.laneSumsCounted)) {
    const { run_id: runId, lane = '' } = counted;
    const kept = lanes.get(nameOf(runId, lane));
    lanes.delete(nameOf(runId, lane));
    const sums = runs.get(runId) ?? ({ run_id: runId } as SumsRow);
    runs.set(runId, sums);
    for (const [column] of CALL_SUMS) {
      sums[column] = (sums[column] ?? 0) + (counted[column] ?? 0);
      if (kept === undefined || kept[column] !== undefined) {
        found.compare(runId, `${words(column)} of lane ${lane}`, kept?.[column] ?? 0, counted[column] ?? 0);
      }
    }
  }
  for (const { run_id, lane = '', calls_made = 0 } of lanes.values()) {
    found.compare(run_id, `calls made of lane ${lane}`, calls_made, 0);
  }
  const latencies = new Map((rows.latencies as CountRow[]).map(({ run_id, count }) => [run_id, count]));
  const ofRuns = sumsByName(whole(rows.runSumsKept));
  for (const { run_id, calls_made = 0 } of runs.values()) {
    if (!ofRuns.has(nameOf(run_id, ''))) found.compare(run_id, words('calls_made'), 0, calls_made);
  }
  for (const kept of ofRuns.values()) {
    const counted = runs.get(kept.run_id);
    for (const [column] of CALL_SUMS) {
      if (kept[column] !== undefined) {
        found.compare(kept.run_id, words(column), kept[column], counted?.[column] ?? 0);
      }
    }
    found.compare(
      kept.run_id,
      'latencies',
      latencies.get(kept.run_id) ?? 0,
      counted?.['calls_answered'] ?? 0,
    );
  }
}

interface CountRow {
  run_id: number;
  what: string;
  count: number;
}

class Differences {
  readonly all: CountDifference[] = [];
  readonly #runNames: ReadonlyMap<number, string>;

  constructor(runs: readonly { id: number; name: string }[]) {
    this.#runNames = new Map(runs.map(({ id, name }) => [id, name]));
  }

  /** Rows of deleted runs are on their way out. */
  compare(runId: number, what: string, kept: number, recounted: number): void {
    const runName = this.#runNames.get(runId);
    if (runName === undefined) return;
    if (Math.abs(kept - recounted) <= RELATIVE_TOLERANCE * Math.abs(kept)) return;
    this.all.push({ runName, what, kept, recounted });
  }
}

function countsByName(
  rows: readonly CountRow[],
): Map<string, readonly [runId: number, what: string, count: number]> {
  return new Map(rows.map(({ run_id, what, count }) => [nameOf(run_id, what), [run_id, what, count]]));
}

function nameOf(runId: number, what: string): string {
  return `${runId} ${what}`;
}

function words(column: string): string {
  return column.replaceAll('_', ' ');
}

/** Rows of one run, and of one lane of it, added up. */
function sumsByName(rows: readonly SumsRow[]): Map<string, SumsRow> {
  const sums = new Map<string, SumsRow>();
  for (const row of rows) {
    const name = nameOf(row.run_id, row.lane ?? '');
    const sum = sums.get(name);
    if (sum === undefined) sums.set(name, { ...row });
    else
      for (const [column] of CALL_SUMS)
        if (column in row) sum[column] = (sum[column] ?? 0) + (row[column] ?? 0);
  }
  return sums;
}
