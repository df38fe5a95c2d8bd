/** Drains a run that has been imported: put back what a crash left, seed the limits, drain, say how it ended. */
import type { Clock, Random } from '../core/clock.js';
import type { RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import type { CheckOutput } from '../engine/call.js';
import {
  Drain,
  type DrainEnd,
  type DrainNotice,
  type ReachedLimit,
  type SettledTask,
} from '../engine/drain.js';
import type { Lane } from '../engine/lane.js';
import type { PriceTable } from '../pricing/model-price.js';
import type { RescueReport, SharedPage, Store } from '../store/store.js';
import { createPrepareCall } from './prepare-call.js';
import { recoverStore } from './recover.js';
import { createRunBudget, failureLimit } from './run-budget.js';
import { ObservationNotes, pricesObserved } from './run-observations.js';
import { type RunSettings, settingsOfRun } from './run-settings.js';
import { saveSalvage } from './salvage.js';
import { pairDocuments, settlePairs } from './share-answers.js';

const LEASE_MS = 30_000;
/** A limiter looks back a minute and its margin; one that counts a day's requests, a day. */
const MINUTE_SEED_MS = 61_000;
const DAY_SEED_MS = 24 * 3_600_000;

export interface ExecuteOptions {
  /** Opened for writing, drain lock held. */
  readonly store: Store;
  readonly run: RunRecord;
  readonly lanes: readonly Lane[];
  /** That this machine lets the process have. */
  readonly mostConnections: number;
  /** Noted with the run, if there is anything to send. */
  readonly prices: PriceTable;
  readonly clock: Clock;
  readonly random: Random;
  readonly workerId: string;
  /** Where answers go that the store cannot take. */
  readonly salvagePath: string;
  readonly onRescue: (report: RescueReport) => void;
  readonly onNotice: (notice: DrainNotice) => void;
  readonly onSettled: (settled: readonly SettledTask[]) => void;
  /** Told of documents that took the answer to an equal request. */
  readonly onShared: (page: SharedPage) => Promise<void>;
  /** How often the user has asked to stop; while it drains, the drain itself is told. */
  readonly interrupts: () => number;
  /**
   * Hands out the drain before it starts, for its snapshot and its brakes, and what the run has done so far. Nothing is
   * sent or settled until it resolves.
   */
  readonly onDrain: (drain: Drain, before: RunSummary) => Promise<void>;
}

export interface ExecutionReport {
  readonly end: DrainEnd;
  readonly summary: RunSummary;
  readonly run: RunRecord;
}

/** @throws LlmBatchError (exit 5) when the store cannot be written any more */
export async function executeRun(options: ExecuteOptions): Promise<ExecutionReport> {
  const { store, run, lanes, clock } = options;
  const settings = settingsOfRun(run);
  const { pacing } = settings;

  const rescue = await recoverStore(store, options.salvagePath);
  if (rescue.rescued > 0 || rescue.poisoned > 0) options.onRescue(rescue);
  await seedLimits(store, lanes, clock);
  await pairDocuments(options);
  const before = await store.summarizeRun(run.id);

  const notes = new ObservationNotes(store, run, lanes, clock);
  const drain = new Drain({
    store,
    runId: run.id,
    workerId: options.workerId,
    lanes,
    prepare: createPrepareCall(settings, await outputCheck(settings)),
    clock,
    random: options.random,
    concurrency: pacing.concurrency,
    mostConnections: options.mostConnections,
    retry: { maxAttempts: pacing.maxAttempts, maxWaitMs: pacing.maxWaitMs },
    timeoutMs: pacing.timeoutMs,
    graceMs: pacing.graceMs,
    leaseMs: LEASE_MS,
    isGuarded: pacing.guard,
    isUntried: before.counts.completed === 0 && !(await wasAnsweredBefore(store, settings)),
    budget: createRunBudget(settings.budget, lanes, before),
    tooManyFailures: failureLimit(settings.budget.maxFailures),
    salvage: (settlements) => saveSalvage(options.salvagePath, settlements),
    onNotice(notice) {
      notes.follow(notice);
      options.onNotice(notice);
    },
    onSettled: options.onSettled,
  });
  await options.onDrain(drain, before);
  await store.updateRun(run.id, { status: 'open', haltReason: null });
  if (!isDone(before)) await store.noteObservations(run.id, [pricesObserved(options.prices)]);
  const stopNoting = notes.begin();
  const drained = await drain.run().finally(stopNoting);
  await settlePairs(options);

  const summary = await store.summarizeRun(run.id);
  // Interrupted while answers were handed out: all calls are made, and some documents still wait.
  const isCutShort = drained.reason === 'drained' && !isDone(summary);
  const end: DrainEnd = isCutShort ? { reason: 'stopped' } : drained;
  const stopped = await store.updateRun(run.id, {
    status: isDone(summary) ? 'finished' : 'open',
    stoppedAtMs: clock.now(),
    haltReason: haltReason(end),
  });
  return { end, summary, run: stopped };
}

function isDone({ counts: { ready, delayed, in_progress } }: RunSummary): boolean {
  return ready + delayed + in_progress === 0;
}

/** The schema checker takes a while to load, and most runs take any text. */
async function outputCheck({ answers }: RunSettings): Promise<CheckOutput | null> {
  if (answers.check === null) return null;
  const { createOutputCheck } = await import('./output-check.js');
  return createOutputCheck(answers.check);
}

/** Whether any run of the store has had an answer over this connection, of this model. */
async function wasAnsweredBefore(store: Store, { connection, request }: RunSettings): Promise<boolean> {
  const wanted = JSON.stringify([connection, request.model]);
  for (const other of await store.listRuns()) {
    const settings = settingsOfRun(other);
    if (JSON.stringify([settings.connection, settings.request.model]) !== wanted) continue;
    if ((await store.summarizeRun(other.id)).counts.completed > 0) return true;
  }
  return false;
}

/** What reaching each limit means. */
export const REACHED_LIMITS: Readonly<Record<ReachedLimit, string>> = {
  cost: 'the next call could pass --max-cost; `resume` takes a higher one',
  tokens: 'the next call could pass --max-tokens-total; `resume` takes a higher one',
  failures: 'more documents have failed than --max-failures accepts',
};

function haltReason(end: DrainEnd): string | null {
  switch (end.reason) {
    case 'halted':
      return `${end.failure.kind}: ${end.failure.message}`;
    case 'limit_reached':
      return `${end.limit === 'failures' ? 'failures' : 'budget'}: ${REACHED_LIMITS[end.limit]}`;
    default:
      return null;
  }
}

/** Earlier calls count against the same key's limits, whichever process made them. */
async function seedLimits(store: Store, lanes: readonly Lane[], clock: Clock): Promise<void> {
  const countsDays = lanes.some((lane) => lane.limiter.snapshot(clock.monotonicMs()).requestsPerDay !== null);
  const recent = await store.readRecentCalls(countsDays ? DAY_SEED_MS : MINUTE_SEED_MS);
  for (const lane of lanes) {
    lane.limiter.seed(
      recent.filter((call) => call.lane === lane.name),
      clock.monotonicMs(),
    );
  }
}
