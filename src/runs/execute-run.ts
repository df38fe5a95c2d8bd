/** Drains a run that has been imported: put back what a crash left, seed the limits, drain, say how it ended. */
import type { RecentCall } from '../core/call.js';
import type { Clock, Random } from '../core/clock.js';
import type { DrainEnding, TellEvent } from '../core/event.js';
import type { RunRecord } from '../core/run.js';
import type { RunSummary } from '../core/run-summary.js';
import type { StopRequests } from '../core/stop-requests.js';
import type { ClaimTurns } from '../engine/drain.js';
import type { Lane } from '../engine/lane.js';
import type { SendingWay } from '../engine/sending-way.js';
import type { QuotaAmounts } from '../limiter/shared-quota.js';
import type { PriceTable } from '../pricing/price-book.js';
import type { Store } from '../store/store.js';
import { loadPrepareTask } from './prepare-task.js';
import { recoverStore } from './recover.js';
import { createRunBudget, failureLimit } from './run-budget.js';
import { eventOf, settledEvent } from './run-events.js';
import { ObservationNotes, observationsOf, pricesObserved } from './run-observations.js';
import { RunProgress } from './run-progress.js';
import { type RunSettings, settingsOfRun } from './run-settings.js';
import { saveSalvage } from './salvage.js';
import { pairDocuments, type ShareOptions, settlePairs } from './share-answers.js';
import { wayOf } from './ways.js';

/** Longer than any pause of a worker that is well. */
export const LEASE_MS = 30_000;
/** A limiter looks back a minute and its margin; one that counts a day's requests, a day. */
const MINUTE_SEED_MS = 61_000;
const DAY_SEED_MS = 24 * 3_600_000;

export interface ExecuteOptions {
  /** Opened for writing, drain lock held. */
  readonly store: Store;
  readonly run: RunRecord;
  /** None but these tasks are sent; absent: all. */
  readonly among?: readonly number[] | undefined;
  readonly lanes: readonly Lane[];
  /** That this machine lets the process have. */
  readonly mostConnections: number;
  /** Noted with the run, if there is anything to send. */
  readonly prices: PriceTable;
  readonly clock: Clock;
  readonly random: Random;
  readonly workerId: string;
  /** How long the worker's tasks are its own after its last sign of life; default `LEASE_MS`. */
  readonly leaseMs?: number | undefined;
  /** Where other runs are sent beside this one: which of them comes next. */
  readonly turns?: ClaimTurns | undefined;
  /** Where answers go that the store cannot take. */
  readonly salvagePath: string;
  /** Where the files of batches lie while they are made or read. */
  readonly batchFolder: string;
  /** False: batches are handed in and fetched, and not waited for. Default true. */
  readonly waits?: boolean | undefined;
  /** While it drains, the first request lets open calls finish, the second cuts them off. */
  readonly stop: StopRequests;
  readonly tell: TellEvent;
  /** Told of settled tasks that may have an answer, in the order of commits. Answers are shared no faster than it takes them. */
  readonly onAnswers: (taskIds: readonly number[]) => Promise<void>;
  /** Called before the drain. Nothing is sent or settled until it resolves. */
  readonly onReady: (drain: SendingWay) => Promise<void>;
}

/** How a run was left. */
export interface SentRun {
  readonly end: DrainEnding;
  readonly summary: RunSummary;
}

export interface ExecutionReport extends SentRun {
  /** What the run had done before. */
  readonly before: RunSummary;
  readonly run: RunRecord;
}

/** @throws LlmBatchError (exit 5) when the store cannot be written any more */
export async function executeRun(options: ExecuteOptions): Promise<ExecutionReport> {
  const { store, stop, tell } = options;
  const { graceMs } = settingsOfRun(options.run).pacing;
  let drain: SendingWay | null = null;
  const stopListening = stop.subscribe((count) => {
    tell({ type: 'interrupted', count, openCalls: drain?.snapshot().openCalls ?? 0, graceMs });
    // Where the note cannot be written, no more is lost than the note.
    if (count === 1) void store.noteStop(options.workerId).catch(() => undefined);
    if (count === 1) drain?.stop();
    else drain?.abort();
  });
  try {
    return await drainRun(options, (created) => {
      drain = created;
      if (stop.count > 0) created.stop();
    });
  } finally {
    stopListening();
    tell({ type: 'calls_ended' });
  }
}

