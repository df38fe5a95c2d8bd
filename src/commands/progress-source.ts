/** Fills in the snapshot that the progress display asks for, from the drain, its lanes and the run's own counts. */
import type { Clock } from '../core/clock.js';
import type { RunSummary } from '../core/run-summary.js';
import type { Drain, DrainSnapshot } from '../engine/drain.js';
import type { Lane } from '../engine/lane.js';
import type { LimiterSnapshot } from '../limiter/limiter.js';
import { sumOfKnown } from '../runs/inspect-run.js';
import { EMPTY_SNAPSHOT, type HeldBackBy, type ProgressSnapshot } from '../ui/progress.js';

export interface DrainSource {
  readonly drain: Drain;
  /** The run's counts before the drain began. */
  readonly before: RunSummary;
  readonly lanes: readonly Lane[];
  /** Documents that have taken an answer, or a failure, of an equal one since the drain began. */
  readonly handedOut: { readonly completed: number; readonly failed: number };
}

/** An estimate from fewer settled documents than this swings too much to be shown. */
const ETA_NEEDS_SETTLED = 5;
const RATE_WINDOW_MS = 60_000;

export class DrainProgress {
  readonly #source: DrainSource;
  readonly #clock: Clock;
  /** One sample a second at most: how many were settled at that time. */
  readonly #samples: { atMs: number; settled: number }[] = [];

  constructor(source: DrainSource, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
  }

  snapshot(): ProgressSnapshot {
    const { drain, before, lanes, handedOut } = this.#source;
    const nowMs = this.#clock.monotonicMs();
    const state = drain.snapshot();
    const limits = lanes.map((lane) => lane.limiter.snapshot(nowMs));
    const total = Object.values(before.counts).reduce((sum, count) => sum + count, 0);
    const completed = before.counts.completed + state.completed;
    const failed = before.counts.failed + state.failed;
    const toCall = total - completed - failed - before.shared.waiting;
    return {
      ...EMPTY_SNAPSHOT,
      phase: state.stopping ? 'stopping' : 'running',
      total,
      completed: completed + handedOut.completed,
      failed: failed + handedOut.failed,
      openCalls: state.openCalls,
      concurrency: state.concurrency,
      requestsPerMinute: sum(limits.map((limit) => limit.requestsInWindow)),
      requestsPerMinuteLimit: sumOfKnown(limits.map((limit) => limit.requestsPerMinute)),
      tokensPerMinute: sum(limits.map((limit) => limit.tokensInWindow)),
      tokensPerMinuteLimit: sumOfKnown(limits.map((limit) => limit.tokensPerMinute)),
      costMicroUsd:
        before.costMicroUsd + state.costMicroUsd > 0 ? before.costMicroUsd + state.costMicroUsd : null,
      etaMs: this.#etaMs(state, limits, toCall, nowMs),
      ...heldBack(state, lanes.length, nowMs, this.#clock.now()),
      suspectsLeft: state.suspectsLeft,
      graceLeftMs: state.abortAtMs === null ? null : Math.max(0, state.abortAtMs - nowMs),
    };
  }

  /** As fast as it went of late, but never faster than the limits allow: a first burst says little of the rest. */
  #etaMs(
    state: DrainSnapshot,
    limits: readonly LimiterSnapshot[],
    left: number,
    nowMs: number,
  ): number | null {
    // How long a server stays away nobody knows, and its absence says nothing of the speed afterwards.
    if (isEveryLaneDown(state, limits.length)) {
      this.#samples.length = 0;
      return null;
    }
    const settled = state.completed + state.failed;
    const last = this.#samples.at(-1);
    if (last === undefined || nowMs - last.atMs >= 1_000) this.#samples.push({ atMs: nowMs, settled });
    while (this.#samples.length > 1 && nowMs - (this.#samples[0]?.atMs ?? nowMs) > RATE_WINDOW_MS) {
      this.#samples.shift();
    }
    const oldest = this.#samples[0];
    if (oldest === undefined || state.stopping) return null;
    const done = settled - oldest.settled;
    if (done < ETA_NEEDS_SETTLED) return null;
    return Math.max(((nowMs - oldest.atMs) / done) * left, fastestMs(limits, left));
  }
}

/** The time that the limits need at least for so many documents like the last ones. */
function fastestMs(limits: readonly LimiterSnapshot[], left: number): number {
  const requestLimit = sumOfKnown(limits.map((limit) => limit.requestsPerMinute));
  const tokenLimit = sumOfKnown(limits.map((limit) => limit.tokensPerMinute));
  const requests = sum(limits.map((limit) => limit.requestsInWindow));
  const tokensPerRequest = requests === 0 ? 0 : sum(limits.map((limit) => limit.tokensInWindow)) / requests;
  const byRequests = requestLimit === null ? 0 : left / requestLimit;
  const byTokens = tokenLimit === null ? 0 : (left * tokensPerRequest) / tokenLimit;
  return Math.max(byRequests, byTokens) * RATE_WINDOW_MS;
}

function heldBack(
  state: DrainSnapshot,
  lanes: number,
  monotonicMs: number,
  wallMs: number,
): Partial<ProgressSnapshot> & { heldBackBy: HeldBackBy | null } {
  if (isEveryLaneDown(state, lanes)) {
    const sinceMs = Math.max(...state.down.map((outage) => outage.sinceMs));
    return {
      heldBackBy: 'outage',
      outageSinceMs: wallMs - (monotonicMs - sinceMs),
      heldBackForMs: state.hold === null ? null : Math.max(0, state.hold.untilMs - monotonicMs),
    };
  }
  if (state.hold !== null && state.hold.untilMs > monotonicMs) {
    return { heldBackBy: state.hold.blockedBy, heldBackForMs: state.hold.untilMs - monotonicMs };
  }
  if (state.onlyDelayedLeft) {
    const dueInMs = state.nextDueAtMs === null ? null : Math.max(0, state.nextDueAtMs - wallMs);
    return { heldBackBy: 'retry_wait', heldBackForMs: dueInMs };
  }
  return { heldBackBy: state.openCalls >= state.concurrency ? 'concurrency' : null, heldBackForMs: null };
}

function isEveryLaneDown({ down }: DrainSnapshot, lanes: number): boolean {
  return down.length > 0 && down.length === lanes;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
