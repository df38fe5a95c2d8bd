/** Which answers stand for a call: those of equal documents of the run, and of earlier runs that were asked alike. */
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/core/json.js';
import type { RunRecord } from '../../src/core/run.js';
import { settingsToJson } from '../../src/runs/run-settings.js';
import { pairDocuments, settlePairs } from '../../src/runs/share-answers.js';
import { openStore } from '../../src/store/open.js';
import type { SharedPage, Store } from '../../src/store/store.js';
import { claim, completed, document, drain, failed, results } from '../contract/store/builders.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryFolder } from '../support/program.js';
import { runSettingsOf } from '../support/run-settings.js';

const LANE = 'OPENAI_API_KEY@api.openai.com';

const clock = new FakeClock();

let folder: ReturnType<typeof temporaryFolder>;
let store: Store;
let shared: SharedPage[];

beforeEach(async () => {
  folder = temporaryFolder();
  store = await openStore(join(folder.path, 'llm-batch.db'), { mode: 'write', clock });
  shared = [];
});

afterEach(async () => {
  await store.close();
  folder.remove();
});

interface Made {
  /** As on the command line. */
  readonly flags?: Readonly<Record<string, string | boolean>>;
  /** Of the configuration file. */
  readonly file?: JsonObject;
  readonly simulate?: boolean;
}

/** A run of these requests, a document each. */
async function make(name: string, requests: readonly string[], made: Made = {}): Promise<RunRecord> {
  const { flags = {}, file = {}, simulate = false } = made;
  const settings = await runSettingsOf({ flags, file, simulate, folder: folder.path });
  const run = await store.createRun({
    name,
    inputPath: `/data/${name}.jsonl`,
    simulated: simulate,
    settings: settingsToJson(settings, { folder: null }),
    createdAtMs: clock.now(),
  });
  const tasks = requests.map((request, index) =>
    document(index + 1, { requestHash: `sha256:${request.repeat(20)}` }),
  );
  await store.addTasks(run.id, tasks);
  return store.updateRun(run.id, { status: 'open' });
}

/** An earlier run that has an answer for each of its documents. */
async function answered(name: string, requests: readonly string[], made: Made = {}, lane = LANE) {
  const run = await make(name, requests, made);
  for (const task of await claim(store, run.id, 100)) {
    const start = {
      ...{ runId: run.id, tasks: [task], lane },
      ...{ startedAtMs: clock.now(), reservedTokens: 1, mostTokens: 1, mostCostMicroUsd: null },
    };
    await store.record([start], []);
    await store.record([], [completed(task)]);
  }
}

function optionsOf(run: RunRecord, interrupts: () => number = () => 0) {
  return { store, run, clock, interrupts, onShared: async (page: SharedPage) => void shared.push(page) };
}

/** @returns how many documents have an answer without a call */
async function sharedBy(run: RunRecord): Promise<number> {
  await pairDocuments(optionsOf(run));
  return (await store.summarizeRun(run.id)).counts.completed;
}

describe('--dedupe', () => {
  it('lets equal documents wait for the first, and gives them its answer once it is there', async () => {
    const run = await make('docs', ['a', 'b', 'a', 'a'], { flags: { dedupe: true } });
    await pairDocuments(optionsOf(run));
    expect(shared).toEqual([]);
    await drain(store, run.id);
    expect((await store.summarizeRun(run.id)).counts).toMatchObject({ completed: 2, ready: 2 });
    await settlePairs(optionsOf(run));
    expect((await store.summarizeRun(run.id)).counts).toMatchObject({ completed: 4, ready: 0 });
    expect(shared.map(({ settledTaskIds, failed }) => [settledTaskIds.length, failed])).toEqual([[2, 0]]);
  });

  it('tells a failure that was handed out as a failure', async () => {
    const run = await make('docs', ['a', 'a'], { flags: { dedupe: true } });
    await pairDocuments(optionsOf(run));
    await drain(store, run.id, (task, call) => failed(task, 'refused', call));
    await settlePairs(optionsOf(run));
    expect(shared).toMatchObject([{ failed: 1 }]);
    expect(shared[0]?.settledTaskIds).toHaveLength(1);
  });

  it('that is taken back at a later start sends every document by itself', async () => {
    const run = await make('docs', ['a', 'a'], { flags: { dedupe: true } });
    await pairDocuments(optionsOf(run));
    expect((await store.summarizeRun(run.id)).shared.waiting).toBe(1);
    const settings = { ...run.settings, sharing: { dedupe: false, reuse: false } };
    await pairDocuments(optionsOf(await store.updateRun(run.id, { settings })));
    expect((await store.summarizeRun(run.id)).shared.waiting).toBe(0);
    expect(await claim(store, run.id, 9)).toHaveLength(2);
  });

  it('hands out what is left of an earlier start before anything is called', async () => {
    const run = await make('docs', ['a', 'a'], { flags: { dedupe: true } });
    await pairDocuments(optionsOf(run));
    await drain(store, run.id);
    expect(await sharedBy(run)).toBe(2);
    expect(shared).toHaveLength(1);
  });
});

