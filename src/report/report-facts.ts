/** Everything a report tells, read from the store. */
import type { Clock } from '../core/clock.js';
import type { RunRecord } from '../core/run.js';
import type { LatencyCount, RunTimeline } from '../core/timeline.js';
import { inspectRun, type RunInspection } from '../runs/inspect-run.js';
import type { Store } from '../store/store.js';
import { type FailureGroup, FailureGrouping } from '../ui/failures-page.js';

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
const PAGE_ROWS = 1_000;

export async function readReportFacts(store: Store, run: RunRecord, clock: Clock): Promise<ReportFacts> {
  return {
    inspection: await inspectRun(store, run, clock),
    timeline: await store.readTimeline(run.id, MOST_BUCKETS),
    latencies: await store.readLatencies(run.id),
    failures: await readFailures(store, run.id),
  };
}

async function readFailures(store: Store, runId: number): Promise<FailureGroup[]> {
  const grouping = new FailureGrouping();
  let afterLine = 0;
  for (;;) {
    const rows = await store.readResults({
      runId,
      only: 'failed',
      afterLine,
      limit: PAGE_ROWS,
      includeBody: false,
    });
    const last = rows.at(-1);
    if (last === undefined) return grouping.groups();
    grouping.add(rows);
    afterLine = last.line;
  }
}
