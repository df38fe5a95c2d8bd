/**
 * A worker: sends whatever the runs of a store have to send, as it comes, until it is asked to stop or has been idle for
 * long enough. Any number of workers may do so on a store that can be shared; what one of them leaves behind that died,
 * the others put back.
 *
 *   look ──a run has work──▶ send it beside the others, in turns (claim-turns.ts) ──nothing left──▶ look
 *    │ ▲                        └── cannot be sent from here, or stopped by its key, money or endpoint ──▶ passed over for a while
 *    ▼ └── woken, or a second has passed
 *   nothing for `idleExitMs`, or stop ──▶ what is open ends, the rest goes back ──▶ ended
 */
import { WOKEN } from '../core/clock.js';
import { EXIT_CODES, LlmBatchError, usageError } from '../core/errors.js';
import type { RunEvent } from '../core/event.js';
import type { RunRecord } from '../core/run.js';
import type { SendingWay } from '../engine/sending-way.js';
import { mayPass } from '../engine/store-trouble.js';
import type { RescueReport, Store } from '../store/store.js';
import { RunTurns } from './claim-turns.js';
import { type ExecuteOptions, executeRun, isDone, LEASE_MS, type SentRun } from './execute-run.js';
import { recoverStore, rescueDead } from './recover.js';
import { observationsOf } from './run-observations.js';
import { type PacingSettings, settingsOfRun, settingsToJson } from './run-settings.js';
import { openBatches } from './ways.js';

/** The way to a run's servers. */
export interface RunLanes extends Pick<ExecuteOptions, 'lanes' | 'prices' | 'mostConnections'> {
  close(): Promise<void>;
}

export interface WorkOptions
  extends Pick<
    ExecuteOptions,
    'clock' | 'random' | 'workerId' | 'leaseMs' | 'salvagePath' | 'batchFolder' | 'stop'
  > {
  /** Opened for writing; drain lock held where the store cannot be shared. */
  readonly store: Store;
  /** The only run to send; null: all of the store. */
  readonly runId: number | null;
  /** @throws LlmBatchError for a run that is not to be sent from here; it is told, and passed over */
  readonly connect: (run: RunRecord) => Promise<RunLanes>;
  /** Calls open at once to the servers of a run, whatever the run says; null: as it says. */
  readonly concurrency: PacingSettings['concurrency'] | null;
  /** Calls back when this process has put work into a run. @returns stops listening */
  readonly onSubmitted?: ((look: () => void) => () => void) | undefined;
  /** Ends when there has been nothing to do for so long; null: waits for ever. */
  readonly idleExitMs: number | null;
  /** @param run its name; null for what is of no one run */
  readonly tell: (event: RunEvent, run: string | null) => void;
}

export interface WorkReport {
  /** How the runs that it sent were left, by name. */
  readonly runs: ReadonlyMap<string, SentRun>;
  /** Names of runs that could not be sent from here. */
  readonly passedOver: readonly string[];
  /** Why it ended: asked to stop, or idle. */
  readonly isStopped: boolean;
}

const LOOK_EVERY_MS = 1_000;
/** What kept a run from being sent may have been put right elsewhere: a key, a trust, an account. */
const PASSED_OVER_MS = 60_000;
const RESCUES_PER_LEASE = 3;

/** @throws LlmBatchError (exit 5) when the store cannot be written any more; (exit 2) where `runId` cannot be sent from here */
export function work(options: WorkOptions): Promise<WorkReport> {
  return new Worker(options).run();
}

interface Sending {
  ended: Promise<void>;
  drain: SendingWay | null;
}

class Worker {
  readonly #options: WorkOptions;
  readonly #turns: RunTurns;
  readonly #sending = new Map<number, Sending>();
  /** Monotonic times before which runs are not looked at again. */
  readonly #notBeforeMs = new Map<number, number>();
  /** Why runs were passed over, so that nobody is told twice. */
  readonly #passedOver = new Map<string, string>();
  readonly #reports = new Map<string, SentRun>();
  /** Nothing has come of anything since then (monotonic). */
  #idleSinceMs = 0;
  #sleeping: AbortController | null = null;
  #isWoken = false;
  #crash: { readonly error: unknown } | null = null;

  constructor(options: WorkOptions) {
    this.#options = options;
    this.#turns = new RunTurns(options.store, () => this.#wake());
  }

