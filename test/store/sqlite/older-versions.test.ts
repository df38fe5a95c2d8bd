/** Store files that earlier versions have written must still open, with all that is in them. */
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { openStore } from '../../../src/store/open.js';
import { MIGRATIONS } from '../../../src/store/sqlite/migrations.js';
import type { MigrationStep, Store } from '../../../src/store/store.js';
import { jsonLines, runProgram } from '../../support/program.js';

const STORES = join(import.meta.dirname, '..', '..', '..', 'fixtures', 'stores');
const VERSIONS = readdirSync(STORES).filter((name) => name.endsWith('.db'));

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
    expect(finished.counts).toMatchObject({ completed: 5, failed: 23 });
    expect(finished.failedByKind).toMatchObject({ overloaded: 8, network: 4, refused: 1 });
    expect(finished.shared).toEqual({ withinRun: 0, fromEarlierRuns: 0, waiting: 0 });
    // No answer, or a 408; and answers under 200 that do not say what they used.
    expect(finished.inDoubt).toMatchObject(
      file === 'version-1.db' ? { calls: 6, withoutUsage: 8 } : { calls: 8, withoutUsage: 10 },
    );
    const rows = await store.readResults({
      runId: failures?.id ?? 0,
      only: 'all',
      afterLine: 0,
      limit: 100,
      includeBody: true,
    });
    expect(rows).toHaveLength(28);
    expect(await store.recount()).toEqual([]);
    expect((await store.examine()).damage).toEqual([]);
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
      calls: { repeated: 2 },
    });
    // What was answered before has kept its text alone, and nothing is made up for it.
    const written = await runProgram(['results', 'reviews-simulated', '--format', 'openai', '-o', '-'], {
      folder,
    });
    const ids = jsonLines<{ response: { body: { id?: string; choices: unknown[] } } }>(written.stdout).map(
      ({ response: { body } }) => body.id?.replace(/\d+/, 'n') ?? null,
    );
    expect(ids).toEqual([...Array(4).fill(null), ...Array(8).fill('chatcmpl-simulated-n')]);
  });
});
