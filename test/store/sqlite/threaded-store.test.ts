/** What a thread adds to the store, which keeps its contract there as well (sqlite.test.ts). */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { LlmBatchError } from '../../../src/core/errors.js';
import { openStore } from '../../../src/store/open.js';
import { MIGRATIONS } from '../../../src/store/sqlite/migrations.js';
import type { MigrationStep, Store } from '../../../src/store/store.js';
import { createRun, document } from '../../contract/store/builders.js';

const OLDEST = join(import.meta.dirname, '../../../fixtures/stores/version-1.db');

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-thread-'));
  path = join(folder, 'llm-batch.db');
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function open(onThread: boolean): Promise<Store> {
  return openStore(path, { mode: 'write', clock: systemClock, onThread });
}

/** All that anybody decides by or shows. */
async function refusalOf(refused: Promise<unknown>): Promise<object> {
  const told = (error: unknown): object => {
    const { name, message, cause, ...rest } = error as Error;
    const isOurs = error instanceof LlmBatchError;
    return { name, message, ...rest, isOurs, cause: cause === undefined ? null : told(cause) };
  };
  return refused.then(() => ({ refused: false }), told);
}

describe('an error of a store on a thread', () => {
  it.each([
    [
      'a file that is no database',
      () => writeFileSync(path, 'no database at all, and long enough to be read'),
    ],
    ['a folder', () => mkdirSync(path)],
  ])('that opens %s is whole', async (_, make) => {
    make();
    const refusal = await refusalOf(open(true));
    expect(refusal).toEqual(await refusalOf(open(false)));
    expect(refusal).toMatchObject({ isOurs: true, exitCode: 5, cause: { isOurs: false } });
  });

  it('is whole, whether it is one of ours or one that nobody expects', async () => {
    const stores = [await open(true), await open(false)];
    const [first, second] = stores as [Store, Store];
    const { id } = await createRun(first);
    const taken = (store: Store) => refusalOf(createRun(store));
    const broken = (store: Store) => refusalOf(store.updateRun(id, { status: 'odd' as never }));
    expect(await taken(first)).toEqual(await taken(second));
    expect(await taken(first)).toMatchObject({ isOurs: true, code: 'RUN_NAME_TAKEN' });
    expect(await broken(first)).toEqual(await broken(second));
    expect(await broken(first)).toMatchObject({
      name: 'SqliteError',
      isOurs: false,
      code: expect.stringContaining('SQLITE_CONSTRAINT'),
    });
    for (const store of stores) await store.close();
  });

  it('that could not even be sent there is told to whoever asked, and nobody else', async () => {
    const store = await open(true);
    const { id } = await createRun(store);
    const asked = store.addTasks(id, [{ ...document(1), ...{ render: () => '' } }]);
    await expect(asked).rejects.toThrow('could not be cloned');
    expect(await store.listRuns()).toHaveLength(1);
    await store.close();
  });
});

describe('the thread of a store', () => {
  it('tells each step by which it brings the store up to date', async () => {
    copyFileSync(OLDEST, path);
    const steps: number[] = [];
    const onMigration = ({ version }: MigrationStep) => void steps.push(version);
    await (await openStore(path, { mode: 'write', clock: systemClock, onThread: true, onMigration })).close();
    expect(steps).toEqual(MIGRATIONS.slice(1).map(({ version }) => version));
  });

  it('is gone once the store is closed, and its lock with it; what comes then is refused', async () => {
    const store = await open(true);
    await store.acquireDrainLock({ pid: 1, host: 'here', runName: null, sinceMs: 0 });
    const reader = await open(false);
    expect(await reader.readOwner()).toMatchObject({ host: 'here' });
    await store.close();
    expect(await reader.readOwner()).toBeNull();
    await expect(store.listRuns()).rejects.toMatchObject({ code: 'STORE_THREAD_ENDED', exitCode: 5 });
    await store.close();
    await reader.close();
  });
});
