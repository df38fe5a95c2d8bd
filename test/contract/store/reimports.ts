import { describe, expect, it } from 'vitest';
import type { NewTask } from '../../../src/core/task.js';
import type { Answerers, ImportTally, Store } from '../../../src/store/store.js';
import {
  claim,
  claimOne,
  completed,
  document,
  documents,
  drain,
  failed,
  openRun,
  RERUN,
  results,
  retried,
  SAME_ANSWERERS,
  startCall,
  WORKER,
} from './builders.js';
import type { StoreOf } from './store-of.js';

async function reimport(
  store: Store,
  runId: number,
  input: readonly NewTask[],
  keepFinished = false,
  answerers: Answerers = SAME_ANSWERERS,
): Promise<ImportTally & { gone: number }> {
  await store.beginReimport(runId);
  const tally = await store.reimportTasks(runId, input, { keepFinished, answerers });
  return { ...tally, ...(await store.finishReimport(runId)) };
}

/** Line and key of every result, and the answer, which names the document it was given for. */
async function answers(store: Store, runId: number): Promise<(string | number | undefined)[][]> {
  return (await results(store, runId)).map((row) => [row.line, row.key, row.result?.outputJson]);
}

function answerWithKey(store: Store, runId: number): Promise<void> {
  return drain(store, runId, (task, call) =>
    completed(task, call, { outputJson: JSON.stringify(task.key), model: 'm', finishReason: 'stop' }),
  );
}