describe('--reuse', () => {
  const reuse = { reuse: true };

  it('takes answers of every earlier run that was asked alike', async () => {
    await answered('first', ['a', 'b']);
    await answered('second', ['c']);
    const run = await make('docs', ['a', 'c', 'd'], { flags: reuse });
    expect(await sharedBy(run)).toBe(2);
    expect(await results(store, run.id)).toMatchObject([
      { line: 1, sharedFrom: 'earlier_run', costMicroUsd: 0 },
      { line: 2, sharedFrom: 'earlier_run', costMicroUsd: 0 },
    ]);
    expect(shared.flatMap(({ settledTaskIds }) => settledTaskIds)).toHaveLength(2);
  });

  it('takes none where it is not asked for', async () => {
    await answered('first', ['a']);
    expect(await sharedBy(await make('docs', ['a']))).toBe(0);
  });

  it('takes none of another server', async () => {
    await answered(
      'first',
      ['a'],
      { flags: { baseUrl: 'http://127.0.0.1:1/v1' } },
      'OPENAI_API_KEY@127.0.0.1:1',
    );
    expect(await sharedBy(await make('docs', ['a'], { flags: reuse }))).toBe(0);
  });

  it('takes none of a run that was resumed at another server than it names now', async () => {
    await answered('first', ['a'], {}, 'OPENAI_API_KEY@127.0.0.1:1');
    expect(await sharedBy(await make('docs', ['a'], { flags: reuse }))).toBe(0);
  });

  it('takes none of a server that knows the model by another name', async () => {
    const lanes = (models: JsonObject): JsonObject => ({ lanes: [{ name: LANE, apiKeyEnv: 'A', models }] });
    await answered('first', ['a'], { file: lanes({ small: 'small-v1' }) });
    const models = { small: 'small-v2' };
    expect(await sharedBy(await make('docs', ['a'], { flags: reuse, file: lanes(models) }))).toBe(0);
    expect(
      await sharedBy(await make('same', ['a'], { flags: reuse, file: lanes({ small: 'small-v1' }) })),
    ).toBe(1);
  });

  it('takes none that was not checked as this run checks its answers', async () => {
    await answered('first', ['a']);
    expect(await sharedBy(await make('docs', ['a'], { flags: { ...reuse, jsonMode: true } }))).toBe(0);
  });

  it.each([
    ['a rehearsal for a real run', true, false],
    ['a real run for a rehearsal', false, true],
  ])('takes none of %s', async (_, first, second) => {
    await answered('first', ['a'], { simulate: first }, first ? 'simulator' : LANE);
    expect(await sharedBy(await make('docs', ['a'], { flags: reuse, simulate: second }))).toBe(0);
  });

  it('takes none for a picture of another folder', async () => {
    const prompt = 'What is this? {{image photo}}';
    await answered('first', ['a'], { flags: { prompt, imageFolder: folder.path } });
    const other = await make('docs', ['a'], { flags: { ...reuse, prompt, imageFolder: '/' } });
    expect(await sharedBy(other)).toBe(0);
    const same = await make('same', ['a'], { flags: { ...reuse, prompt, imageFolder: folder.path } });
    expect(await sharedBy(same)).toBe(1);
  });
});

describe('a user who asks to stop', () => {
  it('while documents are paired leaves the rest to the next start', async () => {
    const run = await make('docs', ['a', 'a', 'a'], { flags: { dedupe: true } });
    let asked = 0;
    await pairDocuments(
      optionsOf(run, () => {
        asked += 1;
        return asked;
      }),
    );
    expect((await store.summarizeRun(run.id)).shared.waiting).toBe(0);
    await pairDocuments(optionsOf(run));
    expect((await store.summarizeRun(run.id)).shared.waiting).toBe(2);
  });

  it('while answers are handed out leaves the rest to the next start, and loses none', async () => {
    const run = await make('docs', ['a', 'a', 'a'], { flags: { dedupe: true } });
    await pairDocuments(optionsOf(run));
    await drain(store, run.id);
    let interrupts = 0;
    await settlePairs({
      ...optionsOf(run, () => interrupts++),
    });
    expect((await store.summarizeRun(run.id)).counts).toMatchObject({ completed: 1, ready: 2 });
    expect(await sharedBy(run)).toBe(3);
  });

  it('before anything began does not stop it a second time', async () => {
    const run = await make('docs', ['a', 'a'], { flags: { dedupe: true } });
    await pairDocuments(optionsOf(run, () => 1));
    expect((await store.summarizeRun(run.id)).shared.waiting).toBe(1);
  });
});