async function drainRun(
  options: ExecuteOptions,
  onDrain: (drain: SendingWay) => void,
): Promise<ExecutionReport> {
  const { store, run, among, lanes, clock, tell } = options;
  const settings = settingsOfRun(run);
  const { leaseMs = LEASE_MS } = options;

  const rescue = await recoverStore(store, options.salvagePath);
  if (rescue.rescued > 0 || rescue.poisoned > 0) tell({ type: 'rescued', ...rescue });
  await seedLimits(store, lanes, clock);
  let handedOut = { completed: 0, failed: 0 };
  const sharing: ShareOptions = {
    store,
    run,
    interrupts: () => options.stop.count,
    async onShared({ settledTaskIds, failed }) {
      handedOut.completed += settledTaskIds.length - failed;
      handedOut.failed += failed;
      tell({ type: 'answers_shared', taskIds: settledTaskIds, failed });
      await options.onAnswers(settledTaskIds);
    },
  };
  // Who else works on the run has paired its documents.
  const isShared =
    store.capabilities.sharedDrain && (await store.summarizeRun(run.id)).counts.in_progress > 0;
  if (!isShared) await pairDocuments(sharing);
  const before = await store.summarizeRun(run.id);
  handedOut = { completed: 0, failed: 0 };

  const { traceparent } = observationsOf(run);
  const notes = new ObservationNotes(store, run, lanes, clock, tell);
  const prepare = await loadPrepareTask(settings);
  const budget = createRunBudget(settings.budget, lanes, before);
  const tooManyFailures = failureLimit(settings.budget.maxFailures);
  const drain = await wayOf(run, {
    ...{ ...options, task: 'send', leaseMs, waits: options.waits ?? true },
    ...{ prepare, budget, tooManyFailures },
    isUntried: before.counts.completed === 0 && !(await wasAnsweredBefore(store, settings)),
    salvage: (settlements) => saveSalvage(options.salvagePath, settlements),
    onNotice(notice) {
      notes.follow(notice);
      tell(eventOf(notice, traceparent));
    },
    onSettled(settled) {
      const event = settledEvent(settled);
      tell(event);
      if (event.completed.length > 0) void options.onAnswers(event.completed);
    },
  });
  onDrain(drain);
  const { withinRun, fromEarlierRuns, waiting } = before.shared;
  if (withinRun + fromEarlierRuns + waiting > 0) tell({ type: 'sharing', ...before.shared });
  const progress = new RunProgress(
    { drain, before: await watchedOf(store, before, run.id, among), lanes, handedOut },
    clock,
  );
  tell({ type: 'started', run: run.name, progress: () => progress.snapshot() });
  await options.onReady(drain);
  const isReopened = run.status === 'finished' && !isDone(before);
  await store.updateRun(run.id, { haltReason: null, ...(isReopened && { status: 'open' as const }) });
  if (!isDone(before)) await store.noteObservations(run.id, [pricesObserved(options.prices)]);
  const stopNoting = notes.begin(() => drain.snapshot().groups);
  const drained = await drain.run().finally(stopNoting);
  await settlePairs(sharing);

  const summary = await store.summarizeRun(run.id);
  // Interrupted while answers were handed out: all calls are made, and some documents still wait.
  const isCutShort = drained.reason === 'drained' && !isDone(summary);
  const reason = among === undefined || options.stop.count > 0 ? 'stopped' : 'tried';
  const end: DrainEnding = isCutShort ? { reason } : drained;
  const stopped = await store.updateRun(run.id, {
    ...(isDone(summary) && { status: 'finished' as const }),
    stoppedAtMs: clock.now(),
    haltReason: haltReason(end),
  });
  return { before, end, summary, run: stopped };
}

/** What the display counts down: of a try, the documents that it is of. */
async function watchedOf(
  store: Store,
  before: RunSummary,
  runId: number,
  among: readonly number[] | undefined,
): Promise<RunSummary> {
  if (among === undefined) return before;
  const counts = { ready: 0, delayed: 0, in_progress: 0, completed: 0, failed: 0, cancelled: 0 };
  for (const { state } of await store.readTasks(runId, among, false)) counts[state] += 1;
  return { ...before, counts, shared: { ...before.shared, waiting: 0 } };
}

/** Every document is settled. */
export function isDone({ counts: { ready, delayed, in_progress } }: RunSummary): boolean {
  return ready + delayed + in_progress === 0;
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

/** Stored with the run; whoever shows it has the words. */
function haltReason(end: DrainEnding): string | null {
  switch (end.reason) {
    case 'halted':
      return `${end.failure.kind}: ${end.failure.message}`;
    case 'limit_reached':
      return `limit_reached: ${end.limit}`;
    default:
      return null;
  }
}

/** Earlier calls count against the same key's limits, whichever process made them. */
async function seedLimits(store: Store, lanes: readonly Lane[], clock: Clock): Promise<void> {
  const countsDays = lanes.some((lane) => lane.limiter.snapshot(clock.monotonicMs()).requestsPerDay !== null);
  const recent = await store.readRecentCalls(countsDays ? DAY_SEED_MS : MINUTE_SEED_MS);
  for (const { name, limiter, quota } of lanes) {
    const earlier = recent.filter((call) => call.lane === name);
    if (quota === undefined) limiter.seed(earlier, clock.monotonicMs());
    else quota.begin(sumOfCalls(earlier));
  }
}

function sumOfCalls(calls: readonly RecentCall[]): QuotaAmounts {
  const ofMinute = calls.filter(({ ageMs }) => ageMs < MINUTE_SEED_MS);
  return {
    requests: ofMinute.length,
    tokens: ofMinute.reduce((sum, { tokens }) => sum + tokens, 0),
    requestsPerDay: calls.length,
  };
}
