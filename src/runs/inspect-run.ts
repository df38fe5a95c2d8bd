/** What `status` tells of a run: its summary, who drains it, how fast it goes and when it will be done. */
import type { Clock } from '../core/clock.js';
import type { RunRecord, RunSummary, Store, StoreOwner } from '../store/store.js';
import { lanesOf, settingsOfRun } from './run-settings.js';

export interface RunInspection {
  readonly run: RunRecord;
  readonly summary: RunSummary;
  /** The process that drains this very run, null when none does. */
  readonly owner: StoreOwner | null;
  readonly nowMs: number;
  /** Of the last 60 seconds. */
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
  /** As given for each lane, over all lanes; null where none was given. */
  readonly requestsPerMinuteLimit: number | null;
  readonly tokensPerMinuteLimit: number | null;
  readonly etaMs: number | null;
}

const MINUTE_MS = 60_000;

export async function inspectRun(store: Store, run: RunRecord, clock: Clock): Promise<RunInspection> {
  const nowMs = clock.now();
  const summary = await store.summarizeRun(run.id);
  const owner = await store.readOwner();
  const drains = owner !== null && owner.runName === run.name ? owner : null;
  const recent = await store.readRecentCalls(nowMs - MINUTE_MS);
  const lanes = lanesOf(settingsOfRun(run));
  return {
    run,
    summary,
    owner: drains,
    nowMs,
    requestsPerMinute: recent.length,
    tokensPerMinute: recent.reduce((sum, call) => sum + call.tokens, 0),
    requestsPerMinuteLimit: sumOfKnown(lanes.map((lane) => lane.rpm)),
    tokensPerMinuteLimit: sumOfKnown(lanes.map((lane) => lane.tpm)),
    etaMs: drains === null ? null : etaMs(summary, drains, recent.length, nowMs),
  };
}

/** From the calls of the last minute, or of the time since the drain began where that is shorter. */
function etaMs(summary: RunSummary, owner: StoreOwner, recentCalls: number, nowMs: number): number | null {
  const { ready, delayed, in_progress } = summary.counts;
  const spanMs = Math.min(MINUTE_MS, nowMs - owner.sinceMs);
  if (recentCalls < 5 || spanMs <= 0) return null;
  return ((ready + delayed + in_progress) / recentCalls) * spanMs;
}

/** Null where any lane's limit is unknown: a part of the whole would mislead. */
export function sumOfKnown(limits: readonly (number | null)[]): number | null {
  let total = 0;
  for (const limit of limits) {
    if (limit === null) return null;
    total += limit;
  }
  return total;
}
