/** Runs move from a file to a server as they are, and are there wholly or not at all. */
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CopyOptions, copyRows } from '../../../src/store/row-copy.js';
import type { Store } from '../../../src/store/store.js';
import {
  ANSWER,
  callEnd,
  callStart,
  claim,
  claimOne,
  completed,
  completedTogether,
  document,
  documents,
  drain,
  failed,
  NOW_MS,
  openRun,
  RERUN,
  results,
  retried,
  type StoreUnderTest,
  WORKER,
} from '../../contract/store/builders.js';
import { openSqliteUnderTest } from '../sqlite/sqlite-under-test.js';
import { openPostgresUnderTest } from './postgres-under-test.js';

let file: StoreUnderTest;
let server: StoreUnderTest;
let source: Store;
let target: Store;

beforeEach(async () => {
  file = await openSqliteUnderTest();
  server = await openPostgresUnderTest();
  source = file.store;
  target = server.store;
});

afterEach(async () => {
  await file.dispose();
  await server.dispose();
});

const OPTIONS: CopyOptions = {
  settingsOf: ({ settings }) => settings,
  signal: new AbortController().signal,
  onProgress: () => undefined,
};

/** Runs in which everything has happened that leaves a trace in a store. */
async function manySorts(): Promise<void> {
  await source.deleteRun(await openRun(source, documents(3), 'deleted'));
  const runId = await openRun(
    source,
    [document(1, { metadataJson: '{"a":1}' }), ...documents(12).slice(1)],
    'many',
  );
  const tasks = await claim(source, runId, 8);
  const { callIds } = await source.record(
    [callStart(runId, tasks.slice(0, 3)), ...tasks.slice(3, 7).map((task) => callStart(runId, task))],
    [],
  );
  const [together = 0, odd = 0, refused = 0, later = 0, lost = 0] = callIds.map(Number);
  const [, , , fourth, fifth, sixth] = tasks;
  if (fourth === undefined || fifth === undefined || sixth === undefined) throw new Error('claimed too few');
  const answer = {
    ...ANSWER,
    outputJson: '"nul \\u0000"',
    responseJson: '{"a": 1.0}',
    detailsJson: '{"b":2}',
  };
  await source.record(
    [],
    [
      completedTogether(tasks.slice(0, 3), callEnd(together)),
      completed(fourth, callEnd(odd, { latencyMs: 3.5, requestId: 'with \0 and \u001a in it' }), answer),
      failed(fifth, 'refused', callEnd(refused, { kind: 'refused', costMicroUsd: 0.25 })),
      retried(sixth, 5_000, callEnd(later, { kind: 'overloaded', usage: null, costMicroUsd: null })),
    ],
  );
  expect(lost).toBeGreaterThan(0);
  await source.rescueTasks({ crashLimit: 3, workers: [WORKER] });
  const edited = documents(12).map((each) => (each.line === 4 ? { ...each, requestHash: 'edited' } : each));
  await source.beginReimport(runId);
  await source.reimportTasks(runId, edited.slice(0, 11), RERUN);
  await source.finishReimport(runId);
  await source.noteObservations(runId, [{ kind: 'outage', subject: 'lane-1', value: { since: 5 } }]);

  const sharing = await openRun(source, [document(1), document(2, { requestHash: 'request-1' })], 'sharing');
  let cursor: string | null = null;
  do cursor = await source.pairTasks({ runId: sharing, dedupe: true, reuseFrom: [runId] }, cursor, 100);
  while (cursor !== null);

  const remote = await openRun(source, documents(2), 'remote');
  const batch = await source.remote.begin({
    ...{ runId: remote, kind: 'batch', lane: 'lane-1', endpoint: 'chat', model: 'model-1', createdAtMs: 1 },
  });
  const load = { bytes: 100, mostTokens: 900, mostCostMicroUsd: 70 };
  await source.remote.give(batch.id, await claim(source, remote, 1), load);
  await source.remote.note(batch.id, { state: 'built' });

  const inside = await source.createRun({
    ...{ name: 'served', inputPath: join(source.folder ?? '', 'input.jsonl'), simulated: true, settings: {} },
    createdAtMs: NOW_MS,
  });
  await source.updateRun(inside.id, {
    status: 'open',
    outputPaths: [join(source.folder ?? '', 'results.jsonl')],
  });
  await source.served.adoptRun(inside.id, false);
  const handedIn = [1, 2].map((number) => ({
    ...{
      publicId: `task_${number}`,
      requestHash: `request-${number}`,
      priority: 0,
      body: '{}',
      metadataJson: null,
    },
    ...{ idempotency: { key: `key-${number}`, bodyHash: 'body' }, maxAttempts: 2, traceparent: '00-trace' },
    webhookUrl: 'https://receiver.example/hook',
  }));
  await source.served.submit(inside.id, handedIn, { mostOpen: 10, ttlMs: 1_000_000 });
  await source.record([], [completed(await claimOne(source, inside.id))]);
}

