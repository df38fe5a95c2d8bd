/** A store and a small model of it: every step is done to both, and what they say is compared. */
import { expect } from 'vitest';
import { type Clock, systemClock } from '../../src/core/clock.js';
import type { FailureKind } from '../../src/core/failure.js';
import type { SharedFrom } from '../../src/core/outcome.js';
import {
  type LeasedTask,
  MOST_CRASHED_TOGETHER,
  type NewTask,
  SUSPECT_AFTER_CRASHES,
  TASK_STATES,
  type TaskState,
} from '../../src/core/task.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';
import {
  callEnd,
  completed,
  createRun,
  failed,
  NOW_MS,
  RERUN,
  released,
  retried,
  startCall,
  taskError,
} from '../contract/store/builders.js';

const LEASE_MS = 1_000;

export const WORKERS = ['alpha', 'beta'] as const;
export type Worker = (typeof WORKERS)[number];

interface ModelTask {
  readonly key: string;
  /** 0 until the store has given one. */
  id: number;
  requestHash: string;
  line: number;
  priority: number;
  state: TaskState;
  gone: boolean;
  attempts: number;
  crashCount: number;
  loneCrashCount: number;
  notBeforeMs: number;
  worker: Worker | null;
  token: string | null;
  kind: FailureKind | null;
  /** What its result says: an output or a message. */
  answer: string | null;
  /** The task whose answer it waits for. */
  sourceId: number | null;
  sharedFrom: SharedFrom | null;
  /** Answers to requests it had before, by their hash. */
  readonly earlier: Map<string, Pick<ModelTask, 'answer' | 'attempts' | 'sharedFrom'>>;
}

export interface Sharing {
  readonly dedupe: boolean;
  /** Take answers of the store's other runs. */
  readonly reuse: boolean;
  /** Tasks to look at in one page. */
  readonly limit: number;
}

/** Opened again by a step, as the next process would. */
export class ModelledStore {
  readonly #path: string;
  readonly #runs: ModelledRun[] = [];
  /** What has happened at least once: a test that never gets there would prove nothing. */
  readonly reached = new Set<string>();
  store: Store;
  readonly #clock: Clock;
  /** Until when each worker is alive. */
  readonly #leases = new Map<Worker, number>();
  #answers = 0;

  private constructor(path: string, store: Store, clock: Clock) {
    this.#path = path;
    this.store = store;
    this.#clock = clock;
  }

  static async open(path: string): Promise<ModelledStore> {
    const time = { passedMs: 0 };
    const now = { now: () => NOW_MS + time.passedMs, monotonicMs: () => time.passedMs };
    const clock = { ...systemClock, ...now };
    const place = new ModelledStore(path, await openStore(path, { mode: 'write', clock }), clock);
    place.wait = (forMs) => {
      time.passedMs += forMs;
    };
    return place;
  }

  wait: (forMs: number) => void = () => undefined;

  get nowMs(): number {
    return this.#clock.now();
  }

  get runs(): readonly ModelledRun[] {
    return this.#runs;
  }

  async addRun(name: string, tasks: readonly NewTask[]): Promise<ModelledRun> {
    const { id } = await createRun(this.store, name);
    const run = new ModelledRun(this, id);
    this.#runs.push(run);
    await run.add(tasks);
    return run;
  }

  /** Swept up in pages, of which a crash may interrupt the first. */
  async deleteRun(run: ModelledRun, pageRows: number, crash: boolean): Promise<void> {
    this.#runs.splice(this.#runs.indexOf(run), 1);
    await this.store.deleteRun(run.id);
    if (crash) {
      await this.store.maintenance.sweepDeletedRuns(null, pageRows);
      await this.restart();
    }
    let cursor: string | null = null;
    do cursor = await this.store.maintenance.sweepDeletedRuns(cursor, pageRows);
    while (cursor !== null);
  }

