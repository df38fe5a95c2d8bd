/**
 * The moving part: claim → admit → record → send → settle, until the run is drained or something stops it.
 * It sees ports only: no SQL, no SDK types, no flags, no console.
 *
 *   running ──drained──▶ ended
 *      ├── stop()  : nothing new is sent, waiting tasks go back, open calls may finish within `graceMs`
 *      ├── abort() : open calls are cut off and their tasks go back
 *      ├── halt    : a failure that concerns the whole run (key, money, model) acts as stop() with a reason
 *      └── store trouble that lasts: acts as stop(), what open calls bring is salvaged, and rejects
 */
import pLimit from 'p-limit';
import type { BatchRecord } from '../core/batch-record.js';
import type { CallEnd } from '../core/call.js';
import type { Clock, Random } from '../core/clock.js';
import { LlmBatchError } from '../core/errors.js';
import type { DrainEnding, FailedCalls, ReachedLimit } from '../core/event.js';
import type { ProviderFailure } from '../core/failure.js';
import { addGroups, type GroupFigures, NO_GROUPS } from '../core/group-figures.js';
import { madeCall, type Settlement, type TaskOutcome } from '../core/outcome.js';
import { haltsRun, type RetryPolicy } from '../core/retry-decision.js';
import { type LeasedTask, leastLeaseMs, SUSPECT_AFTER_CRASHES } from '../core/task.js';
import { type LatencyBucket, latencyBucket } from '../store/latency-buckets.js';
import type { Store } from '../store/store.js';
import { BackgroundCalls, type BackgroundOptions } from './background-calls.js';
import type { RunBudget } from './billing.js';
import {
  type CallContext,
  fetchCall,
  makeReady,
  type OpenedResponse,
  type PerformedCall,
  type ReadyCall,
  releasedGroup,
  type SentCall,
  sendCall,
  withdrawCall,
} from './call.js';
import { CallLimit } from './call-limit.js';
import { type GroupSizeBounds, GroupSizes } from './group-size.js';
import { Guard, type GuardReport } from './guard.js';
import { Journal } from './journal.js';
import { failed, released } from './judge-reply.js';
import { Gate, type GateHold, type Lane } from './lane.js';
import { Lease } from './lease.js';
import { OpenCalls } from './open-calls.js';
import { Packer } from './packer.js';
import { halvesOf, type JoinRequests, kindOf, type PreparedTask, type PrepareTask } from './prepared-task.js';
import { laneMissing } from './remote/server.js';
import { mayPass, StoreTrouble } from './store-trouble.js';

export interface DrainOptions {
  readonly store: Store;
  readonly runId: number;
  /** None but these; absent: all of the run. */
  readonly among?: readonly number[] | undefined;
  /** Asked before each claim, where other runs are sent beside this one; absent: it is alone. */
  readonly turns?: ClaimTurns | undefined;
  readonly workerId: string;
  readonly lanes: readonly Lane[];
  readonly prepare: PrepareTask;
  readonly join: JoinRequests;
  /** Documents in one call. */
  readonly grouping: GroupSizeBounds & {
    /** How long a partial group waits for more. */
    readonly waitMs: number;
  };
  readonly clock: Clock;
  readonly random: Random;
  /** Calls open at once; `auto` follows what brings answers. */
  readonly concurrency: number | 'auto';
  /** Connections that this machine lets the process have, whatever the concurrency. */
  readonly mostConnections: number;
  readonly retry: RetryPolicy;
  readonly timeoutMs: number;
  readonly graceMs: number;
  readonly leaseMs: number;
  /** Stop the run when its calls all end in the same bad way. */
  readonly isGuarded: boolean;
  /** No call like those of this run was ever answered: one goes first on each lane. */
  readonly isUntried: boolean;
  readonly background: BackgroundOptions;
  /** Null: spend what it takes. */
  readonly budget: RunBudget | null;
  /** Says, after each commit, whether more documents have failed than the user accepts; null: never. */
  readonly tooManyFailures: ((completed: number, failed: number) => boolean) | null;
  /** Keeps outcomes that the store cannot take. @returns the path of the file they are in */
  readonly salvage: (settlements: readonly Settlement[]) => Promise<string>;
  /** After each commit, in commit order. */
  readonly onSettled?: (settled: readonly SettledTask[]) => void;
  readonly onNotice?: (notice: DrainNotice) => void;
}

/** Who of several runs comes next. */
export interface ClaimTurns {
  next(): Promise<ClaimTurn>;
}

