/**
 * Documents by batches that a provider works on: build → hand in → wait → fetch → settle, several batches at once.
 *
 *   building ─▶ built ─▶ creating ─▶ submitted ─▶ settling ─▶ settled
 *                 ▲          │            │
 *                 │          │            └── the provider's queue is full: handed in again, with the same file
 *                 │          └── nobody heard the answer: looked for in the provider's list, and created only where it is not there
 *                 └── a crash before this gives the documents back
 *
 * A stop leaves what is submitted with the provider, which works on; the next start goes on with it.
 */
import { mkdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type BatchRecord, isAtProvider } from '../../core/batch-record.js';
import type { DrainEnding, ReachedLimit, RunEvent } from '../../core/event.js';
import type { ProviderFailure } from '../../core/failure.js';
import type { RemoteBatch } from '../../provider/remote-batches.js';
import type { Store } from '../../store/store.js';
import { NOTHING_SPENT } from '../billing.js';
import type { DrainSnapshot, SettledTask } from '../drain.js';
import type { BatchingLane } from '../lane.js';
import { IDLE_SNAPSHOT, type SendingWay } from '../sending-way.js';
import { BatchRefused, inDoubt, isRefused, jittered, laneMissing, Server, WayLeft } from './server.js';
import { type BuilderOptions, type BuiltShard, ShardBuilder } from './shard-builder.js';
import { type SettlerOptions, ShardSettler } from './shard-settler.js';

export interface RemoteWayOptions
  extends Omit<BuilderOptions, 'pathOf' | 'nextLane' | 'isStopping'>,
    Omit<SettlerOptions, 'serverOf'> {
  readonly runName: string;
  readonly lanes: readonly BatchingLane[];
  readonly timeoutMs: number;
  readonly graceMs: number;
  readonly tooManyFailures: ((completed: number, failed: number) => boolean) | null;
  /** Where files lie while they are made or read; made when it is needed. */
  readonly folder: string;
  /** `collect`: hands nothing new in; `cancel`: that, and cancels what is there, whose answers are taken all the same. */
  readonly task: 'send' | 'collect' | 'cancel';
  /** False: what is to be handed in is, what is done is fetched, and nothing is waited for. */
  readonly waits: boolean;
  /** Batches at the provider at once. */
  readonly most: number;
  /** Null: seldom at first long, oftener where it is short; see `POLL_MS`. */
  readonly pollIntervalMs: number | null;
  /** How long after it was begun a batch is cancelled and no other is begun; null: never. */
  readonly finishDirectByMs: number | null;
  /** Files are not removed at the provider. */
  readonly keepRemote: boolean;
  readonly onNotice: (notice: RemoteNotice) => void;
}

/** In the words of `RunEvent`. */
export type RemoteNotice = Extract<
  RunEvent,
  { readonly type: `remote_${string}` | 'limit_reached' | 'halted' | 'lane_set_aside' }
>;

/** OpenAI's own client examples ask every minute; small batches are done within seconds. */
const POLL_MS = { first: 5_000, longest: 300_000 } as const;
/** A batch that was just created may not be in the list yet. */
const LOOKS_BEFORE_CREATING = 2;
/** How far back a batch is looked for: clocks differ. */
const CLOCKS_DIFFER_MS = 3_600_000;
const GIVEN_BACK_AT_ONCE = 2_000;

/** OpenAI's code where a batch would not fit into what may wait there. */
const QUEUE_FULL = 'token_limit_exceeded';

/** Where a provider does not say why a batch failed; tried again a few times. */
const UNEXPLAINED: ProviderFailure = {
  kind: 'overloaded',
  message: 'The batch failed, and the provider does not say why.',
};

/** Where batches expire one after the other. */
const IN_VAIN: ProviderFailure = {
  kind: 'overloaded',
  message: 'Batches end there with none of their requests run.',
};

const ENDED: readonly (string | null)[] = ['failed', 'completed', 'expired', 'cancelled'];

type Progress = Parameters<Store['remote']['note']>[1];