  async restart(): Promise<void> {
    await this.store.close();
    this.store = await openStore(this.#path, { mode: 'write', clock: this.#clock });
  }

  claiming(worker: Worker): void {
    if ((this.#leases.get(worker) ?? 0) < this.nowMs + LEASE_MS / 2) this.#lease(worker);
  }

  #lease(worker: Worker): void {
    this.#leases.set(worker, this.nowMs + LEASE_MS);
  }

  async beat(worker: Worker): Promise<void> {
    await this.store.beat(worker, LEASE_MS);
    this.#lease(worker);
  }

  /** @param workers null: those whose lease has ended */
  async rescue(workers: readonly Worker[] | null, crashLimit: number): Promise<void> {
    const report = await this.store.rescueTasks({ crashLimit, ...(workers !== null && { workers }) });
    let rescued = 0;
    let poisoned = 0;
    const dead = WORKERS.filter((worker) =>
      workers === null ? (this.#leases.get(worker) ?? Infinity) < this.nowMs : workers.includes(worker),
    );
    for (const worker of dead) {
      this.#leases.delete(worker);
      const isAlone = this.heldBy(worker).length === 1;
      for (const run of this.#runs) {
        const ofRun = run.rescue(worker, crashLimit, isAlone);
        rescued += ofRun.rescued;
        poisoned += ofRun.poisoned;
      }
    }
    if (rescued > 0 && dead.length < WORKERS.length) this.reached.add('rescued one of two');
    expect(report).toMatchObject({ rescued, poisoned });
  }

  /** Tasks of whichever run that a worker has in progress. */
  heldBy(worker: Worker): ModelTask[] {
    return this.#runs.flatMap((run) => run.inProgress()).filter((task) => task.worker === worker);
  }

  /** Every answer is another, and says for which request it is. */
  newAnswer(requestHash: string): string {
    this.#answers += 1;
    return `${requestHash} ${this.#answers}`;
  }

  taskOf(id: number | null): { run: ModelledRun; task: ModelTask } | null {
    for (const run of this.#runs) {
      const task = run.tasks.find((one) => one.id === id);
      if (task !== undefined) return { run, task };
    }
    return null;
  }
}

export class ModelledRun {
  readonly id: number;
  readonly #place: ModelledStore;
  readonly #tasks = new Map<string, ModelTask>();
  /** Every lease that was ever given, and the open call of it; old ones are used again on purpose. */
  readonly #leases: {
    readonly task: LeasedTask;
    readonly worker: Worker;
    callId: number | null;
    isOpen: boolean;
  }[] = [];
  /** How far an interrupted pairing came is not modelled: nobody works on the run before it is paired anew. */
  #isHalfPaired = false;

  constructor(place: ModelledStore, id: number) {
    this.#place = place;
    this.id = id;
  }

  get tasks(): readonly ModelTask[] {
    return [...this.#tasks.values()];
  }

  async add(tasks: readonly NewTask[]): Promise<void> {
    const fresh = tasks.filter((task) => !this.#tasks.has(task.key));
    for (const task of fresh) this.#tasks.set(task.key, newModelTask(task));
    expect(await this.#store.addTasks(this.id, tasks)).toEqual({
      added: fresh.length,
      duplicates: tasks.length - fresh.length,
    });
    await this.#learnIds();
  }

  /** Tasks get their numbers in the order in which they are added. */
  async #learnIds(): Promise<void> {
    const known = new Set(this.tasks.map(({ id }) => id));
    const listed = await this.#store.listTasks(this.id, 0, 100);
    const ids = listed.map(({ taskId }) => taskId).filter((id) => !known.has(id));
    const added = this.tasks.filter(({ id }) => id === 0);
    expect(ids).toHaveLength(added.length);
    for (const [index, task] of added.entries()) task.id = ids[index] ?? 0;
  }

  async reimport(tasks: readonly NewTask[], keepFinished: boolean, crash: boolean): Promise<void> {
    await this.#store.beginReimport(this.id);
    if (crash) {
      // What a crashed import has done is done again by the next.
      await this.#reimportPage(tasks.slice(0, 2), keepFinished);
      await this.#store.beginReimport(this.id);
    }
    await this.#reimportPage(tasks.slice(0, 3), keepFinished);
    await this.#reimportPage(tasks.slice(3), keepFinished);
    const named = new Set(tasks.map((task) => task.key));
    const leaving = [...this.#tasks.values()].filter((task) => !task.gone && !named.has(task.key));
    for (const task of leaving) task.gone = true;
    expect(await this.#store.finishReimport(this.id)).toEqual({ gone: leaving.length });
  }

  async #reimportPage(tasks: readonly NewTask[], keepFinished: boolean): Promise<void> {
    const tally = { added: 0, unchanged: 0, replaced: 0, kept: 0, answeredBefore: 0 };
    for (const task of tasks) {
      const known = this.#tasks.get(task.key);
      const place = { line: task.line, priority: task.priority, gone: false };
      if (known === undefined) {
        this.#tasks.set(task.key, newModelTask(task));
        tally.added += 1;
        continue;
      }
      const isFinished = known.state === 'completed';
      const isUnchanged = known.requestHash === task.requestHash;
      const answered = isUnchanged && isFinished ? undefined : known.earlier.get(task.requestHash);
      if (answered !== undefined) {
        replace(known, task);
        known.earlier.delete(task.requestHash);
        Object.assign(known, { ...answered, state: 'completed' });
        tally.answeredBefore += 1;
      } else if (isUnchanged) {
        Object.assign(known, place);
        tally.unchanged += 1;
      } else if (keepFinished && isFinished) {
        Object.assign(known, place);
        tally.kept += 1;
      } else {
        replace(known, task);
        tally.replaced += 1;
      }
    }
    const options = { ...RERUN, keepFinished };
    expect(await this.#store.reimportTasks(this.id, tasks, options)).toEqual(tally);
    await this.#learnIds();
    for (const [what, count] of Object.entries(tally)) if (count > 0) this.#reached.add(`reimport: ${what}`);
  }

  async claim(limit: number, worker: Worker = 'alpha'): Promise<void> {
    if (this.#isHalfPaired) await this.pair({ dedupe: true, reuse: true, limit });
    for (const task of this.#tasks.values()) {
      if (task.state === 'delayed' && !task.gone && task.notBeforeMs <= this.#nowMs) task.state = 'ready';
    }
    const expected = this.#claimable(limit, worker);
    if (expected.some(isSuspect)) this.#reached.add('claimed a suspect');
    const claimed = await this.#store.claimTasks({
      runId: this.id,
      workerId: worker,
      limit,
      leaseMs: LEASE_MS,
    });
    this.#place.claiming(worker);
    expect(
      claimed.map(({ key, line, attempts, crashCount }) => ({ key, line, attempts, crashCount })),
    ).toEqual(expected.map(({ key, line, attempts, crashCount }) => ({ key, line, attempts, crashCount })));
    for (const task of claimed) {
      this.#leases.push({ task, worker, callId: null, isOpen: false });
      Object.assign(this.#modelOf(task), { state: 'in_progress', token: task.attemptToken, worker });
    }
  }

  #claimable(limit: number, worker: Worker = 'alpha'): ModelTask[] {
    const ready = [...this.#tasks.values()]
      .filter((task) => task.state === 'ready' && !task.gone && task.sourceId === null)
      .sort((a, b) => b.priority - a.priority || a.line - b.line);
    const held = this.#place.heldBy(worker);
    if (held.some(isSuspect)) return [];
    const others = ready.filter((task) => !isSuspect(task));
    if (others.length === 0) {
      // The sort is stable.
      const suspects = [...ready].sort((a, b) => a.loneCrashCount - b.loneCrashCount);
      return held.length === 0 ? suspects.slice(0, 1) : [];
    }
    const claimable: ModelTask[] = [];
    let crashed = held.filter((task) => task.crashCount > 0).length;
    for (const task of others.slice(0, limit)) {
      if (task.crashCount > 0) crashed += 1;
      if (crashed > MOST_CRASHED_TOGETHER) break;
      claimable.push(task);
    }
    return claimable;
  }

  inProgress(): ModelTask[] {
    return [...this.#tasks.values()].filter((task) => task.state === 'in_progress');
  }

  async start(which: number): Promise<void> {
    const lease = this.#leases.at(-1 - (which % Math.max(1, this.#leases.length)));
    const model = lease && this.#modelOf(lease.task);
    if (lease === undefined || lease.callId !== null || model?.token !== lease.task.attemptToken) return;
    lease.callId = await startCall(this.#store, this.id, lease.task, this.#nowMs);
    lease.isOpen = true;
  }

  async settle(which: number, as: string): Promise<void> {
    const lease = this.#leases.at(-1 - (which % Math.max(1, this.#leases.length)));
    if (lease === undefined) return;
    const { task, callId } = lease;
    const call = callId === null ? null : callEnd(callId, as === 'failed' ? { kind: 'refused' } : {});
    const model = this.#modelOf(task);
    const answer = this.#place.newAnswer(model.requestHash);
    const outcome =
      as === 'completed'
        ? completed(task, call, {
            outputJson: JSON.stringify(answer),
            model: 'model-1',
            finishReason: 'stop',
            responseJson: bodyOf(answer),
          })
        : as === 'failed'
          ? failed(task, 'refused', call, taskError('refused', { message: answer }))
          : as === 'retry'
            ? retried(task, 500, call)
            : released(task, as === 'throttled' ? 500 : null, as === 'throttled', call);
    const { lostTaskIds } = await this.#store.record([], [outcome]);
    lease.isOpen = false;

    const ours = model.state === 'in_progress' && model.token === task.attemptToken;
    expect(lostTaskIds).toEqual(ours ? [] : [task.taskId]);
    if (!ours) {
      this.#reached.add(`lost as ${as}`);
      return;
    }
    model.token = null;
    if (as === 'completed' || as === 'failed' || as === 'retry') model.attempts += 1;
    if (as === 'completed' || as === 'failed') model.answer = answer;
    if (as === 'failed') model.kind = 'refused';
    model.notBeforeMs = this.#nowMs + 500;
    model.state = as === 'completed' || as === 'failed' ? as : as === 'released' ? 'ready' : 'delayed';
  }

  /** The model's part of it. @param isAlone it was the worker's only task */
  rescue(worker: Worker, crashLimit: number, isAlone: boolean): { rescued: number; poisoned: number } {
    const held = this.inProgress().filter((task) => task.worker === worker);
    const open = this.#leases.filter((lease) => lease.worker === worker && lease.isOpen);
    for (const lease of open) lease.isOpen = false;
    let poisoned = 0;
    for (const task of held) {
      const wasOpen = open.some((lease) => lease.task.key === task.key);
      const wasAlone = wasOpen && isAlone;
      if (wasOpen) task.crashCount += 1;
      if (wasAlone) task.loneCrashCount += 1;
      const poison = wasAlone && task.loneCrashCount >= crashLimit;
      if (poison) poisoned += 1;
      const message = `The program died ${task.loneCrashCount} times while it worked on this document alone.`;
      Object.assign(task, {
        state: poison ? 'failed' : 'ready',
        kind: poison ? 'poison' : null,
        answer: poison ? message : null,
        token: null,
        worker: null,
      });
    }
    return { rescued: held.length - poisoned, poisoned };
  }

  /** Pairs from the start, once what is in progress has been let go. */
  async pair(sharing: Sharing): Promise<void> {
    await this.#releaseAll();
    let cursor: string | null = null;
    do cursor = await this.#pairPage(sharing, cursor);
    while (cursor !== null);
    this.#pairModel(sharing);
  }

  /**
   * A crash after some pages, of which the next process knows nothing. Delays have passed: a delayed task that is paired
   * loses its delay, and which ones the pages reached is not modelled.
   */
  async pairInPart(sharing: Sharing, pages: number): Promise<void> {
    this.#place.wait(10_000);
    await this.claim(1);
    await this.#releaseAll();
    let cursor: string | null = null;
    for (let page = 0; page < pages; page += 1) {
      cursor = await this.#pairPage(sharing, cursor);
      if (cursor === null) return this.#pairModel(sharing);
    }
    this.#isHalfPaired = true;
    this.#reached.add('crashed while pairing');
    await this.#place.restart();
  }

  #pairPage({ dedupe, reuse, limit }: Sharing, cursor: string | null): Promise<string | null> {
    const reuseFrom = reuse ? this.#otherRuns().map(({ id }) => id) : [];
    return this.#store.pairTasks({ runId: this.id, dedupe, reuseFrom }, cursor, limit);
  }

  #otherRuns(): ModelledRun[] {
    return this.#place.runs.filter((run) => run !== this);
  }

  #pairModel({ dedupe, reuse }: Sharing): void {
    this.#isHalfPaired = false;
    for (const task of this.tasks) if (task.state === 'ready') letGo(task);
    const answering = [
      ...(dedupe ? this.tasks : []),
      ...(reuse ? this.#otherRuns() : []).flatMap((run) => run.tasks),
    ]
      .filter((task) => task.state === 'completed')
      .sort((a, b) => a.id - b.id);
    const open = this.tasks
      .filter(({ state, gone }) => !gone && (state === 'ready' || state === 'delayed'))
      .sort((a, b) => b.priority - a.priority || a.id - b.id);
    for (const task of open) {
      const source = [...answering, ...(dedupe ? open : [])].find(
        (one) => one.requestHash === task.requestHash,
      );
      if (source === undefined || source === task) continue;
      task.sourceId = source.id;
      task.state = 'ready';
      task.sharedFrom = this.tasks.includes(source) ? 'run' : 'earlier_run';
    }
  }

  async settlePairs(limit: number): Promise<void> {
    if (this.#isHalfPaired) await this.pair({ dedupe: true, reuse: true, limit });
    const settled: number[] = [];
    for (const task of this.tasks) {
      if (task.state !== 'ready' || task.gone || task.sourceId === null) continue;
      const source = this.#place.taskOf(task.sourceId);
      const isOwn = source?.run === this;
      const { state, kind, answer, gone } = source?.task ?? {};
      if (
        source?.task.requestHash === task.requestHash &&
        (state === 'completed' || (isOwn && state === 'failed'))
      ) {
        Object.assign(task, { state, kind, answer, sourceId: null });
        settled.push(task.id);
        this.#reached.add(`${state} as in ${task.sharedFrom}`);
      } else if (source?.task.requestHash === task.requestHash && isOwn && !gone) {
        this.#reached.add('waits on');
      } else {
        letGo(task);
        this.#reached.add('waited in vain');
      }
    }
    const told: number[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const page = await this.#store.settlePairs(this.id, after, limit);
      told.push(...page.settledTaskIds);
      after = page.lastTaskId;
    }
    expect(told).toEqual(settled);
  }

  async #releaseAll(): Promise<void> {
    for (const [index, { task }] of this.#leases.entries()) {
      if (this.#modelOf(task).token === task.attemptToken) {
        await this.settle(this.#leases.length - 1 - index, 'released');
      }
    }
  }

  /** To the end, on from wherever it was left: nothing is to wait for ever. */
  async drain(sharing: Sharing): Promise<void> {
    await this.pair(sharing);
    await this.settlePairs(sharing.limit);
    do {
      this.#place.wait(10_000);
      await this.claim(4);
      for (const { key } of this.inProgress()) {
        const lease = this.#leases.findLastIndex(({ task }) => task.key === key);
        await this.settle(this.#leases.length - 1 - lease, key < 'key-3' ? 'failed' : 'completed');
      }
    } while (this.#claimable(1).length > 0);
    await this.settlePairs(sharing.limit);
    const { counts } = await this.#store.summarizeRun(this.id);
    expect(counts).toMatchObject({ ready: 0, delayed: 0, in_progress: 0 });
  }

  /** All failed tasks, or one of them by its key; an unknown key where there are fewer. */
  async retryFailed(which: number | null): Promise<void> {
    const failedTasks = [...this.#tasks.values()].filter((task) => task.state === 'failed' && !task.gone);
    const retrying = which === null ? failedTasks : failedTasks.slice(which, which + 1);
    const filter = which === null ? {} : { key: retrying[0]?.key ?? 'unknown' };
    if (retrying.length > 0) this.#reached.add(which === null ? 'retried all' : 'retried one');
    for (const task of retrying) {
      Object.assign(task, {
        ...{ state: 'ready', kind: null, answer: null, sharedFrom: null },
        ...{ attempts: 0, crashCount: 0, loneCrashCount: 0 },
      });
    }
    expect(await this.#store.retryTasks(this.id, filter)).toBe(retrying.length);
  }

  /** Counters against the model, and results against it, in order. */
  async compare(): Promise<void> {
    this.#compareRequests();
    const summary = await this.#store.summarizeRun(this.id);
    const present = [...this.#tasks.values()].filter((task) => !task.gone);
    for (const task of this.#tasks.values()) {
      this.#reached.add(
        `${task.gone ? 'gone ' : ''}${task.state}${task.kind === 'poison' ? ' by poison' : ''}`,
      );
    }
    const counts = Object.fromEntries(
      TASK_STATES.map((state) => [state, present.filter((task) => task.state === state).length]),
    );
    const failedByKind: Record<string, number> = {};
    for (const { kind } of present) if (kind !== null) failedByKind[kind] = (failedByKind[kind] ?? 0) + 1;
    expect(summary.counts).toEqual(counts);
    expect(summary.failedByKind).toEqual(failedByKind);
    expect(summary.gone).toBe(this.#tasks.size - present.length);
    if (!this.#isHalfPaired) {
      const shared = (from: SharedFrom) =>
        present.filter(({ state, sharedFrom }) => state === 'completed' && sharedFrom === from).length;
      expect(summary.shared).toEqual({
        withinRun: shared('run'),
        fromEarlierRuns: shared('earlier_run'),
        waiting: present.filter(({ sourceId }) => sourceId !== null).length,
      });
    }

    const rows = await this.#store.readResults({
      runId: this.id,
      only: 'all',
      afterLine: 0,
      limit: 100,
      includeBody: false,
      includeResponse: true,
    });
    const settled = present
      .filter((task) => task.state === 'completed' || task.state === 'failed')
      .sort((a, b) => a.line - b.line);
    expect(
      rows.map(({ key, line, state, attempts, sharedFrom, result, error }) => {
        const answer = result === null ? error?.message : JSON.parse(result.outputJson);
        if (result !== null) expect(result.responseJson).toBe(bodyOf(answer));
        return { key, line, state, attempts, sharedFrom, answer };
      }),
    ).toEqual(
      settled.map(({ key, line, state, attempts, sharedFrom, answer }) => {
        return { key, line, state, attempts, sharedFrom, answer };
      }),
    );
  }

  /** No answer to another request, whatever the model says. */
  #compareRequests(): void {
    const wrong = this.tasks.filter(
      ({ state, answer, requestHash }) => state === 'completed' && !answer?.startsWith(`${requestHash} `),
    );
    expect(wrong).toEqual([]);
  }

  async cancel(): Promise<void> {
    const open = [...this.#tasks.values()].filter(({ state }) => state !== 'completed' && state !== 'failed');
    for (const task of open) {
      letGo(task);
      task.state = 'cancelled';
    }
    this.#isHalfPaired = false;
    expect(await this.#store.cancelRun(this.id)).toBe(open.length);
  }

  get #store(): Store {
    return this.#place.store;
  }

  get #nowMs(): number {
    return this.#place.nowMs;
  }

  get #reached(): Set<string> {
    return this.#place.reached;
  }

  #modelOf(task: Pick<LeasedTask, 'key'>): ModelTask {
    const model = this.#tasks.get(task.key);
    if (model === undefined) throw new Error(`the model has no ${task.key}`);
    return model;
  }
}

function isSuspect(task: ModelTask): boolean {
  return task.crashCount >= SUSPECT_AFTER_CRASHES;
}

function letGo(task: ModelTask): void {
  task.sourceId = null;
  task.sharedFrom = null;
}

function newModelTask(task: NewTask): ModelTask {
  return {
    key: task.key,
    requestHash: task.requestHash,
    line: task.line,
    priority: task.priority,
    state: 'ready',
    gone: false,
    attempts: 0,
    crashCount: 0,
    loneCrashCount: 0,
    notBeforeMs: 0,
    worker: null,
    token: null,
    kind: null,
    id: 0,
    answer: null,
    sourceId: null,
    sharedFrom: null,
    earlier: new Map(),
  };
}

/** It is ready to be asked anew; an answer that it had is kept. */
function replace(known: ModelTask, task: NewTask): void {
  const { id, earlier, answer, attempts, sharedFrom } = known;
  if (known.state === 'completed') earlier.set(known.requestHash, { answer, attempts, sharedFrom });
  Object.assign(known, { ...newModelTask(task), id, earlier });
}

/** What a server wrote around an answer. */
function bodyOf(answer: string): string {
  return JSON.stringify({ choices: [{ message: { content: answer } }] });
}
