import { describe, expect, it } from 'vitest';
import { claim, createRun, document, documents, drain, openRun, results } from './builders.js';
import type { StoreOf } from './store-of.js';

export function importsContract(storeOf: StoreOf): void {
  describe('import', () => {
    it('adds each document as a ready task', async () => {
      const store = await storeOf();
      const run = await createRun(store);
      expect(await store.addTasks(run.id, documents(60))).toEqual({ added: 60, duplicates: 0 });
      expect((await store.summarizeRun(run.id)).counts).toMatchObject({ ready: 60, in_progress: 0 });
    });

    it('adds what is new of a page that was added in part, and leaves what is there', async () => {
      const store = await storeOf();
      const run = await createRun(store);
      await store.addTasks(run.id, documents(30));
      const again = documents(40).map((task) => ({ ...task, body: '{"text":"another"}' }));
      expect(await store.addTasks(run.id, again)).toEqual({ added: 10, duplicates: 30 });
      const tasks = await claim(store, run.id, 100);
      expect(tasks).toHaveLength(40);
      expect(tasks[0]?.body).toBe('{"text":"document 1"}');
      expect(tasks[39]?.body).toBe('{"text":"another"}');
    });

    it('adds nothing for an empty page', async () => {
      const store = await storeOf();
      const run = await createRun(store);
      expect(await store.addTasks(run.id, [])).toEqual({ added: 0, duplicates: 0 });
    });

    it('keeps intended repeats apart by their occurrence', async () => {
      const store = await storeOf();
      const run = await createRun(store);
      const repeats = [0, 1, 2].map((occurrence) => document(occurrence + 1, { key: 'same', occurrence }));
      expect(await store.addTasks(run.id, repeats)).toEqual({ added: 3, duplicates: 0 });
      expect(await store.addTasks(run.id, repeats)).toEqual({ added: 0, duplicates: 3 });
    });

    it('finds a key and occurrence that stand twice in one page', async () => {
      const store = await storeOf();
      const run = await createRun(store);
      const page = [document(1), document(2), document(3, { key: 'document-1' })];
      expect(await store.addTasks(run.id, page)).toEqual({ added: 2, duplicates: 1 });
    });

    it('goes on after a restart in the middle of an import', async () => {
      const store = await storeOf();
      const run = await createRun(store);
      await store.addTasks(run.id, documents(25));
      const restarted = await storeOf.again();
      expect(await restarted.addTasks(run.id, documents(50))).toEqual({ added: 25, duplicates: 25 });
    });

    it('knows what another process has added meanwhile', async () => {
      const store = await storeOf();
      const run = await createRun(store);
      await store.addTasks(run.id, documents(2));
      const other = await storeOf.again();
      expect(await other.addTasks(run.id, documents(4))).toEqual({ added: 2, duplicates: 2 });
      expect(await store.addTasks(run.id, documents(6))).toEqual({ added: 2, duplicates: 4 });
      expect(await other.addTasks(run.id, documents(6))).toEqual({ added: 0, duplicates: 6 });
    });

    it('does not mix the keys of two runs', async () => {
      const store = await storeOf();
      const first = await createRun(store, 'first');
      const second = await createRun(store, 'second');
      expect(await store.addTasks(first.id, documents(3))).toEqual({ added: 3, duplicates: 0 });
      expect(await store.addTasks(second.id, documents(3))).toEqual({ added: 3, duplicates: 0 });
      expect(await store.addTasks(first.id, documents(4))).toEqual({ added: 1, duplicates: 3 });
    });

    it('adds nothing of a page that it cannot add whole', async () => {
      const store = await storeOf();
      const run = await createRun(store);
      const broken = { ...document(8), body: 12n as unknown as string };
      await expect(store.addTasks(run.id, [document(9), broken])).rejects.toThrow();
      expect((await store.summarizeRun(run.id)).counts.ready).toBe(0);
      expect(await store.addTasks(run.id, documents(2))).toEqual({ added: 2, duplicates: 0 });
      const restarted = await storeOf.again();
      expect(await restarted.addTasks(run.id, documents(2))).toEqual({ added: 0, duplicates: 2 });
    });

    it.each([
      ['an empty text', ''],
      ['NUL characters', '\0a\0b\0'],
      ['line separators', 'a\u2028b\u2029c\r\nd'],
      ['all planes', 'héllo 日本語 🎉 𝒳'],
      ['the last code units', '\uffff\u{10ffff}'],
      ['quotes', `'"\`\\ --`],
    ])('keeps %s as they are, in key, body and metadata', async (_, text) => {
      const store = await storeOf();
      const body = JSON.stringify({ text }) + text;
      const metadataJson = JSON.stringify({ text });
      const runId = await openRun(store, [document(1, { key: `key ${text}`, body, metadataJson })]);
      await drain(store, runId);
      expect(await results(store, runId)).toMatchObject([{ key: `key ${text}`, body, metadataJson }]);
    });

    it('tells keys apart that differ after a NUL', async () => {
      const store = await storeOf();
      const run = await createRun(store);
      const page = ['a', 'a\0', 'a\0b', 'a\0c'].map((key, index) => document(index + 1, { key }));
      expect(await store.addTasks(run.id, page)).toEqual({ added: 4, duplicates: 0 });
      expect(await store.addTasks(run.id, page)).toEqual({ added: 0, duplicates: 4 });
    });

    it('turns a lone surrogate into one replacement character and finds the key again', async () => {
      const store = await storeOf();
      const lone = [document(1, { key: 'k\ud800', body: '{"text":"\udc00!"}' })];
      const runId = await openRun(store, lone);
      expect(await store.addTasks(runId, lone)).toEqual({ added: 0, duplicates: 1 });
      expect(await store.matchTasks(runId, lone, 'server')).toEqual(['unchanged']);
      expect(await claim(store, runId, 1)).toMatchObject([{ key: 'k\ufffd', body: '{"text":"\ufffd!"}' }]);
    });
  });
}