/** All that the port shows of a store's runs, by their names: numbers may differ. */
async function picture(store: Store): Promise<unknown> {
  const runs = [];
  for (const { id, folder: _, ...run } of await store.listRuns()) {
    const places = await store.listTasks(id, 0, 1_000);
    const tasks = await store.readTasks(
      id,
      places.map(({ taskId }) => taskId),
    );
    const page = {
      runId: id,
      only: 'all',
      afterLine: 0,
      limit: 100,
      includeBody: true,
      includeResponse: true,
    } as const;
    const withoutNumber = <Row extends { taskId: number }>({ taskId: _, ...row }: Row) => row;
    runs.push({
      run,
      tasks: tasks.map(withoutNumber),
      results: (await store.readResults(page)).map(withoutNumber),
      summary: await store.summarizeRun(id),
      timeline: await store.readTimeline(id, 10),
      latencies: await store.readLatencies(id),
      isServed: (await store.served.listRuns()).some(({ runId }) => runId === id),
      batches: (await store.remote.list(id)).map(({ id: _, runId: __, ...batch }) => batch),
    });
  }
  return runs;
}

describe('copied runs', () => {
  it('are all that they were, and go on from there', async () => {
    await manySorts();
    // So that every number is another one there.
    await drain(target, await openRun(target, documents(2), 'there'));
    await copyRows(source, target, OPTIONS);
    const copies = (await picture(target)) as unknown[];
    expect(copies.slice(0, -1)).toEqual(await picture(source));
    expect(await target.maintenance.recount()).toEqual([]);
    const [due] = await source.served.takeWebhooks(9, 1_000);
    const { publicId, messageId, url } = due ?? {};
    expect(await target.served.takeWebhooks(9, 1_000)).toMatchObject([{ publicId, messageId, url }]);
    expect(await target.served.find('task_2')).toMatchObject({ state: 'ready', traceparent: '00-trace' });
    const [served, , , many] = await target.listRuns();
    expect(await claim(target, served?.id ?? 0, 9)).toMatchObject([{ maxAttempts: 2 }]);
    const runId = many?.id ?? 0;
    // Keys are found, earlier answers are taken back, and new numbers are free.
    expect(await target.matchTasks(runId, [document(1), document(4), document(99)], 'server')).toEqual([
      'unchanged',
      'answered_before',
      'new',
    ]);
    expect(await target.addTasks(runId, [document(1), document(99)])).toEqual({ added: 1, duplicates: 1 });
    let settled = 0;
    for (const { id } of await target.listRuns()) {
      settled += (await target.settlePairs(id, 0, 100)).settledTaskIds.length;
    }
    expect(settled, 'answers are taken from where they are now').toBe(2);
    const lines = (await claim(target, runId, 100)).map(({ line }) => line);
    const original = (await source.listRuns()).find(({ name }) => name === 'many');
    const originals = await claim(source, original?.id ?? 0, 100);
    expect(lines).toEqual([...originals.map(({ line }) => line), 99]);
  });

  it('come beside runs that are there, and are refused where one has the same name', async () => {
    const there = await openRun(target, documents(5), 'there');
    await drain(target, there);
    const before = await picture(target);
    await openRun(source, documents(3), 'new');
    await claimOne(source, 1);
    await source.rescueTasks({ crashLimit: 3, workers: [WORKER] });
    await copyRows(source, target, OPTIONS);
    const after = (await picture(target)) as unknown[];
    expect(after.slice(1)).toEqual(before);
    expect(after.slice(0, 1)).toEqual(await picture(source));
    const [copied] = await target.listRuns();
    await drain(target, copied?.id ?? 0);
    expect(await results(target, copied?.id ?? 0)).toHaveLength(3);
    expect(await target.maintenance.recount()).toEqual([]);
    await expect(copyRows(source, target, OPTIONS)).rejects.toMatchObject({ code: 'COPY_NAME_TAKEN' });
    expect(await target.maintenance.examine()).toMatchObject({ unsweptRuns: 0 });
  });

  it('are not there before all of them is, and what was cut off is swept up by the next copy', async () => {
    await manySorts();
    const leave = new AbortController();
    const seen: number[] = [];
    const interrupted = await copyRows(source, target, {
      ...OPTIONS,
      signal: leave.signal,
      onProgress: (copied, total) => {
        seen.push(copied / total);
        if (copied / total > 0.7) leave.abort();
      },
    });
    expect(interrupted).toBeNull();
    expect(await target.listRuns()).toEqual([]);
    expect(await target.maintenance.examine()).toMatchObject({ unsweptRuns: 4 });
    await copyRows(source, target, OPTIONS);
    expect(await target.maintenance.examine()).toMatchObject({ unsweptRuns: 0 });
    expect(await picture(target)).toEqual(await picture(source));
    expect(await target.maintenance.recount()).toEqual([]);
  });

  it('are left alone by others that sweep and copy meanwhile', async () => {
    await openRun(source, documents(3), 'new');
    const other = await server.openAgain();
    // Over a connection that is there already, so that the first does not come when all is done.
    await other.maintenance.sweepDeletedRuns(null, 100);
    const swept: Promise<string | null>[] = [];
    await copyRows(source, target, {
      ...OPTIONS,
      onProgress: () => void swept.push(other.maintenance.sweepDeletedRuns(null, 100)),
    });
    await Promise.all(swept);
    expect(await picture(target)).toEqual(await picture(source));
  });

  it('with a batch at a provider keep the numbers that the batch names, or are not copied', async () => {
    const runId = await openRun(source, documents(1), 'remote');
    const batch = await source.remote.begin({
      ...{ runId, kind: 'batch', lane: 'lane-1', endpoint: 'chat', model: 'model-1', createdAtMs: 1 },
    });
    const tasks = await claim(source, runId, 1);
    await source.remote.give(batch.id, tasks, { bytes: 1, mostTokens: 1, mostCostMicroUsd: 1 });
    await source.remote.note(batch.id, { state: 'submitted', remoteId: 'batch-1' });
    await copyRows(source, target, OPTIONS);
    const [copied] = await target.listRuns();
    const [there] = await target.remote.list(copied?.id ?? 0);
    expect(await target.remote.tasksOf(there?.id ?? 0, { limit: 9 })).toEqual(tasks);

    await target.deleteRun(copied?.id ?? 0);
    await expect(copyRows(source, target, OPTIONS)).rejects.toMatchObject({ code: 'COPY_OPEN_BATCHES' });
  });

  it('go from a file to a server alone', async () => {
    await expect(copyRows(target, source, OPTIONS)).rejects.toMatchObject({ code: 'COPY_DIRECTION' });
  });
});
