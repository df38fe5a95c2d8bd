/** Store files that earlier versions have written must still open, with all that is in them. */
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { observationsOf } from '../../../src/runs/run-observations.js';
import { openStore } from '../../../src/store/open.js';
import { MIGRATIONS } from '../../../src/store/sqlite/migrations.js';
import type { MigrationStep, Store } from '../../../src/store/store.js';
import { jsonLines, runProgram } from '../../support/program.js';

const STORES = join(import.meta.dirname, '..', '..', '..', 'fixtures', 'stores');
const VERSIONS = readdirSync(STORES).filter((name) => name.endsWith('.db'));

/** What they hold: how a call that fails is tried again has changed meanwhile, and so has what is kept of an answer. */
const FIRST = {
  completed: 5,
  failed: 23,
  overloaded: 8,
  inDoubt: { calls: 6, withoutUsage: 8 },
  bodies: 0,
  repeated: 2,
};
const HELD: Readonly<Record<string, typeof FIRST>> = {
  'version-1.db': FIRST,
  'version-2.db': { ...FIRST, inDoubt: { calls: 8, withoutUsage: 10 } },
  'version-3.db': {
    ...{ completed: 6, failed: 22, overloaded: 7, inDoubt: { calls: 6, withoutUsage: 9 } },
    ...{ bodies: 4, repeated: 2 },
  },
  'version-4.db': { ...FIRST, bodies: 4, repeated: 3 },
  'version-5.db': { ...FIRST, bodies: 4, repeated: 3 },
  'version-6.db': { ...FIRST, bodies: 4, repeated: 3 },
};

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-older-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

async function open(file: string): Promise<Store> {
  const path = join(folder, 'llm-batch.db');
  copyFileSync(join(STORES, file), path);
  return openStore(path, { mode: 'write', clock: systemClock });
}

it('there is one for every version of the schema but the newest', () => {
  expect(VERSIONS).toEqual(MIGRATIONS.slice(0, -1).map(({ version }) => `version-${version}.db`));
});

describe.each(VERSIONS)('a store of an earlier version, %s', (file) => {
  const held = HELD[file] ?? FIRST;

  it('tells each step by which it is brought up to date, and nothing the next time', async () => {
    const path = join(folder, 'llm-batch.db');
    copyFileSync(join(STORES, file), path);
    const steps: [number, number][] = [];
    const onMigration = ({ version, lastVersion }: MigrationStep) => void steps.push([version, lastVersion]);
    for (const _ of [1, 2]) {
      await (await openStore(path, { mode: 'read', clock: systemClock, onMigration })).close();
    }
    const from = Number(/\d+/.exec(file)?.[0]);
    const last = MIGRATIONS.length;
    expect(steps).toEqual(Array.from({ length: last - from }, (_, step) => [from + step + 1, last]));
  });

  it('keeps its runs, answers and failures, and its counts agree with them', async () => {
    const store = await open(file);
    expect((await store.listRuns()).map(({ name, status }) => [name, status])).toEqual([
      ['reviews-simulated', 'open'],
      ['failures-simulated', 'finished'],
    ]);
    const [reviews, failures] = await store.listRuns();
    const unfinished = await store.summarizeRun(reviews?.id ?? 0);
    expect(unfinished.counts).toMatchObject({ ready: 4, in_progress: 4, completed: 4, failed: 0 });
    const finished = await store.summarizeRun(failures?.id ?? 0);
    expect(finished.counts).toMatchObject({ completed: held.completed, failed: held.failed });
    expect(finished.failedByKind).toMatchObject({ overloaded: held.overloaded, network: 4, refused: 1 });
    expect(finished.shared).toEqual({ withinRun: 0, fromEarlierRuns: 0, waiting: 0 });
    // No answer, or a 408; and answers under 200 that do not say what they used.
    expect(finished.inDoubt).toMatchObject(held.inDoubt);
    const rows = await store.readResults({
      runId: failures?.id ?? 0,
      only: 'all',
      afterLine: 0,
      limit: 100,
      includeBody: true,
    });
    expect(rows).toHaveLength(28);
    expect(await store.maintenance.recount()).toEqual([]);
    expect((await store.maintenance.examine()).damage).toEqual([]);
    await store.close();
  });

  it('goes on with the run that a crash had left', async () => {
    await (await open(file)).close();
    const resumed = await runProgram(['resume', 'reviews-simulated', '-o', 'out.jsonl', '--rpm', '6000'], {
      folder,
    });
    expect(resumed.exitCode).toBe(0);
    const status = await runProgram(['status', 'reviews-simulated', '--json'], { folder });
    expect(JSON.parse(status.stdout)).toMatchObject({
      status: 'finished',
      documents: { total: 12, completed: 12 },
      calls: { repeated: held.repeated },
    });
    // What was answered before has kept its text alone, and nothing is made up for it.
    const written = await runProgram(['results', 'reviews-simulated', '--format', 'openai', '-o', '-'], {
      folder,
    });
    const ids = jsonLines<{ response: { body: { id?: string; choices: unknown[] } } }>(written.stdout).map(
      ({ response: { body } }) => body.id?.replace(/\d+/, 'n') ?? null,
    );
    const textAlone = 4 - held.bodies;
    expect(ids).toEqual([
      ...Array(textAlone).fill(null),
      ...Array(12 - textAlone).fill('chatcmpl-simulated-n'),
    ]);
  });
});

