/**
 * Random work on a store against a model of a few dozen lines: whatever the order of imports, claims, outcomes,
 * crashes and retries, the store tells the same states, and its counters equal a recount.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { FailureKind } from '../../src/core/failure.js';
import { TASK_STATES, type TaskState } from '../../src/core/task.js';
import { openStore } from '../../src/store/open.js';
import {
  type LeasedTask,
  MOST_CRASHED_TOGETHER,
  type NewTask,
  type Store,
  SUSPECT_AFTER_CRASHES,
} from '../../src/store/store.js';
import {
  callEnd,
  completed,
  createRun,
  document,
  failed,
  NOW_MS,
  released,
  retried,
  startCall,
} from '../contract/store/builders.js';

const LEASE_MS = 1_000;

interface ModelTask {
  readonly key: string;
  requestHash: string;
  line: number;
  priority: number;
  state: TaskState;
  gone: boolean;
  attempts: number;
  crashCount: number;
  loneCrashCount: number;
  notBeforeMs: number;
  leaseUntilMs: number;
  token: string | null;
  kind: FailureKind | null;
}

const KEYS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

interface InputLine {
  readonly key: number;
  /** Of the document's text; mostly the first. */
  readonly version: number;
  readonly priority: number;
}

/** Most of the keys, in any order. */
const input: fc.Arbitrary<InputLine[]> = fc.shuffledSubarray(KEYS, { minLength: 7 }).chain((keys) =>
  fc.tuple(
    ...keys.map((key) =>
      fc.record({
        key: fc.constant(key),
        version: fc.constantFrom(0, 0, 0, 1),
        priority: fc.constantFrom(0, 0, 1, -2.5),
      }),
    ),
  ),
);
/** Counted from the newest lease back; mostly one that may still hold. */
const whichLease = fc.oneof(fc.nat(3), fc.nat(3), fc.nat(30));

