import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { NewTask } from '../../src/core/task.js';
import { applyImport, type TaskPage } from '../../src/runs/import-input.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';
import { document, documents, openRun, RERUN } from '../contract/store/builders.js';
import { temporaryFolder } from '../support/program.js';

let folder: ReturnType<typeof temporaryFolder>;
let store: Store;

beforeEach(async () => {
  folder = temporaryFolder();
  store = await openStore(`${folder.path}/llm-batch.db`, { mode: 'write', clock: systemClock });
});

afterEach(async () => {
  await store.close();
  folder.remove();
});

function page(tasks: readonly NewTask[]): TaskPage {
  return { documents: tasks, bad: [], duplicates: 0 };
}

it('an import that is cut off leaves the settings that the answers were given under, and is not gone on with', async () => {
  const runId = await openRun(store, documents(2));
  const before = await store.updateRun(runId, { settings: { prompt: 'before' } });
  const edited = [document(1, { requestHash: 'edited' })];
  async function* cutOff() {
    yield page(edited);
    throw new Error('cut off');
  }
  const options = {
    store,
    run: before,
    skipBadLines: false,
    onBadLines: () => undefined,
    signal: new AbortController().signal,
  };
  const now = { prompt: 'now' };
  await expect(applyImport({ ...options, readPages: cutOff }, RERUN, now)).rejects.toThrow('cut off');
  expect((await store.listRuns())[0]).toMatchObject({ status: 'importing', settings: { prompt: 'before' } });

  async function* whole() {
    yield page([...edited, document(2)]);
  }
  const run = await applyImport({ ...options, readPages: whole }, RERUN, now);
  expect(run).toMatchObject({ status: 'open', settings: now });
});