/** `none`: the run has nothing to claim. `later`: others come first, and `look` tells when that has changed. */
export type ClaimTurn =
  | 'none'
  | 'later'
  | {
      readonly atLeastPriority: number;
      /** Runs that share the calls that may be open, this one among them. */
      readonly sharedBy: number;
    };

export interface SettledTask {
  readonly task: LeasedTask;
  readonly outcome: TaskOutcome;
}

export type DrainNotice =
  | { readonly type: 'call_started'; readonly call: SentCall }
  | { readonly type: 'call_ended'; readonly call: SentCall; readonly end: CallEnd }
  /** Nothing left for so long, for this one cause, while a call was ready to. */
  | { readonly type: 'waited'; readonly blockedBy: GateHold['blockedBy']; readonly waitMs: number }
  | { readonly type: 'throttled'; readonly lane: string; readonly failure: ProviderFailure }
  /** A call failed; its document is tried again or has failed for good. */
  | {
      readonly type: 'failed';
      readonly lane: string;
      readonly line: number;
      readonly failure: ProviderFailure;
    }
  /** From here on one call at a time is made: one of so many documents may have brought the program down. */
  | { readonly type: 'suspects'; readonly left: number }
  /** This machine can open no connection now; the document goes back unharmed. */
  | { readonly type: 'machine_short'; readonly lane: string; readonly failure: ProviderFailure }
  /** Nothing that is sent over a lane is answered any more: it is paused, and asked now and then. */
  | { readonly type: 'lane_down'; readonly lane: string; readonly failure: ProviderFailure }
  | { readonly type: 'lane_up'; readonly lane: string; readonly downForMs: number }
  /** A lane's key or account fails, or its server is gone for too long; its work goes to the lanes that are left. */
  | { readonly type: 'lane_set_aside'; readonly lane: string; readonly failure: ProviderFailure }
  /** Calls of a model have another number of documents from here on. */
  | { readonly type: 'groups_sized'; readonly model: string; readonly documents: number }
  /** A call for so many documents failed: they go again in halves. */
  | { readonly type: 'group_split'; readonly documents: number }
  | { readonly type: 'limit_reached'; readonly limit: ReachedLimit }
  /** What became of so many documents was refused: their lease had ended, or they were cancelled meanwhile. */
  | { readonly type: 'leases_lost'; readonly documents: number }
  | {
      readonly type: 'halted';
      readonly lane: string;
      readonly failure: ProviderFailure;
      readonly series: FailedCalls | null;
    }
  /** Responses that go on at servers while this program does not run. */
  | { readonly type: 'responses_left'; readonly responses: number }
  /** An answer that is stored could not be removed at its server. */
  | { readonly type: 'response_kept'; readonly failure: ProviderFailure }
  | { readonly type: 'store_trouble'; readonly error: LlmBatchError }
  | { readonly type: 'store_recovered' }
  /** Outcomes that were paid for wait in a file for the next start. */
  | { readonly type: 'salvaged'; readonly outcomes: number; readonly path: string };

export interface DrainSnapshot {
  readonly completed: number;
  readonly failed: number;
  readonly openCalls: number;
  /** Calls whose answers servers work on in the background. */
  readonly openResponses: number;
  /** Of this drain. */
  readonly groups: GroupFigures;
  /** Of its calls that were answered, by ascending bucket. */
  readonly latencies: readonly LatencyBucket[];
  /** Calls that may be open now. */
  readonly concurrency: number;
  /** Known costs of calls settled in this drain. */
  readonly costMicroUsd: number;
  readonly waiting: number;
  readonly hold: GateHold | null;
  /** Lanes whose server does not answer, and since when (monotonic). */
  readonly down: Gate['down'];
  /** Tasks that wait for a later try are all that is left. */
  readonly onlyDelayedLeft: boolean;
  readonly nextDueAtMs: number | null;
  /** Documents that are worked on one at a time, since one may have brought the program down; 0 while none is. */
  readonly suspectsLeft: number;
  /** That are being made or are with providers; null where documents are sent directly. */
  readonly batches: readonly BatchRecord[] | null;
  readonly stopping: boolean;
  /** Monotonic time at which open calls are cut off; null while nobody has asked to stop. */
  readonly abortAtMs: number | null;
}

/** How long a store that refuses to commit is waited for before paid answers go to the salvage file. */
const STORE_TROUBLE_LIMIT_MS = 60_000;
/** A lease survives two missed heartbeats. */
const HEARTBEATS_PER_LEASE = 3;
/** In one transaction, which nothing else is done beside. */
const MOST_CLAIMED = 1_000;