  async run(): Promise<WorkReport> {
    const { stop, onSubmitted } = this.#options;
    const wake = (): void => this.#wake();
    const stopListening = [stop.subscribe(wake), onSubmitted?.(wake)];
    const ended = new AbortController();
    const keeping = this.#keepAlive(ended.signal);
    try {
      await this.#send();
    } finally {
      ended.abort(WOKEN);
      for (const stopOne of stopListening) stopOne?.();
      await Promise.all([...this.#sending.values()].map((each) => each.ended));
      await keeping;
    }
    if (this.#crash !== null) throw this.#crash.error;
    return { runs: this.#reports, passedOver: [...this.#passedOver.keys()], isStopped: stop.count > 0 };
  }

  async #send(): Promise<void> {
    const { store, clock, stop, idleExitMs, salvagePath } = this.#options;
    this.#tellRescued(await recoverStore(store, salvagePath));
    await this.#finishSettled();
    this.#idleSinceMs = clock.monotonicMs();
    while (stop.count === 0 && this.#crash === null) {
      await this.#look();
      const idleForMs = clock.monotonicMs() - this.#idleSinceMs;
      if (idleExitMs !== null && this.#sending.size === 0 && idleForMs >= idleExitMs) return;
      const idleLeftMs = idleExitMs === null ? LOOK_EVERY_MS : Math.max(0, idleExitMs - idleForMs);
      await this.#nextLook(this.#sending.size > 0 ? LOOK_EVERY_MS : Math.min(LOOK_EVERY_MS, idleLeftMs));
    }
  }

  /** Begins to send runs that have work, and has those look that are being sent. */
  async #look(): Promise<void> {
    const { store, clock, runId } = this.#options;
    const found = await this.#outlasting(() => store.listWork(), []);
    const wanted = found.filter((each) => runId === null || each.runId === runId);
    const isNew = (each: { runId: number }): boolean =>
      !this.#sending.has(each.runId) && clock.monotonicMs() >= (this.#notBeforeMs.get(each.runId) ?? 0);
    const runs = wanted.some(isNew) ? await this.#outlasting(() => store.listRuns(), []) : [];
    for (const each of wanted) {
      const run = isNew(each) ? runs.find(({ id }) => id === each.runId) : undefined;
      if (run === undefined) this.#sending.get(each.runId)?.drain?.look();
      else this.#begin(run);
    }
  }

  #begin(run: RunRecord): void {
    const sending: Sending = { drain: null, ended: Promise.resolve() };
    this.#sending.set(run.id, sending);
    sending.ended = this.#sendRun(run, sending)
      .catch((error: unknown) => this.#failed(run, error))
      .finally(() => {
        this.#sending.delete(run.id);
        this.#wake();
      });
  }

  async #sendRun(stored: RunRecord, sending: Sending): Promise<void> {
    const { connect, clock, tell } = this.#options;
    const run = this.#withConcurrency(stored);
    await this.#refuseRemote(run);
    const lanes = await connect(run);
    let leave = (): unknown => undefined;
    try {
      const startedAtMs = clock.monotonicMs();
      const report = await executeRun({
        ...this.#options,
        ...lanes,
        run,
        turns: this.#turns.of(run.id),
        tell: (event) => tell(event, run.name),
        onAnswers: async () => undefined,
        onReady: async (drain) => {
          sending.drain = drain;
          leave = this.#turns.join(run.id, settingsOfRun(run), {
            openCalls: () => drain.snapshot().openCalls,
            look: () => drain.look(),
          });
        },
      });
      const { before, end, summary } = report;
      this.#passedOver.delete(run.name);
      this.#reports.set(run.name, { end, summary });
      const isHalted = end.reason === 'halted' || end.reason === 'limit_reached';
      const hasMoved = JSON.stringify(before.counts) !== JSON.stringify(summary.counts);
      const nowMs = clock.monotonicMs();
      this.#notBeforeMs.set(run.id, nowMs + (isHalted ? PASSED_OVER_MS : hasMoved ? 0 : LOOK_EVERY_MS));
      if (hasMoved) this.#idleSinceMs = nowMs;
      // Others may still have documents of it.
      if (!isHalted && !isDone(summary) && this.#options.stop.count === 0) return;
      tell(
        {
          ...{ type: 'ended', ...report },
          files: { resultsPath: null, errorsPath: null },
          elapsedMs: clock.monotonicMs() - startedAtMs,
          prices: observationsOf(report.run).prices,
          readerGone: false,
        },
        run.name,
      );
    } finally {
      leave();
      await lanes.close();
    }
  }

  /** Not stored: another worker has another machine. */
  #withConcurrency(run: RunRecord): RunRecord {
    const { concurrency, store } = this.#options;
    if (concurrency === null) return run;
    const settings = settingsOfRun(run);
    const pacing = { ...settings.pacing, concurrency };
    return { ...run, settings: settingsToJson({ ...settings, pacing }, store) };
  }

