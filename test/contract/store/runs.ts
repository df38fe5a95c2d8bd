import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/core/json.js';
import type { Store } from '../../../src/store/store.js';
import { claim, createRun, document, documents, drain, NOW_MS, openRun, results } from './builders.js';
import type { StoreOf } from './store-of.js';

/** Removes what deleted runs left, in pages so small that several are needed. @returns how many */
async function sweep(store: Store): Promise<number> {
  let cursor: string | null = null;
  for (let pages = 1; ; pages += 1) {
    cursor = await store.maintenance.sweepDeletedRuns(cursor, 2);
    if (cursor === null) return pages;
  }
}

export function runsContract(storeOf: StoreOf): void {
  describe('runs', () => {
    it('starts a run as importing and gives back what it was created with', async () => {
      const store = await storeOf();
      const settings = {
        model: 'm',
        params: { temperature: 0.5, stop: ['\n', null] },
        system: 'Antworte "kurz".',
      };
      const run = await store.createRun({
        name: 'reviews',
        inputPath: '/data/reviews.jsonl',
        simulated: true,
        settings,
        createdAtMs: NOW_MS,
      });
      expect(run).toEqual({
        id: run.id,
        name: 'reviews',
        status: 'importing',
        inputPath: '/data/reviews.jsonl',
        simulated: true,
        settings,
        observations: [],
        createdAtMs: NOW_MS,
        stoppedAtMs: null,
        haltReason: null,
        outputPaths: [],
        writtenFiles: [],
        folder: run.folder,
      });
      expect(await store.listRuns()).toEqual([run]);
    });

    it('refuses a second run with the same name', async () => {
      const store = await storeOf();
      await createRun(store, 'reviews');
      await expect(createRun(store, 'reviews')).rejects.toMatchObject({
        code: 'RUN_NAME_TAKEN',
        exitCode: 2,
      });
      expect(await store.listRuns()).toHaveLength(1);
    });

    it('lists the newest run first, even when the clock went back in between', async () => {
      const store = await storeOf();
      const first = await createRun(store, 'first');
      const second = await store.createRun({
        name: 'second',
        inputPath: '-',
        simulated: false,
        settings: {},
        createdAtMs: NOW_MS - 3_600_000,
      });
      expect((await store.listRuns()).map((run) => run.id)).toEqual([second.id, first.id]);
    });

    it('keeps what was observed apart from what was asked: neither writer changes what the other wrote', async () => {
      const store = await storeOf();
      const run = await createRun(store);
      const other = await storeOf.again();
      const limit = (subject: string, value: JsonObject | null) =>
        ({ kind: 'learnt_limit', subject, value }) as const;
      const prices = { kind: 'prices', subject: '', value: { source: 'a table' } } as const;
      await store.noteObservations(run.id, [prices, limit('a', { rpm: 1 }), limit('b', { rpm: 2 })]);
      await other.noteObservations(run.id, [limit('b', { rpm: 3 })]);
      await other.updateRun(run.id, { settings: { model: 'another' } });
      await store.noteObservations(run.id, [limit('a', null)]);
      const [seen] = await store.listRuns();
      expect(seen?.settings).toEqual({ model: 'another' });
      expect(seen?.observations).toEqual([limit('b', { rpm: 3 }), prices]);
      await expect(store.noteObservations(run.id + 1, [])).rejects.toMatchObject({ code: 'RUN_MISSING' });
    });

    it('changes what an update names and leaves the rest', async () => {
      const store = await storeOf();
      const run = await createRun(store);
      const stopped = await store.updateRun(run.id, {
        stoppedAtMs: NOW_MS,
        haltReason: 'the account is empty',
      });
      expect(stopped).toEqual({ ...run, stoppedAtMs: NOW_MS, haltReason: 'the account is empty' });
      const open = await store.updateRun(run.id, {
        status: 'open',
        haltReason: null,
        outputPaths: ['/a', '/b'],
        writtenFiles: [{ path: '/a', inode: 2 ** 52, size: 0, modifiedAtMs: 1_700_000_000_000.123 }],
      });
      expect(open).toEqual({
        ...stopped,
        status: 'open',
        haltReason: null,
        outputPaths: ['/a', '/b'],
        writtenFiles: [{ path: '/a', inode: 2 ** 52, size: 0, modifiedAtMs: 1_700_000_000_000.123 }],
      });
      expect(await store.listRuns()).toEqual([open]);
    });

    it('says so when a run is not there', async () => {
      const store = await storeOf();
      const missing = { code: 'RUN_MISSING' };
      await expect(store.updateRun(99, { haltReason: 'x' })).rejects.toMatchObject(missing);
      await expect(store.deleteRun(99)).rejects.toMatchObject(missing);
      await expect(store.addTasks(99, documents(1))).rejects.toMatchObject(missing);
      await expect(store.beginReimport(99)).rejects.toMatchObject(missing);
      await expect(store.summarizeRun(99)).rejects.toMatchObject(missing);
    });

    it('deletes a run with all it has, and nothing of another', async () => {
      const store = await storeOf();
      const doomed = await openRun(store, documents(3), 'doomed');
      const kept = await openRun(store, documents(2), 'kept');
      await drain(store, doomed);
      await drain(store, kept);
      const before = await store.summarizeRun(kept);

      await store.deleteRun(doomed);
      await sweep(store);

      expect((await store.listRuns()).map((run) => run.name)).toEqual(['kept']);
      expect(await results(store, doomed)).toEqual([]);
      await expect(store.summarizeRun(doomed)).rejects.toMatchObject({ code: 'RUN_MISSING' });
      expect(await store.summarizeRun(kept)).toEqual(before);
      expect(await results(store, kept)).toHaveLength(2);
      expect(await store.readRecentCalls(Number.MAX_SAFE_INTEGER)).toHaveLength(2);
    });

    it('gives the name of a deleted run again, but not its number, and remembers none of its keys', async () => {
      const store = await storeOf();
      const first = await openRun(store, documents(2));
      await store.deleteRun(first);
      const second = await createRun(store);
      expect(second.id).not.toBe(first);
      expect(await store.addTasks(second.id, [document(1)])).toEqual({ added: 1, duplicates: 0 });
      expect(await claim(store, second.id, 10)).toHaveLength(1);
    });
  });
}
