/**
 * Random work on two runs of a store against a small model: whatever the order of imports, claims, outcomes, shared
 * answers, crashes, retries and deletions, the store tells the same states and answers, its counters equal a recount,
 * and nothing waits for ever.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type NewTask, SUSPECT_AFTER_CRASHES, TASK_STATES } from '../../src/core/task.js';
import { document } from '../contract/store/builders.js';
import { type ModelledRun, ModelledStore, WORKERS } from './modelled-store.js';

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
const sharing = fc.record({
  dedupe: fc.constantFrom(true, true, true, false),
  reuse: fc.boolean(),
  limit: fc.integer({ min: 3, max: 12 }),
});
const outcome = fc.constantFrom(
  ...(['completed', 'completed', 'completed', 'failed', 'failed', 'retry', 'released', 'throttled'] as const),
);
/** Counted from the newest lease back; mostly one that may still hold. */
const whichLease = fc.oneof(fc.nat(3), fc.nat(3), fc.nat(3), fc.nat(30));

const worker = fc.constantFrom('alpha' as const, 'alpha' as const, 'beta' as const);

const step = fc.oneof(
  { weight: 1, arbitrary: fc.record({ do: fc.constant('add' as const), input }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('reimport' as const),
      input,
      keepFinished: fc.boolean(),
      crash: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
      worker,
      limit: fc.integer({ min: 1, max: 4 }),
      calls: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('work' as const),
      limit: fc.integer({ min: 1, max: 4 }),
      outcomes: fc.array(outcome, { maxLength: 4, size: 'max' }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('start' as const), which: whichLease }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      which: whichLease,
      as: outcome,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('beat' as const), worker }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), forMs: fc.constantFrom(1, 400, 1_500) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('rescue' as const),
      workers: fc.constantFrom(WORKERS, WORKERS.slice(0, 1), WORKERS.slice(1), null),
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
  { weight: 1, arbitrary: fc.record({ do: fc.constant('deleteRun' as const), input, crash: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('pair' as const),
      sharing,
      crashAfterPages: fc.constantFrom(null, null, 1, 3, 6),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('settlePairs' as const), limit: fc.integer({ min: 1, max: 4 }) }),
  },
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
    // Some keys ask the same.
    document(index + 1, { key: `key-${key}`, requestHash: `sha256:request-${key % 4}.${version}`, priority }),
  );
}

async function take(each: Step, run: ModelledRun, place: ModelledStore): Promise<void> {
  switch (each.do) {
    case 'add':
      return run.add(newTasks(each.input));
    case 'reimport':
      return run.reimport(newTasks(each.input), each.keepFinished, each.crash);
    case 'claim':
      await run.claim(each.limit, each.worker);
      return each.calls ? run.start(0) : undefined;
    case 'work':
      await run.claim(each.limit);
      for (const [which, as] of each.outcomes.entries()) await run.settle(which, as);
      return;
    case 'start':
      return run.start(each.which);
    case 'settle':
      return run.settle(each.which, each.as);
    case 'beat':
      return place.beat(each.worker);
    case 'wait':
      return place.wait(each.forMs);
    case 'rescue':
      return place.rescue(each.workers, each.crashLimit);
    case 'retryFailed':
      return run.retryFailed(each.which);
    case 'restart':
      return place.restart();
    case 'deleteRun': {
      // The other one: answers that a task waits for go with it.
      const [, doomed = run] = place.runs;
      await place.deleteRun(doomed, 7, each.crash);
      await place.addRun(nameOfRun(), newTasks(each.input));
      return;
    }
    case 'pair':
      return each.crashAfterPages === null
        ? run.pair(each.sharing)
        : run.pairInPart(each.sharing, each.crashAfterPages);
    case 'settlePairs':
      return run.settlePairs(each.limit);
  }
}

let runsMade = 0;

function nameOfRun(): string {
  runsMade += 1;
  return `run ${runsMade}`;
}