  /** What a provider works on by itself is fetched by one process; of several workers nobody could say which. */
  async #refuseRemote(run: RunRecord): Promise<void> {
    const { store } = this.#options;
    if (!store.capabilities.sharedDrain) return;
    const { remote, background } = settingsOfRun(run).remote;
    if (!remote && !background && (await openBatches(store, run)).length === 0) return;
    const problem = `Run '${run.name}' leaves documents with the provider (batches, background responses), which is no work for workers.`;
    throw usageError('RUN_REMOTE', problem, { run: run.name });
  }

  #failed(run: RunRecord, error: unknown): void {
    const isOfRun =
      error instanceof LlmBatchError && (error.exitCode === EXIT_CODES.usage || OF_RUN.has(error.code));
    if (!isOfRun || this.#options.runId !== null) {
      this.#crash ??= { error };
      this.#wake();
      return;
    }
    this.#notBeforeMs.set(run.id, this.#options.clock.monotonicMs() + PASSED_OVER_MS);
    const { message } = error;
    if (error.code === 'RUN_MISSING' || this.#passedOver.get(run.name) === message) return;
    this.#passedOver.set(run.name, message);
    this.#options.tell({ type: 'run_passed_over', run: run.name, message }, run.name);
  }

  /** Says that this worker is alive though it may have nothing to do, and puts back what dead ones had. */
  async #keepAlive(ended: AbortSignal): Promise<void> {
    const { store, clock, workerId, leaseMs = LEASE_MS } = this.#options;
    try {
      while (!ended.aborted) {
        await clock.sleep(leaseMs / RESCUES_PER_LEASE, ended);
        if (ended.aborted) return;
        // In this order: one that was stopped for a while would otherwise put back what it still works on.
        const askedAtMs = clock.monotonicMs();
        await this.#outlasting(() => store.beat(workerId, leaseMs), undefined);
        // The store was away, for the others too: they come first, or they would be taken for dead.
        if (clock.monotonicMs() - askedAtMs > leaseMs / RESCUES_PER_LEASE) continue;
        const report = await this.#outlasting(() => rescueDead(store), NOTHING_RESCUED);
        if (!this.#tellRescued(report)) continue;
        await this.#outlasting(() => this.#finishSettled(), undefined);
        this.#wake();
      }
    } catch (error) {
      this.#crash ??= { error };
      this.#wake();
    }
  }

  /** What cannot be asked of the store now is asked again at the next look. */
  async #outlasting<Value>(ask: () => Promise<Value>, otherwise: Value): Promise<Value> {
    try {
      return await ask();
    } catch (error) {
      if (mayPass(error)) return otherwise;
      throw error;
    }
  }

  /**
   * A worker may have died between its last document and the run's end, or before documents took the answers of their
   * equals, or while a provider had all that was left: nobody else would come to it.
   */
  async #finishSettled(): Promise<void> {
    const { store, runId } = this.#options;
    for (const run of await store.listRuns()) {
      if (run.status !== 'open' || this.#sending.has(run.id) || (runId !== null && run.id !== runId))
        continue;
      const summary = await store.summarizeRun(run.id);
      const { ready, delayed, in_progress } = summary.counts;
      if (isDone(summary)) await store.updateRun(run.id, { status: 'finished' });
      else if (
        (summary.shared.waiting === ready && delayed + in_progress === 0) ||
        (await openBatches(store, run)).length > 0
      )
        this.#begin(run);
    }
  }

  /** @returns whether there was anything */
  #tellRescued(report: RescueReport): boolean {
    if (report.rescued + report.poisoned + report.lostCalls === 0) return false;
    this.#options.tell({ type: 'rescued', ...report }, null);
    return true;
  }

  #wake(): void {
    this.#isWoken = true;
    this.#sleeping?.abort(WOKEN);
  }

  async #nextLook(limitMs: number): Promise<void> {
    if (!this.#isWoken) {
      this.#sleeping = new AbortController();
      await this.#options.clock.sleep(limitMs, this.#sleeping.signal);
      this.#sleeping = null;
    }
    this.#isWoken = false;
  }
}

const NOTHING_RESCUED: RescueReport = { rescued: 0, lostCalls: 0, poisoned: 0 };
/** Codes of what is wrong with one run and says nothing of the store. */
const OF_RUN: ReadonlySet<string> = new Set(['RUN_MISSING', 'STORE_RUN_ODD']);