export function reimportsContract(storeOf: StoreOf): void {
  describe('import of an edited input', () => {
    it('compares documents by key and occurrence, and changes nothing', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(4));
      await drain(store, runId, (task, call) =>
        task.line === 1 ? completed(task, call) : failed(task, 'refused', call),
      );
      await store.retryTasks(runId, { key: 'document-2' });
      const before = await store.summarizeRun(runId);
      expect(
        await store.matchTasks(
          runId,
          [
            document(1),
            document(1, { requestHash: 'other' }),
            document(2, { requestHash: 'other' }),
            document(3, { requestHash: 'other' }),
            document(1, { occurrence: 1 }),
            document(9),
          ],
          'server',
        ),
      ).toEqual(['unchanged', 'changed_finished', 'changed_open', 'changed_open', 'new', 'new']);
      expect(await store.summarizeRun(runId)).toEqual(before);
    });

    it('never shifts an answer when a document is put in above', async () => {
      const store = await storeOf();
      const a = document(1, { key: 'a', requestHash: 'a' });
      const b = document(2, { key: 'b', requestHash: 'b' });
      const x = document(1, { key: 'x', requestHash: 'x' });
      const runId = await openRun(store, [a, b]);
      await answerWithKey(store, runId);

      const tally = await reimport(store, runId, [x, { ...a, line: 2 }, { ...b, line: 3 }]);
      expect(tally).toEqual({ added: 1, unchanged: 2, replaced: 0, kept: 0, answeredBefore: 0, gone: 0 });
      expect(await answers(store, runId)).toEqual([
        [2, 'a', '"a"'],
        [3, 'b', '"b"'],
      ]);

      await answerWithKey(store, runId);
      expect(await answers(store, runId)).toEqual([
        [1, 'x', '"x"'],
        [2, 'a', '"a"'],
        [3, 'b', '"b"'],
      ]);
    });

    it('moves tasks that are not done yet to their new line and priority', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(3));
      await reimport(store, runId, [
        document(3, { line: 1 }),
        document(1, { line: 2 }),
        document(2, { line: 3, priority: 7 }),
      ]);
      const order = (await claim(store, runId, 3)).map((task) => [task.line, task.key]);
      expect(order).toEqual([
        [3, 'document-2'],
        [1, 'document-3'],
        [2, 'document-1'],
      ]);
    });

    it('puts a changed document back to ready as if it were new, without its old answer', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(2));
      await drain(store, runId);
      const changed = document(1, {
        requestHash: 'other',
        body: '{"text":"edited"}',
        metadataJson: '{"v":2}',
      });
      const tally = await reimport(store, runId, [changed, document(2)]);
      expect(tally).toEqual({ added: 0, unchanged: 1, replaced: 1, kept: 0, answeredBefore: 0, gone: 0 });
      expect((await results(store, runId)).map((row) => row.line)).toEqual([2]);
      expect(await claim(store, runId, 9)).toMatchObject([
        { key: 'document-1', body: '{"text":"edited"}', attempts: 0, crashCount: 0, throttledForMs: null },
      ]);
      expect(await store.matchTasks(runId, [changed], 'server')).toEqual(['unchanged']);
    });

    it('replaces a changed document that failed, is delayed or in progress, and drops a late outcome', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(3));
      const [first, second, third] = await claim(store, runId, 3);
      if (!first || !second || !third) throw new Error('claimed too few');
      await store.record([], [failed(first), retried(second, 60_000)]);
      const changed = documents(3).map((task) => ({ ...task, requestHash: 'other' }));
      expect(await reimport(store, runId, changed, true)).toMatchObject({ replaced: 3, kept: 0 });
      expect((await store.record([], [completed(third)])).lostTaskIds).toEqual([third.taskId]);
      expect((await store.summarizeRun(runId)).counts).toMatchObject({ ready: 3, failed: 0, delayed: 0 });
      expect((await claim(store, runId, 9)).map((task) => task.attempts)).toEqual([0, 0, 0]);
      expect(await store.nextDueMs(runId)).toBeNull();
    });

    it('keeps a finished answer with its document where the user says so', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(2));
      await drain(store, runId);
      const changed = document(1, { line: 2, requestHash: 'other', body: '{"text":"edited"}' });
      const tally = await reimport(store, runId, [document(2, { line: 1 }), changed], true);
      expect(tally).toEqual({ added: 0, unchanged: 1, replaced: 0, kept: 1, answeredBefore: 0, gone: 0 });
      const rows = await results(store, runId);
      expect(rows.map((row) => [row.line, row.key])).toEqual([
        [1, 'document-2'],
        [2, 'document-1'],
      ]);
      expect(rows[1]?.body).toBe('{"text":"document 1"}');
      expect(await store.matchTasks(runId, [changed], 'server')).toEqual(['changed_finished']);
    });

    it('gives a document the answer that its request had before, with all its figures and no call', async () => {
      const store = await storeOf();
      const edited = documents(2).map((task) => ({ ...task, requestHash: `edited ${task.line}` }));
      const runId = await openRun(store, documents(2));
      await answerWithKey(store, runId);
      const first = await results(store, runId);
      await reimport(store, runId, edited);
      await drain(store, runId);
      const second = await results(store, runId);
      const { calls, usage, costMicroUsd } = await store.summarizeRun(runId);

      expect(await store.matchTasks(runId, documents(2), 'server')).toEqual([
        'answered_before',
        'answered_before',
      ]);
      // Whether finished answers are to be kept is no question where nothing is to be paid for.
      expect(await reimport(store, runId, documents(2), true)).toMatchObject({ answeredBefore: 2, kept: 0 });
      expect(await results(store, runId)).toEqual(first);
      expect(await reimport(store, runId, edited)).toMatchObject({ answeredBefore: 2, replaced: 0 });
      expect(await results(store, runId)).toEqual(second);
      expect(await store.summarizeRun(runId)).toMatchObject({
        calls,
        usage,
        costMicroUsd,
        counts: { ready: 0, completed: 2 },
      });
      expect(await store.maintenance.recount()).toEqual([]);
      expect(await claim(store, runId, 9)).toEqual([]);
    });

    it('takes an earlier answer for a document that waits or has failed meanwhile', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(2));
      await answerWithKey(store, runId);
      await reimport(
        store,
        runId,
        documents(2).map((task) => ({ ...task, requestHash: 'edited' })),
      );
      await store.record([], [failed(await claimOne(store, runId))]);
      expect(await reimport(store, runId, documents(2))).toMatchObject({ answeredBefore: 2 });
      expect(await answers(store, runId)).toEqual([
        [1, 'document-1', '"document-1"'],
        [2, 'document-2', '"document-2"'],
      ]);
      expect(await store.maintenance.recount()).toEqual([]);
    });

    it('takes no earlier answer of others, nor one of which nobody can tell whose it is', async () => {
      const store = await storeOf();
      const edited = [document(1, { requestHash: 'edited' })];
      const runId = await openRun(store, documents(1));
      await drain(store, runId);
      await reimport(store, runId, edited, false, { soFar: 'here', fromNowOn: 'there' });
      expect(await store.matchTasks(runId, documents(1), 'there')).toEqual(['changed_open']);
      expect(await store.matchTasks(runId, documents(1), 'here')).toEqual(['answered_before']);

      await drain(store, runId);
      await reimport(store, runId, documents(1), false, { soFar: null, fromNowOn: 'there' });
      await drain(store, runId);
      expect(await store.matchTasks(runId, edited, 'there')).toEqual(['changed_finished']);
    });

    it('carries over fields that the request does not use', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(2));
      await drain(store, runId);
      await reimport(store, runId, [
        document(1, { metadataJson: '{"tag":"new"}' }),
        document(2, { body: '{"text":"document 2","note":1}' }),
      ]);
      expect(await results(store, runId)).toMatchObject([
        { metadataJson: '{"tag":"new"}', state: 'completed' },
        { body: '{"text":"document 2","note":1}', state: 'completed' },
      ]);
    });

    it('carries over the type of an id', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [
        document(1, { key: '1' }),
        document(2, { key: '2', idIsNumber: true }),
      ]);
      await drain(store, runId);
      expect(await results(store, runId)).toMatchObject([{ key: '1' }, { key: '2', idIsNumber: true }]);
      await reimport(store, runId, [document(1, { key: '1', idIsNumber: true }), document(2, { key: '2' })]);
      const [first, second] = await results(store, runId);
      expect(first).toMatchObject({ key: '1', idIsNumber: true, state: 'completed' });
      expect(second).not.toHaveProperty('idIsNumber');
    });

    it('neither drains, counts nor exports what is gone from the input', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(5));
      const [first, second, third] = await claim(store, runId, 3);
      if (!first || !second || !third) throw new Error('claimed too few');
      await store.record([], [completed(first), failed(second), retried(third, 0)]);
      expect(await reimport(store, runId, [document(5)])).toMatchObject({ gone: 4, unchanged: 1 });
      const summary = await store.summarizeRun(runId);
      expect(summary).toMatchObject({ gone: 4, failedByKind: {} });
      expect(summary.counts).toMatchObject({ ready: 1, delayed: 0, completed: 0, failed: 0 });
      expect(await results(store, runId)).toEqual([]);
      expect(await store.nextDueMs(runId)).toBeNull();
      expect(await store.retryTasks(runId, {})).toBe(0);
      await storeOf.passTime(1);
      expect((await claim(store, runId, 9)).map((task) => task.key)).toEqual(['document-5']);
    });

    it('gives a document that comes back its answer again, without another call', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(3));
      await answerWithKey(store, runId);
      await reimport(store, runId, [document(2)]);
      expect(await answers(store, runId)).toEqual([[2, 'document-2', '"document-2"']]);
      const back = [document(3, { line: 1 }), document(2), document(1, { line: 3 })];
      expect(await store.matchTasks(runId, back, 'server')).toEqual(['unchanged', 'unchanged', 'unchanged']);
      expect(await reimport(store, runId, back)).toMatchObject({ added: 0, unchanged: 3, gone: 0 });
      expect(await answers(store, runId)).toEqual([
        [1, 'document-3', '"document-3"'],
        [2, 'document-2', '"document-2"'],
        [3, 'document-1', '"document-1"'],
      ]);
      expect(await claim(store, runId, 9)).toEqual([]);
      expect(await store.summarizeRun(runId)).toMatchObject({ gone: 0, counts: { completed: 3 } });
    });

    it('lets a task settle that went from the input while it was in progress', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(2));
      const task = await claimOne(store, runId);
      await reimport(store, runId, [document(2)]);
      expect((await store.record([], [completed(task)])).lostTaskIds).toEqual([]);
      expect(await results(store, runId)).toEqual([]);
      await reimport(store, runId, documents(2));
      expect((await results(store, runId)).map((row) => row.key)).toEqual(['document-1']);
    });

    it('is importing from begin to finish, and open afterwards', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      await drain(store, runId);
      await store.updateRun(runId, { status: 'finished' });
      const status = async (): Promise<string | undefined> => (await store.listRuns())[0]?.status;
      await store.beginReimport(runId);
      expect(await status()).toBe('importing');
      await store.reimportTasks(runId, documents(1), RERUN);
      expect(await status()).toBe('importing');
      await store.finishReimport(runId);
      expect(await status()).toBe('open');
    });

    it('starts over after a crash in the middle, and then ends as if there had been none', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(4));
      await answerWithKey(store, runId);
      await store.beginReimport(runId);
      await store.reimportTasks(runId, [document(4, { line: 1 }), document(9, { line: 2 })], RERUN);

      const restarted = await storeOf.again();
      expect((await restarted.listRuns())[0]?.status).toBe('importing');
      expect(await reimport(restarted, runId, [document(2, { line: 1 }), document(4, { line: 2 })])).toEqual({
        added: 0,
        unchanged: 2,
        replaced: 0,
        kept: 0,
        answeredBefore: 0,
        gone: 3,
      });
      expect(await answers(restarted, runId)).toEqual([
        [1, 'document-2', '"document-2"'],
        [2, 'document-4', '"document-4"'],
      ]);
      expect(await restarted.summarizeRun(runId)).toMatchObject({
        gone: 3,
        counts: { completed: 2, ready: 0 },
      });
    });

    it('loses no row of an export while lines stand twice in an unfinished import', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(4));
      await drain(store, runId);
      await store.beginReimport(runId);
      await store.reimportTasks(runId, [document(4, { line: 1 }), document(3, { line: 2 })], RERUN);
      const keys: string[] = [];
      for (let afterLine = 0; ; ) {
        const page = await store.readResults({ runId, only: 'all', afterLine, limit: 1, includeBody: false });
        const last = page.at(-1);
        if (last === undefined) break;
        keys.push(...page.map((row) => row.key));
        afterLine = last.line;
      }
      expect(keys.sort()).toEqual(['document-1', 'document-2', 'document-3', 'document-4']);
    });

    it('keeps the calls of a replaced task in the ledger', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(1));
      const task = await claimOne(store, runId);
      await startCall(store, runId, task);
      await reimport(store, runId, [document(1, { requestHash: 'other' })]);
      const report = await store.rescueTasks({ workers: [WORKER], crashLimit: 3 });
      expect(report).toEqual({ rescued: 0, lostCalls: 1, poisoned: 0 });
      expect((await store.summarizeRun(runId)).calls).toMatchObject({ made: 1, open: 0, repeated: 1 });
    });
  });
}