export class Drain {
  readonly #options: DrainOptions;
  readonly #gate: Gate;
  readonly #journal: Journal;
  readonly #trouble: StoreTrouble;
  readonly #guard: Guard<PerformedCall>;
  readonly #background: BackgroundCalls;
  readonly #packer: Packer;
  readonly #groupSizes: GroupSizes;
  #groups = NO_GROUPS;
  /** Answered calls by the bucket of their latency. */
  readonly #latencies = new Map<number, number>();
  /** Calls on their way to being ready, and those that are: as many as may be open, since those may come back together. */
  readonly #stock: ReturnType<typeof pLimit>;
  /** Calls that have left and are not back. */
  readonly #pool: ReturnType<typeof pLimit>;
  readonly #callLimit: CallLimit;
  readonly #lease = new Lease();
  readonly #held = new Map<number, LeasedTask>();
  /** Monotonic times, of held tasks that throttling had sent back. */
  readonly #throttledSinceMs = new Map<number, number>();
  readonly #openCalls = new OpenCalls();
  readonly #context: CallContext;
  /** Groups that have left the packer and are not settled. */
  #calls = 0;
  /** Of them, those whose outcome is being committed. */
  #settling = 0;
  /** Of the group that left the packer last. */
  #documentsPerCall = 1;
  #woken = false;
  #endSleep: (() => void) | null = null;
  #completed = 0;
  #failed = 0;
  #costMicroUsd = 0;
  #abortAtMs: number | null = null;
  #stopping = false;
  #halted: { failure: ProviderFailure; lane: string } | null = null;
  #limitReached: ReachedLimit | null = null;
  #crash: { error: unknown } | null = null;
  /** What no file could take so far. */
  #unsalvaged: Settlement[] = [];
  /** Of the last try: whatever failed before, this is what the user has to hear of. */
  #salvageFailure: { error: unknown } | null = null;
  /** Responses that go on at servers. */
  #left = 0;
  /** Why the last of them cannot be asked for any more. */
  #unreachable: { failure: ProviderFailure; lane: string } | null = null;
  #hasToldSuspects = false;
  #hasToldKept = false;
  #onlyDelayedLeft = false;
  #nextDueAtMs: number | null = null;

