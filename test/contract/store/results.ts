import { describe, expect, it } from 'vitest';
import type { ResultPageOptions, Store } from '../../../src/store/store.js';
import {
  ANSWER,
  claim,
  completed,
  document,
  documents,
  drain,
  failed,
  openRun,
  retried,
} from './builders.js';
import type { StoreOf } from './store-of.js';

/** The lines of all pages; a page that brings nothing ends it. */
async function linesOfAllPages(
  store: Store,
  options: Omit<ResultPageOptions, 'afterLine'>,
): Promise<number[]> {
  const lines: number[] = [];
  for (let afterLine = 0; ; ) {
    const page = await store.readResults({ ...options, afterLine });
    const last = page.at(-1);
    if (last === undefined) return lines;
    lines.push(...page.map((row) => row.line));
    afterLine = last.line;
  }
}

export function resultsContract(storeOf: StoreOf): void {
  describe('results', () => {
    async function mixedRun(store: Store): Promise<number> {
      const runId = await openRun(store, documents(20));
      const tasks = await claim(store, runId, 18);
      const outcomes = tasks.map((task) => {
        if (task.line % 6 === 0) return failed(task, 'too_large');
        if (task.line % 4 === 0) return failed(task, 'refused');
        return task.line % 5 === 0 ? retried(task) : completed(task);
      });
      // Answers come in any order.
      await store.record([], outcomes.reverse());
      return runId;
    }

    it('come in input order, in pages that neither repeat nor leave out', async () => {
      const store = await storeOf();
      const runId = await mixedRun(store);
      const all = [1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14, 16, 17, 18];
      for (const limit of [1, 2, 7, 15, 100]) {
        expect(await linesOfAllPages(store, { runId, only: 'all', limit, includeBody: false })).toEqual(all);
      }
    });

    it('can be the completed ones, the failed ones, or one kind of failure', async () => {
      const store = await storeOf();
      const runId = await mixedRun(store);
      const lines = (only: 'completed' | 'failed', kind?: 'refused' | 'too_large'): Promise<number[]> =>
        linesOfAllPages(store, { runId, only, limit: 2, includeBody: false, ...(kind && { kind }) });
      expect(await lines('completed')).toEqual([1, 2, 3, 7, 9, 11, 13, 14, 17]);
      expect(await lines('failed')).toEqual([4, 6, 8, 12, 16, 18]);
      expect(await lines('failed', 'refused')).toEqual([4, 8, 16]);
      expect(await lines('failed', 'too_large')).toEqual([6, 12, 18]);
    });

    it('carry the document only when asked, its metadata always', async () => {
      const store = await storeOf();
      const runId = await openRun(store, [document(1, { metadataJson: '{"lang":"de"}' }), document(2)]);
      await drain(store, runId);
      const page = { runId, only: 'all', afterLine: 0, limit: 10 } as const;
      expect(await store.readResults({ ...page, includeBody: false })).toMatchObject([
        { metadataJson: '{"lang":"de"}', body: null },
        { metadataJson: null, body: null },
      ]);
      expect(await store.readResults({ ...page, includeBody: true })).toMatchObject([
        { metadataJson: '{"lang":"de"}', body: '{"text":"document 1"}' },
        { metadataJson: null, body: '{"text":"document 2"}' },
      ]);
    });

    it('carry the body of the server only when asked, character for character', async () => {
      const store = await storeOf();
      const runId = await openRun(store, documents(2));
      const responseJson = '{"id": "x", "n": 1.0,\n "choices": [{"message": {"content": "fine\\ud83d"}}]}';
      const answer = { ...ANSWER, detailsJson: '{"message":{"n": 1.0}}', responseJson };
      await drain(store, runId, (task, call) => completed(task, call, task.line === 1 ? answer : ANSWER));
      const page = { runId, only: 'all', afterLine: 0, limit: 10, includeBody: false } as const;
      const { responseJson: _, ...withoutResponse } = answer;
      expect((await store.readResults(page)).map(({ result }) => result)).toEqual([withoutResponse, ANSWER]);
      const asked = await store.readResults({ ...page, includeResponse: true });
      expect(asked.map(({ result }) => result)).toEqual([answer, ANSWER]);
    });

    it('are those of one run', async () => {
      const store = await storeOf();
      const first = await openRun(store, documents(2), 'first');
      const second = await openRun(store, documents(3), 'second');
      await drain(store, first);
      await drain(store, second);
      expect(
        await linesOfAllPages(store, { runId: first, only: 'all', limit: 9, includeBody: false }),
      ).toEqual([1, 2]);
    });

    it('can be read while tasks are settled: a page is one moment', async () => {
      const store = await storeOf();
      const reader = await storeOf.again();
      const runId = await openRun(store, documents(4));
      const [first, second, third] = await claim(store, runId, 3);
      if (!first || !second || !third) throw new Error('claimed too few');
      await store.record([], [completed(first), completed(third)]);
      const page = await reader.readResults({
        runId,
        only: 'all',
        afterLine: 0,
        limit: 1,
        includeBody: false,
      });
      await store.record([], [completed(second)]);
      const rest = await reader.readResults({
        runId,
        only: 'all',
        afterLine: 1,
        limit: 9,
        includeBody: false,
      });
      expect([...page, ...rest].map((row) => row.line)).toEqual([1, 2, 3]);
    });
  });
}