export class RemoteWay implements SendingWay {
  readonly #options: RemoteWayOptions;
  /** Of each lane. */
  readonly #servers: ReadonlyMap<BatchingLane, Server>;
  readonly #builder: ShardBuilder;
  readonly #settler: ShardSettler;
  /** Batches that are begun and not settled, as the store has them. */
  readonly #open = new Map<number, BatchRecord>();
  readonly #lives = new Set<Promise<void>>();
  /** Since when (monotonic) there has been no room for a batch, with none of ours in the way. */
  readonly #fullSinceMs = new Map<number, number>();
  #deadlineMs = Number.POSITIVE_INFINITY;
  /** Lanes whose key or account fails, or whose server is gone for too long, and why. */
  readonly #aside = new Map<BatchingLane, ProviderFailure>();
  /** Since when (monotonic) batches have ended with none of their requests run; null while some are. */
  #fruitlessSinceMs: number | null = null;
  #completed = 0;
  #failed = 0;
  #costMicroUsd = 0;
  #stopping = false;
  #abortAtMs: number | null = null;
  #halted: { failure: ProviderFailure; lane: string } | null = null;
  #limitReached: ReachedLimit | null = null;
  #crash: { error: unknown } | null = null;

  constructor(options: RemoteWayOptions) {
    this.#options = options;
    const { clock, random, timeoutMs, retry, lanes } = options;
    const server = { clock, random, timeoutMs, maxWaitMs: retry.maxWaitMs };
    this.#servers = new Map(lanes.map((lane) => [lane, new Server(server)]));
    this.#builder = new ShardBuilder({
      ...options,
      pathOf: (batch) => this.#pathOf(batch),
      nextLane: () => leastUsed(this.#usable.length > 0 ? this.#usable : lanes, [...this.#open.values()]),
      isStopping: () => this.#stopping,
      onSettled: (settled) => this.#settled(settled),
    });
    this.#settler = new ShardSettler({
      ...options,
      serverOf: (lane) => this.#serverOf(lane),
      onSettled: (settled) => this.#settled(settled),
    });
  }

  snapshot(): DrainSnapshot {
    return {
      ...IDLE_SNAPSHOT,
      completed: this.#completed,
      failed: this.#failed,
      costMicroUsd: this.#costMicroUsd,
      openCalls: [...this.#servers.values()].reduce((sum, { openRequests }) => sum + openRequests, 0),
      down: [...this.#servers].flatMap(([lane, { silentSinceMs: sinceMs }]) =>
        sinceMs === null ? [] : [{ lane, sinceMs }],
      ),
      stopping: this.#stopping,
      abortAtMs: this.#abortAtMs,
      batches: [...this.#open.values()],
    };
  }

  /** Hands nothing more in; batches that are submitted go on without us. */
  stop(): void {
    if (this.#stopping) return;
    this.#stopping = true;
    for (const server of this.#servers.values()) server.leave();
    const { clock, graceMs } = this.#options;
    this.#abortAtMs = clock.monotonicMs() + graceMs;
    clock.after(graceMs, () => this.abort());
  }

  look(): void {
    for (const server of this.#servers.values()) server.wake();
  }

  abort(): void {
    this.stop();
    for (const server of this.#servers.values()) server.abort();
  }

  /** @throws whatever the store or the disk threw: the answers are at the provider, and are fetched at the next start */
  async run(): Promise<DrainEnding> {
    // What is at the provider is fetched into it too, with nothing built before.
    await mkdir(this.#options.folder, { recursive: true, mode: 0o700 });
    await this.#adopt();
    await this.#handIn().catch((error: unknown) => this.#crashed(error));
    while (this.#lives.size > 0) await Promise.all(this.#lives);
    await this.#builder.discard();
    if (this.#crash !== null) throw this.#crash.error;
    await this.#giveUpUnsubmitted();
    // It stays where somebody has put something there.
    await rmdir(this.#options.folder).catch(() => undefined);
    const left = [...this.#open.values()].filter(({ state }) => isAtProvider(state));
    if (left.length > 0) {
      const documents = left.reduce((sum, { lines }) => sum + lines, 0);
      this.#options.onNotice({ type: 'remote_left', batches: left.length, documents });
    }
    if (this.#halted !== null) return { reason: 'halted', ...this.#halted };
    if (this.#limitReached !== null) return { reason: 'limit_reached', limit: this.#limitReached };
    if (this.#stopping) return { reason: 'stopped' };
    for (const [{ name }, failure] of this.#aside) {
      if (left.some(({ lane }) => lane === name)) return { reason: 'halted', failure, lane: name };
    }
    return left.length > 0 ? { reason: 'left' } : { reason: 'drained' };
  }

  /** Takes over what earlier processes have left. */
  async #adopt(): Promise<void> {
    const { store, runId, clock, finishDirectByMs, budget, lanes } = this.#options;
    await this.#giveUpUnsubmitted();
    let firstMs = clock.now();
    for (const batch of await store.remote.list(runId)) {
      if (batch.kind !== 'batch' || !isAtProvider(batch.state)) continue;
      if (!lanes.some(({ name }) => name === batch.lane)) throw laneMissing(batch);
      firstMs = Math.min(firstMs, batch.createdAtMs);
      const most = { costMicroUsd: batch.mostCostMicroUsd, tokens: batch.mostTokens };
      budget?.setAside(most);
      this.#begin({ batch, most });
    }
    if (finishDirectByMs !== null) this.#deadlineMs = firstMs + finishDirectByMs;
  }

  async #giveUpUnsubmitted(): Promise<void> {
    const { store, runId } = this.#options;
    for (const batch of await store.remote.list(runId)) {
      if (batch.state === 'building' || batch.state === 'built') await this.#giveUp(batch);
    }
  }

  /** A batch that is not at the provider: its documents go back. */
  async #giveUp(batch: BatchRecord): Promise<void> {
    const { store } = this.#options;
    while ((await store.remote.giveBack(batch.id, GIVEN_BACK_AT_ONCE)) > 0);
    await store.remote.end(batch.id);
    await rm(this.#pathOf(batch), { force: true });
    this.#open.delete(batch.id);
  }

  async #handIn(): Promise<void> {
    const { task, most, store, runId, among, waits, clock } = this.#options;
    let isInputOut = false;
    while (task === 'send' && !this.#stopping && clock.now() < this.#deadlineMs) {
      // What comes back goes together, once nothing else is on its way: three lines make no batch of their own.
      if (this.#open.size >= (isInputOut ? 1 : most)) {
        if (!waits) return;
        await this.#oneSettled();
        continue;
      }
      const built = await this.#builder.next();
      if (built !== null) {
        this.#begin(built);
        continue;
      }
      if (this.#builder.lacking !== null) {
        this.#limitReached = this.#builder.lacking;
        this.#options.onNotice({ type: 'limit_reached', limit: this.#builder.lacking });
        return;
      }
      isInputOut = true;
      if (this.#open.size > 0) continue;
      const waitMs = await store.nextDueMs(runId, among);
      if (waitMs === null || !waits) return;
      await this.#serverOf(this.#options.lanes[0]).sleep(waitMs).catch(isLeft);
    }
  }

  /** Lanes that new batches may go to. */
  get #usable(): readonly BatchingLane[] {
    return this.#options.lanes.filter((lane) => !this.#aside.has(lane));
  }

  #serverOf(lane: BatchingLane | undefined): Server {
    const server = lane === undefined ? undefined : this.#servers.get(lane);
    if (server === undefined) throw new RangeError('no lane takes batches');
    return server;
  }

  async #oneSettled(): Promise<void> {
    if (this.#lives.size > 0) await Promise.race(this.#lives);
  }

  #begin({ batch, most }: BuiltShard): void {
    const lane = this.#options.lanes.find(({ name }) => name === batch.lane);
    this.#open.set(batch.id, batch);
    if (lane === undefined) return;
    let billed = most;
    const life = this.#live(batch, lane)
      .then((spent) => {
        billed = spent;
      })
      .catch((error: unknown) => {
        if (!(error instanceof WayLeft)) this.#crashed(error);
      })
      .finally(() => {
        this.#lives.delete(life);
        if (!this.#open.has(batch.id)) this.#options.budget?.settle(most, billed);
      });
    this.#lives.add(life);
  }

  /** From a file to stored answers. @returns what was billed */
  async #live(built: BatchRecord, lane: BatchingLane) {
    let batch = built;
    const { waits, task, clock } = this.#options;
    try {
      for (;;) {
        const isNew = batch.remoteId === null;
        if (isNew) batch = await this.#submit(batch, lane, batch === built && built.state === 'creating');
        if (!waits && isNew) return NOTHING_SPENT;
        const remote = await this.#whenEnded(batch, lane, !isNew);
        batch = this.#open.get(batch.id) ?? batch;
        if (remote === null) return NOTHING_SPENT;
        if (!(remote.state === 'failed' && remote.isQueueFull)) {
          return await this.#settle(batch, lane, remote.state, remote.failure);
        }
        const failure = remote.failure ?? UNEXPLAINED;
        batch = await this.#refused(batch, failure, { state: 'creating', remoteId: null, remoteState: null });
        if (task === 'cancel' || clock.now() >= this.#deadlineMs) {
          await this.#giveUp(batch);
          return NOTHING_SPENT;
        }
        if (!waits) return NOTHING_SPENT;
        await this.#waitForRoom(batch, lane, failure);
      }
    } catch (error) {
      if (!(error instanceof BatchRefused)) throw error;
      batch = this.#open.get(batch.id) ?? batch;
      const { state } = batch;
      const isThere = state === 'submitted' || state === 'settling' || error.isInDoubt;
      if (!isThere && !error.haltsRun) return await this.#settle(batch, lane, 'failed', error.failure);
      this.#setAside(error.failure, lane);
      // What may be at the provider is looked after again at the next start.
      if (!isThere) await this.#giveUp(batch);
      return NOTHING_SPENT;
    }
  }

  /**
   * Hands a file in, and never twice.
   * @param isInDoubt a process before this one may have been killed between its request and the answer
   * @throws BatchRefused, WayLeft
   */
  async #submit(built: BatchRecord, lane: BatchingLane, isInDoubt: boolean): Promise<BatchRecord> {
    let batch = built;
    const { batches } = lane.remote;
    const path = this.#pathOf(batch);
    let mayBeThere = isInDoubt;
    if (batch.inputFileId === null) {
      const inputFileId = await this.#serverOf(lane).ask((options) => batches.upload(path, options));
      batch = await this.#note(batch, { inputFileId });
    }
    batch = await this.#note(batch, { state: 'creating' });
    const { clock } = this.#options;
    const sinceMs = clock.monotonicMs();
    for (let failures = 0; ; failures += 1) {
      const found = mayBeThere ? await this.#find(batch, lane) : null;
      if (found !== null) return this.#submitted(batch, found, path);
      const { inputFileId, endpoint } = batch;
      const asked = { inputFileId: inputFileId ?? '', endpoint, metadata: this.#metadataOf(batch) };
      const reply = await this.#serverOf(lane).once((options) => batches.create(asked, options));
      if (reply.ok) return this.#submitted(batch, reply.value, path);
      const { failure } = reply;
      if (failure.code === QUEUE_FULL) {
        batch = await this.#refused(batch, failure, {});
        await this.#waitForRoom(batch, lane, failure);
        continue;
      }
      mayBeThere = mayHaveBeenDone(failure);
      const waited = this.#serverOf(lane).waitAfter(failure, failures, sinceMs);
      await (mayBeThere ? waited.catch(inDoubt) : waited);
    }
  }

  async #find(batch: BatchRecord, lane: BatchingLane): Promise<RemoteBatch | null> {
    const since = batch.createdAtMs - CLOCKS_DIFFER_MS;
    for (let look = 1; ; look += 1) {
      const found = await this.#serverOf(lane)
        .ask((options) => lane.remote.batches.find(this.#metadataOf(batch), since, options))
        .catch(inDoubt);
      if (found !== null || look === LOOKS_BEFORE_CREATING) return found;
      await this.#serverOf(lane).sleep(this.#pollDelayMs(0));
    }
  }

  async #submitted(batch: BatchRecord, remote: RemoteBatch, path: string): Promise<BatchRecord> {
    const { clock, onNotice } = this.#options;
    const { id: remoteId, state: remoteState } = remote;
    const submitted = { state: 'submitted', remoteId, remoteState, submittedAtMs: clock.now() } as const;
    const noted = await this.#note(batch, submitted);
    await rm(path, { force: true });
    onNotice({ type: 'remote_submitted', ...shardOf(batch), requests: batch.lines, remoteId });
    return noted;
  }

  /**
   * Asks for a batch until it has ended.
   * @param asksNow it was submitted by an earlier process
   * @returns null where it has not, and nothing is waited for
   */
  async #whenEnded(submitted: BatchRecord, lane: BatchingLane, asksNow: boolean) {
    const { waits, clock, onNotice, task } = this.#options;
    const { batches } = lane.remote;
    const id = submitted.remoteId ?? '';
    let batch = submitted;
    let isCancelled = false;
    for (let isFirst = true; ; isFirst = false) {
      if (waits && !(isFirst && (asksNow || task === 'cancel'))) {
        const delayMs = Math.min(this.#pollDelayMs(batch.polls), this.#leftMs(isCancelled));
        await this.#serverOf(lane).sleep(Math.max(0, delayMs));
      }
      const isOverdue = clock.now() >= this.#deadlineMs;
      if ((task === 'cancel' || isOverdue) && !isCancelled) {
        isCancelled = true;
        if (isOverdue) onNotice({ type: 'remote_overdue', ...shardOf(batch) });
        // One that has ended meanwhile cannot be cancelled any more.
        await this.#serverOf(lane)
          .ask((options) => batches.cancel(id, options))
          .catch(isRefused);
      }
      const remote = await this.#serverOf(lane).ask((options) => batches.retrieve(id, options));
      batch = await this.#polled(batch, remote);
      if (ENDED.includes(remote.state)) return remote;
      if (!waits) return null;
    }
  }

  #leftMs(isCancelled: boolean): number {
    return isCancelled ? Number.POSITIVE_INFINITY : this.#deadlineMs - this.#options.clock.now();
  }

  async #polled(batch: BatchRecord, remote: RemoteBatch): Promise<BatchRecord> {
    const { total = batch.lines, completed = 0, failed = 0 } = remote.counts ?? {};
    const isNew =
      remote.state !== batch.remoteState ||
      completed !== batch.requestsCompleted ||
      failed !== batch.requestsFailed;
    if (isNew) {
      const told = { ...shardOf(batch), state: remote.state, requests: total, completed, failed };
      this.#options.onNotice({ type: 'remote_polled', ...told });
    }
    return this.#note(batch, {
      remoteState: remote.state,
      requestsCompleted: completed,
      requestsFailed: failed,
      outputFileId: remote.outputFileId,
      errorFileId: remote.errorFileId,
      message: remote.failure?.message ?? null,
      polls: batch.polls + 1,
    });
  }

  async #settle(batch: BatchRecord, lane: BatchingLane, state: string, failure: ProviderFailure | null) {
    const why = failure ?? (state === 'failed' ? UNEXPLAINED : null);
    const settled = await this.#settler.settle(batch, lane, this.#pathOf(batch), {
      failure: why,
      isComplete: state === 'completed',
    });
    await rm(this.#pathOf(batch), { force: true });
    this.#open.delete(batch.id);
    const { completed, failed, returned, billed } = settled;
    if (completed + failed > 0 || this.#isOver) this.#fruitlessSinceMs = null;
    else this.#endedInVain(lane);
    this.#options.onNotice({ type: 'remote_settled', ...shardOf(batch), state, completed, failed, returned });
    const halting =
      settled.halting ?? (failure !== null && new BatchRefused(failure).haltsRun ? failure : null);
    if (halting !== null) this.#setAside(halting, lane);
    // Whoever waits for room may have it now.
    this.#serverOf(lane).wake();
    const { inputFileId } = batch;
    // Of no more use; where it cannot be removed, it goes by itself after a while.
    if (inputFileId !== null && !this.#stopping && !this.#options.keepRemote) {
      await this.#serverOf(lane)
        .once((options) => lane.remote.batches.deleteFile(inputFileId, options))
        .catch(isLeft);
    }
    return billed;
  }

  /** Batches are cancelled: by the user, or since their time is over. */
  get #isOver(): boolean {
    const { task, clock } = this.#options;
    return task === 'cancel' || clock.now() >= this.#deadlineMs;
  }

  /** It costs nothing, and would go on for ever: a batch that expires is handed in again. */
  #endedInVain(lane: BatchingLane): void {
    const { clock, retry } = this.#options;
    const nowMs = clock.monotonicMs();
    this.#fruitlessSinceMs ??= nowMs;
    if (nowMs - this.#fruitlessSinceMs >= retry.maxWaitMs) this.#setAside(IN_VAIN, lane);
  }

  /** The provider's queue is full. */
  #refused(batch: BatchRecord, { message }: ProviderFailure, progress: Progress): Promise<BatchRecord> {
    if (batch.refusals === 0) {
      this.#options.onNotice({ type: 'remote_queue_full', ...shardOf(batch), message });
    }
    return this.#note(batch, { ...progress, refusals: batch.refusals + 1, message });
  }

  /**
   * Others' batches fill the queue as well as our own, which are waited for however long they take.
   * @throws BatchRefused where there was no room for too long; WayLeft
   */
  async #waitForRoom(batch: BatchRecord, lane: BatchingLane, failure: ProviderFailure): Promise<void> {
    const { clock, retry } = this.#options;
    const nowMs = clock.monotonicMs();
    const areOursThere = [...this.#open.values()].some(({ state }) => state === 'submitted');
    if (areOursThere) this.#fullSinceMs.delete(batch.id);
    const sinceMs = this.#fullSinceMs.get(batch.id) ?? nowMs;
    if (!areOursThere) this.#fullSinceMs.set(batch.id, sinceMs);
    if (nowMs - sinceMs >= retry.maxWaitMs) throw new BatchRefused(failure);
    await this.#serverOf(lane).sleep(this.#delayMs(batch.refusals));
  }

  #pollDelayMs(polls: number): number {
    return this.#delayMs(this.#options.pollIntervalMs === null ? polls : 0);
  }

  /** From seconds to minutes: the longer it takes, the longer it will take. */
  #delayMs(times: number): number {
    const { pollIntervalMs, random } = this.#options;
    const firstMs = pollIntervalMs ?? POLL_MS.first;
    const delayMs = Math.min(Math.max(POLL_MS.longest, firstMs), firstMs * 2 ** Math.min(times, 20));
    return jittered(delayMs, random);
  }

  async #note(batch: BatchRecord, progress: Progress): Promise<BatchRecord> {
    await this.#options.store.remote.note(batch.id, progress);
    const noted = { ...batch, ...progress };
    this.#open.set(batch.id, noted);
    return noted;
  }

  /** The hash is that of a file that no other is like, since each claim of a document has a name of its own. */
  #metadataOf({ shard, fileHash, refusals }: BatchRecord): Readonly<Record<string, string>> {
    return {
      llm_batch_run: this.#options.runName.slice(0, 500),
      llm_batch_shard: String(shard),
      llm_batch_file: fileHash ?? '',
      llm_batch_try: String(refusals + 1),
    };
  }

  #pathOf(batch: BatchRecord): string {
    return join(this.#options.folder, `run-${batch.runId}-shard-${batch.shard}.jsonl`);
  }

  #settled(settled: readonly SettledTask[]): void {
    for (const { outcome } of settled) {
      if (outcome.action === 'completed') this.#completed += 1;
      else if (outcome.action === 'failed') this.#failed += 1;
      this.#costMicroUsd += outcome.share?.costMicroUsd ?? 0;
    }
    if (settled.length > 0) this.#options.onSettled(settled);
    if (this.#options.tooManyFailures?.(this.#completed, this.#failed) && this.#limitReached === null) {
      this.#limitReached = 'failures';
      this.#options.onNotice({ type: 'limit_reached', limit: 'failures' });
      this.stop();
    }
  }

  /** Nothing more goes there, and what is there is looked after at the next start; the others go on. */
  #setAside(failure: ProviderFailure, lane: BatchingLane): void {
    if (this.#aside.has(lane)) return;
    this.#aside.set(lane, failure);
    if (this.#usable.length === 0) this.#halt(failure, lane);
    else this.#options.onNotice({ type: 'lane_set_aside', lane: lane.name, failure });
  }

  #halt(failure: ProviderFailure, lane: BatchingLane): void {
    if (this.#halted !== null) return;
    this.#halted = { failure, lane: lane.name };
    this.#options.onNotice({ type: 'halted', lane: lane.name, failure, series: null });
    this.stop();
  }

  #crashed(error: unknown): void {
    this.#crash ??= { error };
    this.stop();
  }
}

function shardOf({ lane, shard }: BatchRecord): Pick<BatchRecord, 'lane' | 'shard'> {
  return { lane, shard };
}

/** Whether a server may have done what it was asked although it did not say so. */
function mayHaveBeenDone({ isUnsent, httpStatus }: ProviderFailure): boolean {
  if (isUnsent) return false;
  const isRefusal = httpStatus !== undefined && httpStatus >= 400 && httpStatus < 500;
  return !isRefusal || httpStatus === 408 || httpStatus === 409;
}

function leastUsed(lanes: readonly BatchingLane[], open: readonly BatchRecord[]): BatchingLane {
  const used = (lane: BatchingLane): number =>
    open.filter((batch) => batch.lane === lane.name).length / lane.weight;
  const [first, ...others] = lanes;
  if (first === undefined) throw new RangeError('no lane takes batches');
  return others.reduce((least, lane) => (used(lane) < used(least) ? lane : least), first);
}

function isLeft(error: unknown): void {
  if (!(error instanceof WayLeft)) throw error;
}
