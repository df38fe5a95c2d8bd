/** Everything a report tells, read from the store. */
import type { Clock } from '../core/clock.js';
import type { RunRecord } from '../core/run.js';
import type { LatencyCount, RunTimeline } from '../core/timeline.js';
import { type FailureGroup, readFailures } from '../runs/failure-groups.js';
import { inspectRun, type RunInspection } from '../runs/inspect-run.js';
import type { Store } from '../store/store.js';

export interface ReportFacts {
  readonly inspection: RunInspection;
  /** Null before the first call. */
  readonly timeline: RunTimeline | null;
  readonly latencies: readonly LatencyCount[];
  /** The largest first. */
  readonly failures: readonly FailureGroup[];
}

/** As many stretches of time as a chart can show and a table behind it can bear. */
const MOST_BUCKETS = 120;

export async function readReportFacts(store: Store, run: RunRecord, clock: Clock): Promise<ReportFacts> {
  return {
    inspection: await inspectRun(store, run, clock),
    timeline: await store.readTimeline(run.id, MOST_BUCKETS),
    latencies: await store.readLatencies(run.id),
    failures: await readFailures(store, run.id),
  };
}