const step = fc.oneof(
  { weight: 1, arbitrary: fc.record({ do: fc.constant('add' as const), input }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('reimport' as const),
      input,
      keepFinished: fc.boolean(),
      crash: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('claim' as const), limit: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('start' as const), which: whichLease }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      which: whichLease,
      as: fc.constantFrom(
        'completed',
        'completed',
        'completed',
        'failed',
        'failed',
        'retry',
        'released',
        'throttled',
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('extend' as const), which: whichLease }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), forMs: fc.constantFrom(1, 400, 1_500) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('rescue' as const),
      whose: fc.constantFrom('everyone' as const, 'expired' as const),
      crashLimit: fc.constantFrom(1, 3),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('retryFailed' as const),
      which: fc.constantFrom(null, 0, 1),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

let folder: string;
let path: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-property-'));
  path = join(folder, 'llm-batch.db');
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

function newTasks(lines: readonly InputLine[]): NewTask[] {
  return lines.map(({ key, version, priority }, index) =>
    document(index + 1, { key: `key-${key}`, requestHash: `version-${version}`, priority }),
  );
}

/** What has happened at least once in some run: a test that never gets there would prove nothing. */
const reached = new Set<string>();

/** One run in the store and in the model; every step is done to both, and what they say is compared. */
class Comparison {
  readonly #runId: number;
  readonly #tasks = new Map<string, ModelTask>();
  /** Every lease that was ever given, and the open call of it; old ones are used again on purpose. */
  readonly #leases: { readonly task: LeasedTask; callId: number | null }[] = [];
  #store: Store;
  #nowMs = NOW_MS;

  constructor(store: Store, runId: number) {
    this.#store = store;
    this.#runId = runId;
  }

  async run(each: Step): Promise<void> {
    switch (each.do) {
      case 'add':
        return this.#add(newTasks(each.input));
      case 'reimport':
        return this.#reimport(newTasks(each.input), each.keepFinished, each.crash);
      case 'claim':
        return this.#claim(each.limit);
      case 'start':
        return this.#start(each.which);
      case 'settle':
        return this.#settle(each.which, each.as);
      case 'extend':
        return this.#extend(each.which);
      case 'wait':
        this.#nowMs += each.forMs;
        return;
      case 'rescue':
        return this.#rescue(each.whose, each.crashLimit);
      case 'retryFailed':
        return this.#retryFailed(each.which);
      case 'restart':
        await this.#store.close();
        this.#store = await openStore(path, { mode: 'write', clock: systemClock });
        return;
    }
  }

  async #add(tasks: readonly NewTask[]): Promise<void> {
    const fresh = tasks.filter((task) => !this.#tasks.has(task.key));
    for (const task of fresh) this.#tasks.set(task.key, newModelTask(task));
    expect(await this.#store.addTasks(this.#runId, tasks)).toEqual({
      added: fresh.length,
      duplicates: tasks.length - fresh.length,
    });
  }

  async #reimport(tasks: readonly NewTask[], keepFinished: boolean, crash: boolean): Promise<void> {
    await this.#store.beginReimport(this.#runId);
    if (crash) {
      // What a crashed import has done is done again by the next.
      await this.#reimportPage(tasks.slice(0, 2), keepFinished);
      await this.#store.beginReimport(this.#runId);
    }
    await this.#reimportPage(tasks.slice(0, 3), keepFinished);
    await this.#reimportPage(tasks.slice(3), keepFinished);
    const named = new Set(tasks.map((task) => task.key));
    const leaving = [...this.#tasks.values()].filter((task) => !task.gone && !named.has(task.key));
    for (const task of leaving) task.gone = true;
    expect(await this.#store.finishReimport(this.#runId)).toEqual({ gone: leaving.length });
  }

  async #reimportPage(tasks: readonly NewTask[], keepFinished: boolean): Promise<void> {
    const tally = { added: 0, unchanged: 0, replaced: 0, kept: 0 };
    for (const task of tasks) {
      const known = this.#tasks.get(task.key);
      const place = { line: task.line, priority: task.priority, gone: false };
      if (known === undefined) {
        this.#tasks.set(task.key, newModelTask(task));
        tally.added += 1;
      } else if (known.requestHash === task.requestHash) {
        Object.assign(known, place);
        tally.unchanged += 1;
      } else if (keepFinished && known.state === 'completed') {
        Object.assign(known, place);
        tally.kept += 1;
      } else {
        Object.assign(known, newModelTask(task));
        tally.replaced += 1;
      }
    }
    expect(await this.#store.reimportTasks(this.#runId, tasks, keepFinished)).toEqual(tally);
    for (const [what, count] of Object.entries(tally)) if (count > 0) reached.add(`reimport: ${what}`);
  }

  async #claim(limit: number): Promise<void> {
    for (const task of this.#tasks.values()) {
      if (task.state === 'delayed' && !task.gone && task.notBeforeMs <= this.#nowMs) task.state = 'ready';
    }
    const expected = this.#claimable(limit);
    if (expected.some(isSuspect)) reached.add('claimed a suspect');
    const claimed = await this.#store.claimTasks({
      runId: this.#runId,
      workerId: 'worker',
      limit,
      leaseMs: LEASE_MS,
      nowMs: this.#nowMs,
    });
    expect(
      claimed.map(({ key, line, attempts, crashCount }) => ({ key, line, attempts, crashCount })),
    ).toEqual(expected.map(({ key, line, attempts, crashCount }) => ({ key, line, attempts, crashCount })));
    for (const task of claimed) {
      this.#leases.push({ task, callId: null });
      Object.assign(this.#modelOf(task), {
        state: 'in_progress',
        token: task.attemptToken,
        leaseUntilMs: this.#nowMs + LEASE_MS,
      });
    }
  }

  #claimable(limit: number): ModelTask[] {
    const ready = [...this.#tasks.values()]
      .filter((task) => task.state === 'ready' && !task.gone)
      .sort((a, b) => b.priority - a.priority || a.line - b.line);
    const held = this.#inProgress();
    if (held.some(isSuspect)) return [];
    const [first] = ready;
    if (first !== undefined && isSuspect(first)) return held.length === 0 ? [first] : [];
    const claimable: ModelTask[] = [];
    let crashed = held.filter((task) => task.crashCount > 0).length;
    for (const task of ready.slice(0, limit)) {
      if (task.crashCount > 0) crashed += 1;
      if (isSuspect(task) || crashed > MOST_CRASHED_TOGETHER) break;
      claimable.push(task);
    }
    return claimable;
  }

  #inProgress(): ModelTask[] {
    return [...this.#tasks.values()].filter((task) => task.state === 'in_progress');
  }

  async #start(which: number): Promise<void> {
    const lease = this.#leases.at(-1 - (which % Math.max(1, this.#leases.length)));
    const model = lease && this.#modelOf(lease.task);
    if (lease === undefined || lease.callId !== null || model?.token !== lease.task.attemptToken) return;
    lease.callId = await startCall(this.#store, this.#runId, lease.task, this.#nowMs);
  }

  async #settle(which: number, as: string): Promise<void> {
    const lease = this.#leases.at(-1 - (which % Math.max(1, this.#leases.length)));
    if (lease === undefined) return;
    const { task, callId } = lease;
    const call = callId === null ? null : callEnd(callId, as === 'failed' ? { kind: 'refused' } : {});
    const laterMs = this.#nowMs + 500;
    const outcome =
      as === 'completed'
        ? completed(task, call)
        : as === 'failed'
          ? failed(task, 'refused', call)
          : as === 'retry'
            ? retried(task, laterMs, call)
            : released(
                task,
                as === 'throttled' ? laterMs : null,
                as === 'throttled' ? this.#nowMs : null,
                call,
              );
    const { lostTaskIds } = await this.#store.record([], [outcome]);

    const model = this.#modelOf(task);
    const ours = model.state === 'in_progress' && model.token === task.attemptToken;
    expect(lostTaskIds).toEqual(ours ? [] : [task.taskId]);
    if (!ours) {
      reached.add(`lost as ${as}`);
      return;
    }
    model.token = null;
    if (as === 'completed' || as === 'failed' || as === 'retry') model.attempts += 1;
    if (as === 'failed') model.kind = 'refused';
    model.notBeforeMs = laterMs;
    model.state = as === 'completed' || as === 'failed' ? as : as === 'released' ? 'ready' : 'delayed';
  }

  async #extend(which: number): Promise<void> {
    const lease = this.#leases.at(-1 - (which % Math.max(1, this.#leases.length)));
    if (lease === undefined) return;
    const { taskId, attemptToken } = lease.task;
    const model = this.#modelOf(lease.task);
    const ours = model.token === attemptToken;
    const untilMs = this.#nowMs + LEASE_MS;
    expect(await this.#store.extendLeases([taskId], [attemptToken], untilMs)).toBe(ours ? 1 : 0);
    if (ours) model.leaseUntilMs = untilMs;
  }

  /** All runs of the store but this one have nothing in progress when this is called. */
  async #rescue(whose: 'everyone' | 'expired', crashLimit: number): Promise<void> {
    const held = this.#inProgress();
    const dead = held.filter((task) => whose === 'everyone' || task.leaseUntilMs < this.#nowMs);
    const report = await this.#store.rescueTasks({ nowMs: this.#nowMs, whose, crashLimit });
    let poisoned = 0;
    for (const task of dead) {
      task.crashCount += 1;
      if (held.length === 1) task.loneCrashCount += 1;
      const poison = held.length === 1 && task.loneCrashCount >= crashLimit;
      if (poison) poisoned += 1;
      Object.assign(task, {
        state: poison ? 'failed' : 'ready',
        kind: poison ? 'poison' : null,
        token: null,
      });
    }
    expect(report).toMatchObject({ rescued: dead.length - poisoned, poisoned });
  }

  /** All failed tasks, or one of them by its key; an unknown key where there are fewer. */
  async #retryFailed(which: number | null): Promise<void> {
    const failedTasks = [...this.#tasks.values()].filter((task) => task.state === 'failed' && !task.gone);
    const retrying = which === null ? failedTasks : failedTasks.slice(which, which + 1);
    const filter = which === null ? {} : { key: retrying[0]?.key ?? 'unknown' };
    if (retrying.length > 0) reached.add(which === null ? 'retried all' : 'retried one');
    for (const task of retrying) {
      Object.assign(task, { state: 'ready', kind: null, attempts: 0, crashCount: 0, loneCrashCount: 0 });
    }
    expect(await this.#store.retryTasks(this.#runId, filter)).toBe(retrying.length);
  }

  /** Counters against the model, and results against it, in order. */
  async compare(): Promise<void> {
    const summary = await this.#store.summarizeRun(this.#runId);
    const present = [...this.#tasks.values()].filter((task) => !task.gone);
    for (const task of this.#tasks.values()) {
      reached.add(`${task.gone ? 'gone ' : ''}${task.state}${task.kind === 'poison' ? ' by poison' : ''}`);
    }
    const counts = Object.fromEntries(
      TASK_STATES.map((state) => [state, present.filter((task) => task.state === state).length]),
    );
    const failedByKind: Record<string, number> = {};
    for (const { kind } of present) if (kind !== null) failedByKind[kind] = (failedByKind[kind] ?? 0) + 1;
    expect(summary.counts).toEqual(counts);
    expect(summary.failedByKind).toEqual(failedByKind);
    expect(summary.gone).toBe(this.#tasks.size - present.length);

    const rows = await this.#store.readResults({
      runId: this.#runId,
      only: 'all',
      afterLine: 0,
      limit: 100,
      includeBody: false,
    });
    const settled = present
      .filter((task) => task.state === 'completed' || task.state === 'failed')
      .sort((a, b) => a.line - b.line);
    expect(rows.map(({ key, line, state, attempts }) => ({ key, line, state, attempts }))).toEqual(
      settled.map(({ key, line, state, attempts }) => ({ key, line, state, attempts })),
    );
  }

  async cancel(): Promise<void> {
    const open = [...this.#tasks.values()].filter(({ state }) => state !== 'completed' && state !== 'failed');
    for (const task of open) task.state = 'cancelled';
    expect(await this.#store.cancelRun(this.#runId, this.#nowMs)).toBe(open.length);
  }

  /** Leaves the run as a crash would, with nothing in progress for the next. */
  async end(): Promise<Store> {
    await this.#store.rescueTasks({ nowMs: this.#nowMs, whose: 'everyone', crashLimit: 99 });
    return this.#store;
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
    leaseUntilMs: 0,
    token: null,
    kind: null,
  };
}

/** Counters and sums of the file that differ from what its rows say; a foreign look, without the store. */
function differencesFromRecount(): unknown[] {
  const database = new Database(path, { readonly: true });
  try {
    return database
      .prepare(
        `SELECT * FROM (
           SELECT run_id, iif(gone, 'gone', state) AS state, iif(gone, '', coalesce(failure_kind, '')) AS kind,
             count(*) AS tasks FROM tasks GROUP BY 1, 2, 3
           EXCEPT SELECT run_id, state, kind, tasks FROM task_counts)
         UNION ALL SELECT * FROM (
           SELECT run_id, state, kind, tasks FROM task_counts WHERE tasks <> 0
           EXCEPT SELECT run_id, iif(gone, 'gone', state), iif(gone, '', coalesce(failure_kind, '')), count(*)
             FROM tasks GROUP BY 1, 2, 3)
         UNION ALL SELECT * FROM (
           SELECT run_id, calls_made, calls_ended, calls_lost FROM run_totals WHERE calls_made > 0
           EXCEPT SELECT run_id, count(*), count(finished_at_ms), sum(lost) FROM calls GROUP BY 1)
         UNION ALL SELECT * FROM (
           SELECT run_id, calls_failed, input_tokens, cost_micro_usd FROM run_totals WHERE calls_made > 0
           EXCEPT SELECT run_id, coalesce(sum(kind <> 'aborted'), 0), coalesce(sum(input_tokens), 0),
             coalesce(sum(cost_micro_usd), 0) FROM calls GROUP BY 1)
         UNION ALL SELECT 'results without a settled task', count(*), '', '' FROM results
           JOIN tasks ON tasks.id = task_id WHERE state NOT IN ('completed', 'failed') HAVING count(*) > 0
         UNION ALL SELECT 'settled tasks without a result', count(*), '', '' FROM tasks
           LEFT JOIN results ON task_id = tasks.id
           WHERE state IN ('completed', 'failed') AND task_id IS NULL HAVING count(*) > 0
         UNION ALL SELECT 'keys that stand twice', count(*), '', '' FROM (
           SELECT 1 FROM tasks GROUP BY run_id, key, occurrence HAVING count(*) > 1) HAVING count(*) > 0`,
      )
      .all();
  } finally {
    database.close();
  }
}

it('does what the model says, whatever happens in whatever order', async () => {
  let store = await openStore(path, { mode: 'write', clock: systemClock });
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(input, fc.array(step, { minLength: 20, maxLength: 60, size: 'max' })),
      async ([first, steps]) => {
        runs += 1;
        const run = await createRun(store, `run ${runs}`);
        const comparison = new Comparison(store, run.id);
        try {
          await comparison.run({ do: 'add', input: first });
          for (const each of steps) {
            await comparison.run(each);
            await comparison.compare();
          }
          if (runs % 2 === 0) {
            await comparison.cancel();
            await comparison.compare();
          }
        } finally {
          store = await comparison.end();
        }
      },
    ),
    { numRuns: 100 },
  );
  expect(differencesFromRecount()).toEqual([]);
  expect(await store.recount()).toEqual([]);
  const everyState = TASK_STATES.filter((state) => state !== 'cancelled');
  const wanted = [
    ...everyState,
    ...everyState.map((state) => `gone ${state}`),
    'failed by poison',
    ...['completed', 'failed', 'retry', 'released', 'throttled'].map((as) => `lost as ${as}`),
    ...['added', 'unchanged', 'replaced', 'kept'].map((what) => `reimport: ${what}`),
    'retried all',
    'retried one',
    'claimed a suspect',
  ];
  expect(wanted.filter((each) => !reached.has(each))).toEqual([]);
  await store.close();
});