  constructor(options: DrainOptions) {
    this.#options = options;
    this.#gate = new Gate(options.lanes, options.clock, options.isUntried, (waited) =>
      options.onNotice?.({ type: 'waited', ...waited }),
    );
    this.#background = new BackgroundCalls({
      ...options.background,
      ...{ clock: options.clock, random: options.random },
      timeoutMs: options.timeoutMs,
      maxWaitMs: options.retry.maxWaitMs,
      onKept: (failure) => this.#responseKept(failure),
    });
    const { concurrency, mostConnections } = options;
    // What servers work on in the background takes a place, and no connection.
    const connections = this.#background.task === 'send' ? Number.POSITIVE_INFINITY : mostConnections;
    this.#callLimit = new CallLimit(concurrency, connections);
    this.#pool = pLimit(this.#callLimit.now);
    this.#stock = pLimit(this.#callLimit.now);
    const { grouping, clock } = options;
    this.#groupSizes = new GroupSizes(grouping);
    const documentsFor = (prepared: PreparedTask): number => this.#groupSizes.documentsFor(kindOf(prepared));
    this.#packer = new Packer({ documentsFor, waitMs: grouping.waitMs }, clock, (group) => {
      this.#documentsPerCall = group.length;
      this.#start(group);
    });
    this.#guard = new Guard(options.isGuarded);
    this.#trouble = new StoreTrouble({
      clock: options.clock,
      limitMs: STORE_TROUBLE_LIMIT_MS,
      onChange: (error) => this.#troubleChanged(error),
    });
    this.#journal = new Journal({
      store: options.store,
      clock: options.clock,
      trouble: this.#trouble,
      salvage: (settlements) => this.#salvage(settlements),
      onCommitted: (settlements) => this.#committed(settlements),
      onLost: (taskIds) => options.onNotice?.({ type: 'leases_lost', documents: taskIds.length }),
    });
    this.#context = this.#contextOf(options);
  }

  snapshot(): DrainSnapshot {
    return {
      completed: this.#completed,
      failed: this.#failed,
      openCalls: this.#openCalls.size + this.#background.openRequests,
      openResponses: this.#background.open,
      groups: this.#groups,
      latencies: [...this.#latencies]
        .map(([bucket, calls]) => ({ bucket, calls }))
        .sort((one, other) => one.bucket - other.bucket),
      concurrency: this.#pool.concurrency,
      waiting: this.#gate.waiting,
      hold: this.#gate.hold,
      down: this.#gate.down,
      onlyDelayedLeft: this.#onlyDelayedLeft,
      nextDueAtMs: this.#nextDueAtMs,
      suspectsLeft: this.#heldSuspect?.suspectsLeft ?? 0,
      batches: null,
      stopping: this.#stopping,
      abortAtMs: this.#abortAtMs,
      costMicroUsd: this.#costMicroUsd,
    };
  }

  /** Sends nothing new; open calls may finish within the grace period. */
  stop(): void {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#gate.close();
    this.#options.budget?.close();
    this.#background.leave();
    this.#packer.flush();
    this.#wake();
    const { clock, graceMs } = this.#options;
    this.#abortAtMs = clock.monotonicMs() + graceMs;
    clock.after(graceMs, () => this.abort());
  }

  look(): void {
    this.#wake();
  }

  /** Cuts off open calls; their tasks go back with no attempt used. A store that is in trouble is waited for no more. */
  abort(): void {
    this.stop();
    this.#trouble.giveUp();
    this.#background.abort();
    this.#openCalls.cut();
  }

  /**
   * Drains the run.
   * @throws whatever the store threw when it could not be written any more
   */
  async run(): Promise<DrainEnding> {
    const stopHeartbeat = this.#startHeartbeat();
    try {
      await this.#adopt().catch((error: unknown) => this.#crashed([], error));
      await this.#claimUntilDone().catch((error: unknown) => this.#crashed([], error));
      this.#follow(this.#guard.idle(false));
      await this.#poolIdle();
      await this.#background.idle();
      await this.#journal.flush();
    } finally {
      stopHeartbeat();
    }
    const failure = this.#salvageFailure ?? this.#crash;
    if (failure !== null) throw failure.error;
    if (this.#left > 0) this.#options.onNotice?.({ type: 'responses_left', responses: this.#left });
    const halted = this.#halted ?? this.#unreachable;
    if (halted !== null) return { reason: 'halted', ...halted };
    if (this.#limitReached !== null) return { reason: 'limit_reached', limit: this.#limitReached };
    return { reason: this.#stopping ? 'stopped' : 'drained' };
  }

  /** Goes on with what earlier processes have left at servers. */
  async #adopt(): Promise<void> {
    const { store, runId, lanes, prepare, budget, clock } = this.#options;
    for (const { batch, remoteId, open } of await store.remote.responsesOf(runId)) {
      const lane = lanes.find(({ name }) => name === batch.lane);
      if (lane?.responses === undefined) throw laneMissing(batch);
      const response = { responses: lane.responses, remoteId, batchId: batch.id };
      if (open === null) {
        this.#remove(response);
        continue;
      }
      const { task, callId, startedAtMs } = open;
      const prepared = prepare(task);
      this.#held.set(task.taskId, task);
      this.#calls += 1;
      if ('refused' in prepared) {
        const outcome = failed({ task }, null, prepared.refused, clock.now());
        this.#settleCall({ call: null, outcomes: [outcome] }, response);
        continue;
      }
      const most = { costMicroUsd: batch.mostCostMicroUsd, tokens: batch.mostTokens };
      budget?.setAside(most);
      const group = [prepared];
      const { endpoint, bodyJson } = prepared.request;
      const request = { endpoint, bodyJson, parts: 1 };
      const call = { group, request, lane, callId, most, startedAtMs, response };
      const fetched = this.#pool(async () => {
        const performed = await fetchCall(call, this.#context);
        this.#laneHeard(performed);
        // Whatever came of it is paid for, and says nothing of how the run is set up now.
        this.#settle(performed);
      });
      void fetched.catch((error: unknown) => this.#crashed(tasksOf(group), error));
    }
  }

  async #claimUntilDone(): Promise<void> {
    const { store, runId, among } = this.#options;
    while (!this.#stopping && this.#background.task !== 'cancel') {
      const { concurrency } = this.#pool;
      // As many as are open, as many in the stock, and as many again for a claim of its own, beside those whose outcome is
      // being committed. A single call is that of the only documents held, so that three crashes tell whether one of
      // them is their cause.
      const capacity = concurrency === 1 ? 1 : concurrency * 3;
      const refillAt = capacity - concurrency;
      const ended = this.#guard.held.length + (concurrency === 1 ? 0 : this.#settling);
      const busy = this.#calls - ended;
      if (busy > refillAt || this.#trouble.isActive || this.#heldSuspect !== null) {
        await this.#nextWake(null);
        continue;
      }
      // As many as those calls will have, and as the groups that wait have room for, which are no calls yet.
      const wanted = Math.max((capacity - busy) * this.#documentsPerCall, this.#packer.room);
      const turn = await this.#turn();
      if (turn === 'later') {
        this.#packer.flush();
        await this.#nextWake(null);
        continue;
      }
      const tasks = turn === 'none' ? [] : await this.#claim(Math.min(wanted, MOST_CLAIMED), turn);
      for (const task of tasks) this.#begin(task);
      if (tasks.length > 0) continue;
      // There is nobody whom a group that is not full could wait for.
      this.#packer.flush();
      const waitMs = await store.nextDueMs(runId, among);
      const { held } = this.#guard;
      const isIdle = this.#held.size === held.reduce((sum, { group }) => sum + group.length, 0);
      if (waitMs === null && isIdle) {
        // What was held back may be tried again, so it is settled before the run counts as drained.
        if (held.length === 0) return;
        this.#follow(this.#guard.idle(true));
        continue;
      }
      this.#onlyDelayedLeft = isIdle;
      this.#nextDueAtMs = waitMs === null ? null : this.#options.clock.now() + waitMs;
      await this.#nextWake(waitMs);
      this.#onlyDelayedLeft = false;
    }
  }

  async #turn(): Promise<ClaimTurn> {
    const { turns } = this.#options;
    if (turns === undefined) return { atLeastPriority: Number.NEGATIVE_INFINITY, sharedBy: 1 };
    const turn = await this.#outlasting(() => turns.next(), 'none');
    if (typeof turn === 'object' && turn.sharedBy !== this.#callLimit.sharedBy) {
      this.#callLimit.sharedBy = turn.sharedBy;
      this.#applyConcurrency();
    }
    return turn;
  }

  #claim(limit: number, { atLeastPriority }: { readonly atLeastPriority: number }) {
    const { store, runId, workerId, leaseMs, among, clock } = this.#options;
    const claim = async () => {
      const askedAtMs = clock.monotonicMs();
      const tasks = await store.claimTasks({ runId, workerId, limit, leaseMs, among, atLeastPriority });
      if (tasks.length > 0) this.#lease.confirmed(askedAtMs, leastLeaseMs(leaseMs));
      return tasks;
    };
    return this.#outlasting<readonly LeasedTask[]>(claim, []);
  }

  /** Asks the store until it can answer. @returns `otherwise` when the drain was asked to stop meanwhile */
  async #outlasting<Value>(ask: () => Promise<Value>, otherwise: Value): Promise<Value> {
    try {
      return await this.#trouble.waitOut(ask, () => !this.#stopping);
    } catch (error) {
      if (this.#stopping && mayPass(error)) return otherwise;
      throw error;
    }
  }

  /** The store hands a suspect out alone, so any held task tells. */
  get #heldSuspect(): LeasedTask | null {
    for (const task of this.#held.values()) return isSuspect(task) ? task : null;
    return null;
  }

  #begin(task: LeasedTask): void {
    const { taskId, throttledForMs, suspectsLeft } = task;
    this.#held.set(taskId, task);
    if (throttledForMs !== null) {
      this.#throttledSinceMs.set(taskId, this.#options.clock.monotonicMs() - throttledForMs);
    }
    if (suspectsLeft !== undefined && !this.#hasToldSuspects) {
      this.#hasToldSuspects = true;
      this.#options.onNotice?.({ type: 'suspects', left: suspectsLeft });
    }
    const prepared = this.#options.prepare(task);
    if ('refused' in prepared) {
      const outcome = failed({ task }, null, prepared.refused, this.#options.clock.now());
      void this.#record({ call: null, outcomes: [outcome] }, null);
    } else if (isSuspect(task)) this.#start([prepared]);
    else this.#packer.add(prepared);
  }

  /** Calls are made ready ahead of their slots; not where one call at a time is made, which must be the only one in the ledger. */
  #start(group: readonly PreparedTask[]): void {
    this.#calls += 1;
    const isAlone = this.#pool.concurrency === 1 || hasSuspect(group);
    const started = isAlone
      ? this.#pool(() => this.#perform(group, (ready) => this.#send(ready)))
      : this.#stock(() => this.#perform(group, (ready) => this.#queue(ready)));
    void started.catch((error: unknown) => this.#crashed(tasksOf(group), error));
  }

  async #perform(group: readonly PreparedTask[], send: (ready: ReadyCall) => Promise<void>): Promise<void> {
    if (this.#isTooLargeByNow(group)) {
      for (const half of halvesOf(group)) this.#start(half);
      this.#calls -= 1;
      return;
    }
    const made = await this.#makeReady(group);
    if ('callId' in made) await send(made);
    else this.#ended(made);
  }

  /** Calls have fewer documents than when it was packed: it would be refused, or be too slow, as those before it were. */
  #isTooLargeByNow(group: readonly PreparedTask[]): boolean {
    const [first] = group;
    return (
      first !== undefined && group.length > 1 && group.length > this.#groupSizes.documentsFor(kindOf(first))
    );
  }

  /** Resolves when the call has a slot: until then it keeps its place in the stock. */
  #queue(ready: ReadyCall): Promise<void> {
    return new Promise((resolve) => {
      const sent = this.#pool(() => {
        resolve();
        return this.#send(ready);
      });
      void sent.catch((error: unknown) => this.#crashed(tasksOf(ready.group), error));
    });
  }

  async #makeReady(group: readonly PreparedTask[]): Promise<ReadyCall | PerformedCall> {
    if (!hasSuspect(group)) await this.#guard.cleared();
    return this.#stopping ? releasedGroup(group) : makeReady(group, this.#context);
  }

  async #send(ready: ReadyCall): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    // What it would bring could not be stored now, or it would be refused, or others make the same call.
    const stays =
      this.#trouble.isActive ||
      this.#gate.isRecalled(ready) ||
      this.#isTooLargeByNow(ready.group) ||
      !this.#lease.holds(ready.recordedAtMs, nowMs);
    this.#ended(stays ? withdrawCall(ready, this.#context) : await sendCall(ready, this.#context));
  }

  #ended(performed: PerformedCall): void {
    this.#laneHeard(performed);
    this.#adaptConcurrency(performed);
    this.#adaptGroups(performed);
    this.#noteLatency(performed);
    // A suspect that is held back would not be alone any more, and nothing more could be claimed.
    if (hasSuspect(performed.group)) this.#settle(performed);
    else this.#follow(this.#guard.add(performed, this.#openCalls.size + this.#background.open));
  }

  /** Does what the guard makes of the calls that have ended. */
  #follow({ settle, giveBack, convicted }: GuardReport<PerformedCall>): void {
    this.#wake();
    for (const each of settle) this.#settle(each);
    for (const performed of giveBack) {
      const { call, outcomes } = performed.settlement;
      const shareOf = (index: number) => outcomes[index]?.share ?? null;
      const back = performed.group.map((each, index) => released(each, shareOf(index)));
      this.#settle({ ...performed, settlement: { call, outcomes: back }, split: [] });
    }
    if (convicted === null) return;
    const { calls, failure, example } = convicted;
    const { line, key } = (example.group[0] as PreparedTask).task;
    if (example.lane !== null) this.#halt(failure, example.lane, { calls, line, key });
  }

  /** Acts upon what a call showed of its lane, and only then lets others follow a first one. */
  #laneHeard({
    failure,
    lane,
    laneChange,
    group,
  }: Pick<PerformedCall, 'failure' | 'lane' | 'laneChange' | 'group'>): void {
    if (lane === null) return;
    const { clock, onNotice, retry } = this.#options;
    const health = this.#gate.healthOf(lane);
    if (failure !== null) this.#failureSeen(failure, lane, (group[0] as PreparedTask).task);
    // Who stops does not ask again.
    if (laneChange?.type === 'down' && failure !== null && !this.#stopping)
      onNotice?.({ type: 'lane_down', lane: lane.name, failure });
    if (laneChange?.type === 'up') {
      const downForMs = clock.monotonicMs() - laneChange.downSinceMs;
      onNotice?.({ type: 'lane_up', lane: lane.name, downForMs });
    }
    const { downSinceMs } = health;
    const isGone = downSinceMs !== null && clock.monotonicMs() - downSinceMs >= retry.maxWaitMs;
    if (isGone && failure !== null) this.#setAside(lane, failure);
    health.ended(clock.monotonicMs());
    this.#gate.poke();
  }

  #adaptConcurrency({ settlement, failure, lane }: PerformedCall): void {
    const nowMs = this.#options.clock.monotonicMs();
    this.#callLimit.noteConnections(failure, this.#openCalls.size, nowMs);
    const isGone = lane !== null && this.#gate.healthOf(lane).downSinceMs !== null;
    if (!isGone) this.#callLimit.noteLatency(madeCall(settlement), failure, nowMs);
    this.#applyConcurrency();
  }

  #applyConcurrency(): void {
    const { now } = this.#callLimit;
    // The pool looks through its queue whenever it is told.
    if (now === this.#pool.concurrency) return;
    this.#pool.concurrency = now;
    this.#stock.concurrency = now;
  }

  #adaptGroups({ group, settlement, isAnswered, failure, split }: PerformedCall): void {
    const [first] = group;
    const call = madeCall(settlement);
    // What goes alone says nothing of groups.
    if (first === undefined || first.grouping === null || call === null) return;
    const { length: documents } = group;
    const { onNotice } = this.#options;
    const size = this.#groupSizes.of(kindOf(first));
    const before = size.documents;
    if (isAnswered) size.answered(documents, call.latencyMs);
    else if (failure?.kind === 'too_large') size.refusedAsTooLarge(documents);
    else if (failure?.kind === 'timeout') size.timedOut(documents);
    if (size.documents !== before) {
      onNotice?.({ type: 'groups_sized', model: first.model, documents: size.documents });
    }
    if (documents === 1) return;
    const splits = split.length > 0 ? 1 : 0;
    if (splits > 0) onNotice?.({ type: 'group_split', documents });
    const one: GroupFigures = { calls: 1, documents, fewest: documents, most: documents, splits };
    this.#groups = addGroups(this.#groups, one);
  }

  #noteLatency({ settlement, isAnswered }: PerformedCall): void {
    const call = madeCall(settlement);
    if (!isAnswered || call === null) return;
    const bucket = latencyBucket(call.latencyMs);
    this.#latencies.set(bucket, (this.#latencies.get(bucket) ?? 0) + 1);
  }

  #settle({ group, settlement, split, response, lane, left }: PerformedCall): void {
    this.#settleCall(settlement, response);
    if (left !== null) this.#leave(group, lane, left.failure);
    for (const each of split) this.#start(each);
  }

  #leave(group: readonly PreparedTask[], lane: Lane | null, failure: ProviderFailure | null): void {
    this.#left += 1;
    if (failure !== null && lane !== null) {
      this.#unreachable = { failure, lane: lane.name };
      this.#setAside(lane, failure);
    }
    this.#letGo(tasksOf(group));
  }

  #remove(response: OpenedResponse): void {
    this.#background.remove(response, () => this.#journal.ended(response.batchId));
  }

  #responseKept(failure: ProviderFailure): void {
    if (!this.#hasToldKept) this.#options.onNotice?.({ type: 'response_kept', failure });
    this.#hasToldKept = true;
  }

  #settleCall(settlement: Settlement, response: OpenedResponse | null): void {
    this.#settling += 1;
    void this.#record(settlement, response).then(() => {
      this.#settling -= 1;
      this.#calls -= 1;
      this.#wake();
    });
  }

  /** The slot is free as soon as the answer is here; the commit goes on beside the next call. */
  async #record(settlement: Settlement, response: OpenedResponse | null): Promise<void> {
    if (settlement.call === null && settlement.outcomes.length === 0) return;
    await this.#journal.settle(settlement).then(
      () => {
        // What is not on disk is nowhere else.
        if (response !== null) this.#remove(response);
        this.#letGo(settlement.outcomes);
      },
      (error: unknown) => this.#crashed(settlement.outcomes, error),
    );
  }

  #letGo(tasks: readonly Pick<LeasedTask, 'taskId'>[]): void {
    for (const { taskId } of tasks) {
      this.#held.delete(taskId);
      this.#throttledSinceMs.delete(taskId);
    }
    this.#wake();
  }

  #contextOf({ join, clock, random, retry, timeoutMs, runId }: DrainOptions): CallContext {
    return {
      runId,
      join,
      clock,
      random,
      retry,
      timeoutMs,
      gate: this.#gate,
      journal: this.#journal,
      openCalls: this.#openCalls,
      mayBeDown: () => !this.#guard.isWatching,
      throttledSinceMs: ({ taskId }) => this.#throttledSinceMs.get(taskId) ?? null,
      background: this.#background,
      onAccepted: (group, lane, laneChange) => this.#laneHeard({ group, lane, laneChange, failure: null }),
      budget: this.#options.budget,
      onExhausted: (lacking) => this.#reachLimit(lacking),
      onSent: (call) => this.#options.onNotice?.({ type: 'call_started', call }),
      onEnded: (call, end) => this.#options.onNotice?.({ type: 'call_ended', call, end }),
    };
  }

  #failureSeen(failure: ProviderFailure, lane: Lane, task: LeasedTask): void {
    const notify = this.#options.onNotice;
    if (failure.shortOf !== undefined) {
      notify?.({ type: 'machine_short', lane: lane.name, failure });
    } else if (failure.kind === 'rate_limited') {
      notify?.({ type: 'throttled', lane: lane.name, failure });
    } else if (!haltsRun(failure.kind)) {
      notify?.({ type: 'failed', lane: lane.name, line: task.line, failure });
    } else {
      this.#setAside(lane, failure);
    }
  }

  #setAside(lane: Lane, failure: ProviderFailure): void {
    if (this.#gate.setAside(lane) === 0) this.#halt(failure, lane, null);
    else this.#options.onNotice?.({ type: 'lane_set_aside', lane: lane.name, failure });
  }

  #reachLimit(limit: ReachedLimit): void {
    if (this.#stopping) return;
    this.#limitReached = limit;
    this.#options.onNotice?.({ type: 'limit_reached', limit });
    this.stop();
  }

  #halt(failure: ProviderFailure, lane: Lane, series: FailedCalls | null): void {
    if (this.#halted !== null) return;
    this.#halted = { failure, lane: lane.name };
    this.#options.onNotice?.({ type: 'halted', lane: lane.name, failure, series });
    this.stop();
  }

  #committed(settlements: readonly Settlement[]): void {
    const settled: SettledTask[] = [];
    for (const settlement of settlements) {
      this.#costMicroUsd += madeCall(settlement)?.costMicroUsd ?? 0;
      for (const outcome of settlement.outcomes) {
        if (outcome.action === 'completed') this.#completed += 1;
        else if (outcome.action === 'failed') this.#failed += 1;
        const task = this.#held.get(outcome.taskId);
        if (task !== undefined) settled.push({ task, outcome });
      }
    }
    if (settled.length > 0) this.#options.onSettled?.(settled);
    if (this.#options.tooManyFailures?.(this.#completed, this.#failed)) this.#reachLimit('failures');
  }

  #troubleChanged(error: LlmBatchError | null): void {
    this.#options.onNotice?.(error === null ? { type: 'store_recovered' } : { type: 'store_trouble', error });
    this.#wake();
  }

  async #salvage(settlements: readonly Settlement[]): Promise<void> {
    this.#unsalvaged.push(...settlements);
    try {
      const path = await this.#options.salvage(this.#unsalvaged);
      this.#options.onNotice?.({ type: 'salvaged', outcomes: this.#unsalvaged.length, path });
      this.#unsalvaged = [];
      this.#salvageFailure = null;
    } catch (error) {
      this.#salvageFailure = { error };
      throw error;
    }
  }

  /**
   * What must not happen has happened: end, and leave the task to the next start, which puts it back. A store that
   * fails says nothing against the calls that are open: they are paid for, and what they bring can be salvaged.
   */
  #crashed(tasks: readonly Pick<LeasedTask, 'taskId'>[], error: unknown): void {
    this.#crash ??= { error };
    this.#letGo(tasks);
    if (error instanceof LlmBatchError) this.stop();
    else this.abort();
  }

  #startHeartbeat(): () => void {
    const { store, clock, workerId, leaseMs } = this.#options;
    const ended = new AbortController();
    const beat = async (): Promise<void> => {
      while (!ended.signal.aborted) {
        await clock.sleep(leaseMs / HEARTBEATS_PER_LEASE, ended.signal);
        if (ended.signal.aborted || this.#trouble.isActive) continue;
        const askedAtMs = clock.monotonicMs();
        // A lease outlives the beat that is left out; whoever has something to store deals with the trouble.
        await store.beat(workerId, leaseMs).then(
          () => this.#lease.confirmed(askedAtMs, leaseMs),
          (error: unknown) => {
            if (!mayPass(error)) throw error;
          },
        );
      }
    };
    void beat().catch((error: unknown) => this.#crashed([], error));
    return () => ended.abort();
  }

  /** A wake that comes while nobody sleeps is kept for the next sleeper, so that none is lost. */
  #wake(): void {
    this.#woken = true;
    this.#endSleep?.();
  }

  /** Keeps the process alive no more than a timer of the clock's does: the heartbeat does that for the whole drain. */
  async #nextWake(limitMs: number | null): Promise<void> {
    if (!this.#woken) {
      await new Promise<void>((resolve) => {
        this.#endSleep = resolve;
        if (limitMs === null) return;
        const cancel = this.#options.clock.after(Math.max(0, limitMs), resolve);
        this.#endSleep = () => {
          cancel();
          resolve();
        };
      });
      this.#endSleep = null;
    }
    this.#woken = false;
  }

  async #poolIdle(): Promise<void> {
    while (this.#held.size > 0) await this.#nextWake(null);
  }
}

function tasksOf(group: readonly PreparedTask[]): readonly LeasedTask[] {
  return group.map(({ task }) => task);
}

function hasSuspect(group: readonly PreparedTask[]): boolean {
  return group.some(({ task }) => isSuspect(task));
}

function isSuspect(task: LeasedTask): boolean {
  return task.crashCount >= SUSPECT_AFTER_CRASHES;
}
