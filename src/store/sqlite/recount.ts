/** Every count and sum that is kept, against the rows themselves: reads all tasks and calls, 2 s at a million. */
import type Database from 'better-sqlite3';
import { GAVE_UP_STATUSES } from '../../core/usage.js';
import type { CountDifference } from '../maintenance.js';

/** As `doubtOf` says. */
const IN_DOUBT = `finished_at_ms IS NOT NULL AND input_tokens IS NULL
  AND (http_status IS NULL OR http_status IN (${GAVE_UP_STATUSES.join(', ')}))`;
const WITHOUT_USAGE = 'finished_at_ms IS NOT NULL AND input_tokens IS NULL AND http_status < 300';
const WITHOUT_COST = 'cost_micro_usd IS NULL AND coalesce(input_tokens, 0) + coalesce(output_tokens, 0) > 0';

/** What is kept for a run, and for a lane of it, with how it is counted from its calls. */
const CALL_SUMS: readonly (readonly [column: string, counted: string])[] = [
  ['calls_made', 'count(*)'],
  ['calls_ended', 'count(finished_at_ms)'],
  ['calls_failed', `total(kind IS NOT NULL AND kind <> 'aborted')`],
  ['calls_throttled', `total(kind = 'rate_limited')`],
  ['calls_lost', 'total(lost)'],
  ['calls_answered', 'total(kind IS NULL AND latency_ms IS NOT NULL)'],
  ['calls_without_cost', `total(${WITHOUT_COST})`],
  ['calls_in_doubt', `total(${IN_DOUBT})`],
  ['calls_without_usage', `total(${WITHOUT_USAGE})`],
  ['tokens_in_doubt', `total(iif(${IN_DOUBT} OR ${WITHOUT_USAGE}, most_tokens, 0))`],
  [
    'cost_in_doubt_micro_usd',
    `total(iif(${IN_DOUBT} OR ${WITHOUT_USAGE} OR ${WITHOUT_COST}, most_cost_micro_usd, 0))`,
  ],
  ['cost_micro_usd', 'total(cost_micro_usd)'],
  ['input_tokens', 'total(input_tokens)'],
  ['output_tokens', 'total(output_tokens)'],
  ['cached_tokens', 'total(cached_tokens)'],
  ['reasoning_tokens', 'total(reasoning_tokens)'],
];

/** Costs are sums of fractions, added up in another order. */
const RELATIVE_TOLERANCE = 1e-9;

type SumsRow = { run_id: number; lane?: string } & Record<string, number>;

export class Recount {
  readonly #runs;
  readonly #tasksKept;
  readonly #tasksCounted;
  readonly #runSumsKept;
  readonly #laneSumsKept;
  readonly #laneSumsCounted;
  /** Runs whose calls are removed when they are old: their sums are of more than is there. */
  readonly #forgetful;
  readonly #latencies;
  /** What there must be none of. */
  readonly #faults: readonly (readonly [what: string, Database.Statement<[], CountRow>])[];

  constructor(database: Database.Database) {
    this.#runs = database.prepare<[], { id: number; name: string }>(
      'SELECT id, name FROM runs WHERE deleted = 0',
    );
    this.#tasksKept = database.prepare<[], CountRow>(
      `SELECT run_id, trim(state || ' ' || kind) AS what, tasks AS count FROM task_counts WHERE tasks <> 0`,
    );
    this.#tasksCounted = database.prepare<[], CountRow>(
      `SELECT run_id, iif(gone, 'gone', trim(state || ' ' || coalesce(failure_kind, shared_from, ''))) AS what,
         count(*) AS count FROM tasks GROUP BY 1, 2`,
    );
    this.#runSumsKept = database.prepare<[], SumsRow>('SELECT * FROM run_totals');
    this.#laneSumsKept = database.prepare<[], SumsRow>('SELECT * FROM lane_totals');
    this.#laneSumsCounted = database.prepare<[], SumsRow>(
      `SELECT run_id, lane, ${CALL_SUMS.map(([column, counted]) => `${counted} AS ${column}`).join(', ')}
       FROM calls GROUP BY run_id, lane`,
    );
    this.#forgetful = database
      .prepare<[], number>('SELECT run_id FROM served_runs WHERE is_bulk = 0')
      .pluck();
    this.#latencies = database.prepare<[], CountRow>(
      `SELECT run_id, '' AS what, sum(calls) AS count FROM latency_buckets GROUP BY 1`,
    );
    this.#faults = [
      [
        'documents that are settled and have no result',
        database.prepare<[], CountRow>(
          `SELECT run_id, '' AS what, count(*) AS count FROM tasks LEFT JOIN results ON task_id = tasks.id
           WHERE state IN ('completed', 'failed') AND task_id IS NULL GROUP BY 1`,
        ),
      ],
      [
        'documents that have a result and are not settled',
        database.prepare<[], CountRow>(
          `SELECT run_id, '' AS what, count(*) AS count FROM results JOIN tasks ON tasks.id = task_id
           WHERE state NOT IN ('completed', 'failed') GROUP BY 1`,
        ),
      ],
      [
        'documents that a batch has which is done with',
        database.prepare<[], CountRow>(
          `SELECT tasks.run_id, '' AS what, count(*) AS count FROM tasks LEFT JOIN remote_batches AS batch
             ON batch.id = remote_batch_id
           WHERE remote_batch_id IS NOT NULL AND coalesce(batch.state, 'settled') = 'settled' GROUP BY 1`,
        ),
      ],
      [
        'calls whose shares do not add up to their bill',
        database.prepare<[], CountRow>(
          `SELECT run_id, '' AS what, count(*) AS count FROM calls JOIN (
             SELECT call_id, total(input_tokens) AS input, total(output_tokens) AS output, total(cost_micro_usd) AS cost
             FROM call_tasks WHERE coalesce(input_tokens, cost_micro_usd) IS NOT NULL GROUP BY call_id) ON call_id = id
           WHERE input <> coalesce(input_tokens, 0) OR output <> coalesce(output_tokens, 0)
             OR abs(cost - coalesce(cost_micro_usd, 0)) > ${RELATIVE_TOLERANCE} * cost GROUP BY 1`,
        ),
      ],
    ];
  }

  differences(): CountDifference[] {
    const found = new Differences(this.#runs.all());
    const tasks = countsByName(this.#tasksKept.all());
    for (const [name, [runId, what, counted]] of countsByName(this.#tasksCounted.all())) {
      found.compare(runId, `${what} documents`, tasks.get(name)?.[2] ?? 0, counted);
      tasks.delete(name);
    }
    for (const [runId, what, kept] of tasks.values()) found.compare(runId, `${what} documents`, kept, 0);
    this.#compareCalls(found);
    for (const [what, statement] of this.#faults) {
      for (const { run_id, count } of statement.all()) found.compare(run_id, what, 0, count);
    }
    return found.all;
  }

  #compareCalls(found: Differences): void {
    const forgetful = new Set(this.#forgetful.all());
    const isWhole = ({ run_id }: SumsRow): boolean => !forgetful.has(run_id);
    const lanes = new Map(
      this.#laneSumsKept
        .all()
        .filter(isWhole)
        .map((row) => [nameOf(row.run_id, row.lane ?? ''), row]),
    );
    const runs = new Map<number, SumsRow>();
    for (const counted of this.#laneSumsCounted.all().filter(isWhole)) {
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
    const latencies = new Map(this.#latencies.all().map(({ run_id, count }) => [run_id, count]));
    for (const kept of this.#runSumsKept.all().filter(isWhole)) {
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