/** Up to schema 3 a call had one task, and what was observed stood in the settings. */
describe.each(VERSIONS.slice(0, 3))('a store from before calls had several tasks, %s', (file) => {
  it('keeps what was observed apart from the settings, of which nothing else is changed', async () => {
    const path = join(folder, 'llm-batch.db');
    copyFileSync(join(STORES, file), path);
    const older = new Database(path);
    const settings = JSON.parse(
      older.prepare<[], string>('SELECT settings_json FROM runs WHERE id = 2').pluck().get() ?? '',
    ) as object;
    const limit = { requestsPerMinute: 60, tokensPerMinute: null, requestsPerDay: 1e3 };
    const noted = {
      learntLimits: [{ lane: 'simulator', ...limit }, { lane: 7 }, 'odd'],
      outages: [{ lane: 'simulator', sinceMs: 1, message: 'gone' }],
      prices: { source: 'a table', date: null },
    };
    older
      .prepare('UPDATE runs SET settings_json = ? WHERE id = 2')
      .run(JSON.stringify({ ...settings, ...noted }));
    older.prepare('UPDATE runs SET settings_json = ? WHERE id = 1').run(`{"learntLimits":"odd","prices":3}`);
    older.close();
    const store = await openStore(path, { mode: 'write', clock: systemClock });
    const [run, odd] = await store.listRuns();
    await store.close();
    if (run === undefined) throw new Error('the run is gone');
    expect(observationsOf(run)).toEqual({
      learntLimits: [{ lane: 'simulator', ...limit }],
      outages: [],
      ...{ groups: null, traceparent: null },
      prices: noted.prices,
    });
    const { prices: _, ...asked } = settings as { prices?: object };
    expect(run.settings).toEqual(asked);
    expect(odd).toMatchObject({ settings: {}, observations: [] });
  });

  it('knows which task each call was for, and breaks no reference', async () => {
    const path = join(folder, 'llm-batch.db');
    copyFileSync(join(STORES, file), path);
    const database = new Database(path);
    const before = database.prepare('SELECT id, task_id FROM calls').raw().all();
    await (await openStore(path, { mode: 'write', clock: systemClock })).close();
    expect(database.prepare('SELECT call_id, task_id FROM call_tasks').raw().all()).toEqual(before);
    expect(database.pragma('foreign_key_check')).toEqual([]);
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
    database.close();
  });
});

it('a store from before answers that came too late were counted, version-6.db, counts those that it has', async () => {
  const path = join(folder, 'llm-batch.db');
  copyFileSync(join(STORES, 'version-6.db'), path);
  const older = new Database(path);
  const lost = older.prepare(
    `UPDATE calls SET lost = 1 WHERE run_id = 2 AND kind IS NULL AND latency_ms > 0`,
  );
  expect(lost.run().changes).toBe(4);
  older.exec('UPDATE run_totals SET calls_lost = 4 WHERE run_id = 2');
  older.close();
  const store = await openStore(path, { mode: 'write', clock: systemClock });
  expect((await store.summarizeRun(2)).calls).toMatchObject({ repeated: 4, late: 4 });
  expect(await store.maintenance.recount()).toEqual([]);
  await store.close();
});