/** Counters and sums of the file that differ from what its rows say; a foreign look, without the store. */
function differencesFromRecount(): unknown[] {
  const database = new Database(path, { readonly: true });
  try {
    return database
      .prepare(
        `SELECT * FROM (
           SELECT run_id, iif(gone, 'gone', state) AS state, iif(gone, '', coalesce(failure_kind, shared_from, '')) AS kind,
             count(*) AS tasks FROM tasks GROUP BY 1, 2, 3
           EXCEPT SELECT run_id, state, kind, tasks FROM task_counts)
         UNION ALL SELECT * FROM (
           SELECT run_id, state, kind, tasks FROM task_counts WHERE tasks <> 0
           EXCEPT SELECT run_id, iif(gone, 'gone', state), iif(gone, '', coalesce(failure_kind, shared_from, '')), count(*)
             FROM tasks GROUP BY 1, 2, 3)
         UNION ALL SELECT * FROM (
           SELECT run_id, calls_ended, calls_lost, '' FROM run_totals WHERE calls_ended > 0
           EXCEPT SELECT run_id, count(finished_at_ms), sum(lost), '' FROM calls GROUP BY 1)
         UNION ALL SELECT * FROM (
           SELECT run_id, calls_made, calls_failed, input_tokens + cost_micro_usd FROM lane_totals
           EXCEPT SELECT run_id, count(*), coalesce(sum(kind <> 'aborted'), 0), coalesce(sum(input_tokens), 0) +
             coalesce(sum(cost_micro_usd), 0) FROM calls GROUP BY run_id, lane)
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
  const place = await ModelledStore.open(path);
  let plays = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(input, input),
      fc.array(fc.tuple(fc.constantFrom(0, 0, 0, 1), step), { minLength: 40, maxLength: 100, size: 'max' }),
      fc.record({ hasAnswers: fc.boolean(), hasSuspects: fc.boolean(), lastSharing: sharing }),
      async (inputs, steps, { hasAnswers, hasSuspects, lastSharing }) => {
        plays += 1;
        try {
          for (const each of inputs) await place.addRun(nameOfRun(), newTasks(each));
          if (hasAnswers) await place.runs[1]?.drain(lastSharing);
          for (let crash = 0; hasSuspects && crash < SUSPECT_AFTER_CRASHES; crash += 1) {
            await place.runs[0]?.claim(2);
            for (const which of [0, 1]) await place.runs[0]?.start(which);
            await place.rescue(WORKERS, 3);
          }
          for (const [which, each] of steps) {
            const run = place.runs[which];
            if (run !== undefined) await take(each, run, place);
            for (const one of place.runs) await one.compare();
            expect(await place.store.maintenance.recount()).toEqual([]);
          }
          const [cancelled, drained] = plays % 2 === 0 ? place.runs : [...place.runs].reverse();
          // First, since a suspect comes to a worker that holds nothing else, of whichever run.
          await cancelled?.cancel();
          await drained?.drain(lastSharing);
          for (const one of place.runs) await one.compare();
          expect(differencesFromRecount()).toEqual([]);
          expect(await place.store.maintenance.recount()).toEqual([]);
        } finally {
          for (const run of [...place.runs]) await place.deleteRun(run, 1_000, false);
        }
      },
    ),
    { numRuns: 40 },
  );
  const everyState = TASK_STATES.filter((state) => state !== 'cancelled');
  const wanted = [
    ...everyState,
    ...everyState.map((state) => `gone ${state}`),
    'failed by poison',
    ...['completed', 'failed', 'retry', 'released', 'throttled'].map((as) => `lost as ${as}`),
    ...['added', 'unchanged', 'replaced', 'kept', 'answeredBefore'].map((what) => `reimport: ${what}`),
    'rescued one of two',
    'retried all',
    'retried one',
    'claimed a suspect',
    'crashed while pairing',
    'completed as in run',
    'failed as in run',
    'completed as in earlier_run',
    'waits on',
    'waited in vain',
  ];
  expect(wanted.filter((each) => !place.reached.has(each))).toEqual([]);
  await place.store.close();
});
