/** Which run a command means, in a store that holds several. */
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunRecord, RunStatus } from '../../src/core/run.js';
import { chooseRunName, findRun, findRunForInput } from '../../src/runs/find-run.js';
import { settingsToJson } from '../../src/runs/run-settings.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryFolder } from '../support/program.js';
import { refusal } from '../support/refusal.js';
import { runSettingsOf } from '../support/run-settings.js';

const clock = new FakeClock();

let folder: ReturnType<typeof temporaryFolder>;
let store: Store;

beforeEach(async () => {
  folder = temporaryFolder();
  store = await openStore(join(folder.path, 'llm-batch.db'), { mode: 'write', clock });
});

afterEach(async () => {
  await store.close();
  folder.remove();
});

interface Made {
  readonly inputPath?: string;
  readonly simulated?: boolean;
  readonly status?: RunStatus;
  /** Of a database. */
  readonly query?: string;
}

/** Each is younger than the one before. */
async function make(name: string, made: Made = {}): Promise<RunRecord> {
  await clock.advance(1_000);
  const { inputPath = '/data/reviews.jsonl', simulated = false, status = 'open', query } = made;
  const input = query === undefined ? {} : { input: { format: 'sqlite', query } as const };
  const run = await store.createRun({
    name,
    inputPath,
    simulated,
    settings: settingsToJson(
      { ...(await runSettingsOf({ simulate: simulated })), ...input },
      { folder: null },
    ),
    createdAtMs: clock.now(),
  });
  return store.updateRun(run.id, { status });
}

interface Wanted {
  readonly name?: string;
  readonly inputPath?: string;
  readonly query?: string;
  readonly simulated?: boolean;
}

async function foundFor(wanted: Wanted = {}): Promise<string | null> {
  const { name = null, inputPath = '/data/reviews.jsonl', query = null, simulated = false } = wanted;
  return (await findRunForInput(store, { name, inputPath, query, simulated }))?.name ?? null;
}

describe('an input goes on with', () => {
  it('no run where none is of it', async () => {
    await make('reviews', { inputPath: '/elsewhere/reviews.jsonl' });
    expect(await foundFor()).toBeNull();
  });

  it('the newest run of it', async () => {
    await make('reviews', { status: 'finished' });
    await make('reviews-2');
    await make('others', { inputPath: '/data/others.jsonl' });
    expect(await foundFor()).toBe('reviews-2');
  });

  it('the run that was not given a name, though a named one is younger', async () => {
    await make('reviews');
    await make('with-a-better-prompt');
    expect(await foundFor()).toBe('reviews');
  });

  it('a named run where there is no other', async () => {
    await make('with-a-better-prompt');
    expect(await foundFor()).toBe('with-a-better-prompt');
  });

  it.each(['reviews-2', 'with-a-better-prompt'])(
    '%s rather than with a younger cancelled one',
    async (name) => {
      await make(name, { status: 'finished' });
      await make('reviews-3', { status: 'cancelled' });
      expect(await foundFor()).toBe(name);
    },
  );

  it('a cancelled run only where there is no other, so that its answers are not paid for again', async () => {
    await make('reviews', { status: 'cancelled' });
    expect(await foundFor()).toBe('reviews');
  });

  it('the run of the name that is asked for, whatever its input', async () => {
    await make('reviews');
    await make('second', { inputPath: '/data/others.jsonl' });
    expect(await foundFor({ name: 'second' })).toBe('second');
    expect(await foundFor({ name: 'third' })).toBeNull();
  });

  it('a cancelled run that is asked for by its name', async () => {
    await make('reviews');
    await make('second', { status: 'cancelled' });
    expect(await foundFor({ name: 'second' })).toBe('second');
  });

  it('a rehearsal for a rehearsal and a real run for a real one', async () => {
    await make('reviews');
    await make('reviews-simulated', { simulated: true });
    expect(await foundFor()).toBe('reviews');
    expect(await foundFor({ simulated: true })).toBe('reviews-simulated');
    for (const [name, simulated] of [
      ['reviews', true],
      ['reviews-simulated', false],
    ] as const) {
      await expect(foundFor({ name, simulated })).rejects.toMatchObject({
        code: 'RUN_SIMULATED_MIX',
        exitCode: 2,
      });
    }
  });
});

describe('a database goes on with', () => {
  const inputPath = '/data/shop.db';
  const query = 'SELECT id, text FROM reviews';

  it('the run of the same query', async () => {
    await make('shop', { inputPath, query });
    await make('shop-2', { inputPath, query: 'SELECT 1' });
    expect(await foundFor({ inputPath, query })).toBe('shop');
  });

  it('no run of another query: that is refused, and both ways out are named', async () => {
    await make('shop', { inputPath, query });
    await expect(refusal(foundFor({ inputPath, query: 'SELECT 2' }))).resolves.toMatchObject({
      code: 'RUN_OTHER_QUERY',
      exitCode: 2,
      wayOut: expect.stringMatching(/--name NEW.*--name shop /) as string,
    });
  });

  it('a new run where the one of another query is cancelled', async () => {
    await make('shop', { inputPath, query, status: 'cancelled' });
    expect(await foundFor({ inputPath, query: 'SELECT 2' })).toBeNull();
  });
});

describe('a new run is named', () => {
  it.each([
    ['/data/reviews.jsonl', 'reviews'],
    ['/data/reviews.jsonl.gz', 'reviews'],
    ['-', 'stdin'],
    ['/data/.jsonl', 'run'],
  ])('of %s: %s', async (inputPath, name) => {
    expect(await chooseRunName(store, inputPath, false)).toBe(name);
    expect(await chooseRunName(store, inputPath, true)).toBe(`${name}-simulated`);
  });

  it('with the first number that is free', async () => {
    await make('reviews');
    await make('reviews-2', { status: 'cancelled' });
    expect(await chooseRunName(store, '/data/reviews.jsonl', false)).toBe('reviews-3');
  });
});

describe('a command without a run means', () => {
  const meant = async (name?: string): Promise<string> => (await findRun(store, name)).name;

  it('the newest unfinished one', async () => {
    await make('first');
    await make('second');
    await make('third', { status: 'finished' });
    await make('fourth', { status: 'cancelled' });
    expect(await meant()).toBe('second');
    await make('fifth', { status: 'importing' });
    expect(await meant()).toBe('fifth');
  });

  it('the newest where all are finished', async () => {
    await make('first', { status: 'finished' });
    await make('second', { status: 'finished' });
    expect(await meant()).toBe('second');
    expect(await meant('first')).toBe('first');
  });

  it('nothing in an empty store, nor by a name that is not there, which names those that are', async () => {
    await expect(meant()).rejects.toMatchObject({ code: 'RUN_UNKNOWN', exitCode: 2 });
    await make('reviews');
    await expect(refusal(meant('review'))).resolves.toMatchObject({
      code: 'RUN_UNKNOWN',
      exitCode: 2,
      wayOut: expect.stringContaining('reviews') as string,
    });
  });
});
