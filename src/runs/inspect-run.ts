/** What `status` tells of a run: its summary, who drains it, how fast it goes and when it will be done. */
import type { BatchRecord } from '../core/batch-record.js';
import type { Clock } from '../core/clock.js';
import type { RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import type { Store, StoreOwner } from '../store/store.js';
import { observationsOf, type RunObservations } from './run-observations.js';
import { lanesOf, settingsOfRun } from './run-settings.js';
import { type MinuteUse, sumOfKnown, timeLeftMs } from './time-left.js';

/** `outages` are told only while the run is being drained. */
export interface RunInspection extends RunObservations {
  readonly run: RunRecord;
  readonly summary: RunSummary;
  /** Remote batches, settled or not. */
  readonly batches: readonly BatchRecord[];
  /** Background responses that are not settled, the oldest first. */
  readonly responses: readonly BatchRecord[];
  /** The process that drains this very run, null when none does. */
  readonly owner: StoreOwner | null;
  readonly nowMs: number;
  /** Of the last 60 seconds. */
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
  /** In force over all lanes, the lower of what was given and what was learnt; null where a lane's is unknown. */
  readonly requestsPerMinuteLimit: number | null;
  readonly tokensPerMinuteLimit: number | null;
  readonly etaMs: number | null;
}

const MINUTE_MS = 60_000;

export async function inspectRun(store: Store, run: RunRecord, clock: Clock): Promise<RunInspection> {
  const nowMs = clock.now();
  const summary = await store.summarizeRun(run.id);
  const owner = await store.readOwner(run.name);
  const drains = owner !== null && owner.runName === run.name ? owner : null;
  const recent = await store.readRecentCalls(MINUTE_MS);
  const observed = observationsOf(run);
  const outages = drains === null ? [] : observed.outages;
  const lanes = lanesOf(settingsOfRun(run)).map((lane) => {
    const learnt = observed.learntLimits.find((limit) => limit.lane === lane.name);
    return {
      rpm: lower(lane.rpm, learnt?.requestsPerMinute ?? null),
      tpm: lower(lane.tpm, learnt?.tokensPerMinute ?? null),
    };
  });
  const minute: MinuteUse = {
    requests: recent.length,
    tokens: recent.reduce((sum, call) => sum + call.tokens, 0),
    requestLimit: sumOfKnown(lanes.map((lane) => lane.rpm)),
    tokenLimit: sumOfKnown(lanes.map((lane) => lane.tpm)),
  };
  const { ready, delayed, in_progress } = summary.counts;
  const atProviders = await store.remote.list(run.id);
  return {
    ...observed,
    batches: atProviders.filter(({ kind }) => kind === 'batch'),
    responses: atProviders.filter(({ kind, state }) => kind === 'response' && state !== 'settled'),
    run,
    summary,
    owner: drains,
    nowMs,
    requestsPerMinute: minute.requests,
    tokensPerMinute: minute.tokens,
    outages,
    requestsPerMinuteLimit: minute.requestLimit,
    tokensPerMinuteLimit: minute.tokenLimit,
    // How long a server stays away nobody knows.
    etaMs:
      drains === null || outages.length === lanes.length
        ? null
        : timeLeftMs({
            settled: recent.length,
            // The time since the drain began where that is shorter.
            overMs: Math.min(MINUTE_MS, nowMs - drains.sinceMs),
            left: ready - summary.shared.waiting + delayed + in_progress,
            minute,
          }),
  };
}

function lower(given: number | null, learnt: number | null): number | null {
  return given === null || learnt === null ? (given ?? learnt) : Math.min(given, learnt);
}
