/** Everything `status` shows, from sums and counters: the cost does not grow with the run. */
import type Database from 'better-sqlite3';
import type { RunSummary } from '../../core/run-summary.js';
import type { LatencyBucket } from '../latency-buckets.js';
import { runMissing } from '../run-errors.js';
import { type CountRow, type LaneSumsRow, type RunSumsRow, toRunSummary } from '../summary-rows.js';

export class Summary {
  readonly #totals;
  readonly #lanes;
  readonly #counts;
  readonly #latencies;

  constructor(database: Database.Database) {
    this.#totals = database.prepare<[number], RunSumsRow>(
      `SELECT run_totals.* FROM run_totals JOIN runs ON runs.id = run_id WHERE run_id = ? AND deleted = 0`,
    );
    this.#lanes = database.prepare<[number], LaneSumsRow>(
      'SELECT * FROM lane_totals WHERE run_id = ? ORDER BY lane',
    );
    this.#counts = database.prepare<[number], CountRow>(
      'SELECT state, kind, tasks FROM task_counts WHERE run_id = ? AND tasks > 0',
    );
    this.#latencies = database.prepare<[number], LatencyBucket>(
      'SELECT bucket, calls FROM latency_buckets WHERE run_id = ? ORDER BY bucket',
    );
  }

  of(runId: number): RunSummary {
    const totals = this.#totals.get(runId);
    if (totals === undefined) throw runMissing(runId);
    return toRunSummary(totals, this.#lanes.all(runId), this.#counts.all(runId), this.#latencies.all(runId));
  }
}
