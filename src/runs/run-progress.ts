/** How far a run is while it is drained, from the drain, its lanes and the run's own counts. */

import type { BatchRecord } from '../core/batch-record.js';
import type { Clock } from '../core/clock.js';
import {
  EMPTY_SNAPSHOT,
  type HeldBackBy,
  type ProgressSnapshot,
  type RemoteProgress,
} from '../core/progress-snapshot.js';
import type { RunSummary } from '../core/run-summary.js';
import type { DrainSnapshot } from '../engine/drain.js';
import type { Lane } from '../engine/lane.js';
import type { SendingWay } from '../engine/sending-way.js';
import type { LimiterSnapshot } from '../limiter/limiter.js';
import { type MinuteUse, sumOfKnown, timeLeftMs } from './time-left.js';

export interface DrainSource {
  readonly drain: Pick<SendingWay, 'snapshot'>;
  /** The run's counts before the drain began. */
  readonly before: RunSummary;
  readonly lanes: readonly Lane[];
  /** Documents that have taken an answer, or a failure, of an equal one since the drain began. */
  readonly handedOut: { readonly completed: number; readonly failed: number };
}

const RATE_WINDOW_MS = 60_000;

export class RunProgress {
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
    const minute = minuteOf(limits);
    // What others have sent in the last minute counts against a limit, and is no speed of this run.
    const earlier = (name: 'requests' | 'tokens'): number =>
      limits.reduce((sum, { earlierInWindow }) => sum + earlierInWindow[name], 0);
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
      openResponses: state.openResponses,
      concurrency: state.concurrency,
      documentsPerCall:
        state.groups.calls === 0 ? null : Math.round(state.groups.documents / state.groups.calls),
      requestsPerMinute: Math.max(0, minute.requests - earlier('requests')),
      requestsPerMinuteLimit: minute.requestLimit,
      tokensPerMinute: Math.max(0, minute.tokens - earlier('tokens')),
      tokensPerMinuteLimit: minute.tokenLimit,
      costMicroUsd:
        before.costMicroUsd + state.costMicroUsd > 0 ? before.costMicroUsd + state.costMicroUsd : null,
      etaMs: isEveryLaneDown(state, lanes.length)
        ? this.#forget()
        : this.#etaMs(state, minute, toCall, nowMs),
      ...heldBack(state, lanes.length, nowMs, this.#clock.now()),
      suspectsLeft: state.suspectsLeft,
      remote: remoteOf(state.batches),
      graceLeftMs: state.abortAtMs === null ? null : Math.max(0, state.abortAtMs - nowMs),
    };
  }

  /** How long a server stays away nobody knows, and its absence says nothing of the speed afterwards. */
  #forget(): null {
    this.#samples.length = 0;
    return null;
  }

  #etaMs(state: DrainSnapshot, minute: MinuteUse, left: number, nowMs: number): number | null {
    const settled = state.completed + state.failed;
    const last = this.#samples.at(-1);
    if (last === undefined || nowMs - last.atMs >= 1_000) this.#samples.push({ atMs: nowMs, settled });
    while (this.#samples.length > 1 && nowMs - (this.#samples[0]?.atMs ?? nowMs) > RATE_WINDOW_MS) {
      this.#samples.shift();
    }
    const oldest = this.#samples[0];
    if (oldest === undefined || state.stopping) return null;
    return timeLeftMs({ settled: settled - oldest.settled, overMs: nowMs - oldest.atMs, left, minute });
  }
}

function remoteOf(batches: readonly BatchRecord[] | null): RemoteProgress | null {
  if (batches === null) return null;
  const there = batches.filter(({ remoteId }) => remoteId !== null);
  const sumOf = (figure: (batch: BatchRecord) => number): number =>
    there.reduce((sum, batch) => sum + figure(batch), 0);
  return {
    batches: there.length,
    requests: sumOf(({ lines }) => lines),
    done: sumOf(({ requestsCompleted, requestsFailed }) => requestsCompleted + requestsFailed),
    finalizing: there.filter(({ remoteState }) => remoteState === 'finalizing').length,
    settling: there.filter(({ state }) => state === 'settling').length,
  };
}

function minuteOf(limits: readonly LimiterSnapshot[]): MinuteUse {
  return {
    requests: limits.reduce((sum, limit) => sum + limit.requestsInWindow, 0),
    tokens: limits.reduce((sum, limit) => sum + limit.tokensInWindow, 0),
    requestLimit: sumOfKnown(limits.map((limit) => limit.requestsPerMinute)),
    tokenLimit: sumOfKnown(limits.map((limit) => limit.tokensPerMinute)),
  };
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
  return {
    heldBackBy: state.openCalls + state.openResponses >= state.concurrency ? 'concurrency' : null,
    heldBackForMs: null,
  };
}

function isEveryLaneDown({ down }: DrainSnapshot, lanes: number): boolean {
  return down.length > 0 && down.length === lanes;
}
