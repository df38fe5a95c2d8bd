/** What a process does first that takes a store over, when the one before it died. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CallEnd } from '../../src/core/call.js';
import { recoverStore } from '../../src/runs/recover.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';
import {
  callEnd,
  claim,
  claimOne,
  completed,
  documents,
  failed,
  openRun,
  released,
  results,
  startCall,
  USAGE,
  WORKER,
} from '../contract/store/builders.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryFolder } from '../support/program.js';
import { storeWith } from '../support/store-with.js';

const clock = new FakeClock();

let folder: ReturnType<typeof temporaryFolder>;
let store: Store;
let salvagePath: string;

beforeEach(async () => {
  folder = temporaryFolder();
  const path = join(folder.path, 'llm-batch.db');
  salvagePath = `${path}.salvage.jsonl`;
  store = await openStore(path, { mode: 'write', clock });
});

afterEach(async () => {
  await store.close();
  folder.remove();
});

function leave(...settlements: object[]): void {
  writeFileSync(salvagePath, settlements.map((settlement) => `${JSON.stringify(settlement)}\n`).join(''));
}

/** As a process that starts does: with the lock of a store that nobody else is at work on any more. */
async function recover() {
  await (await takenOver()).close();
  return recoverStore(store, salvagePath);
}

async function takenOver(): Promise<Store> {
  const starting = await openStore(`${folder.path}/llm-batch.db`, { mode: 'write', clock });
  await starting.acquireDrainLock({ pid: 1, host: 'here', runName: 'reviews', sinceMs: 0 });
  return starting;
}

describe('a store that is taken over', () => {
  it('has the answers that the one before could not store, before its documents are put back', async () => {
    const runId = await openRun(store, documents(3));
    const tasks = await claim(store, runId, 3);
    const [answered, refused] = tasks;
    if (answered === undefined || refused === undefined) throw new Error('claimed too few');
    const answer = completed(answered, callEnd(await startCall(store, runId, answered)));
    const refusal = callEnd(await startCall(store, runId, refused), {
      kind: 'rate_limited',
      httpStatus: 429,
      usage: null,
      costMicroUsd: null,
    });
    leave(answer, released(refused, null, false, refusal));

    // The third alone was in progress with nobody knowing what became of it.
    expect(await recover()).toEqual({ rescued: 1, lostCalls: 0, poisoned: 0 });
    const { counts, calls } = await store.summarizeRun(runId);
    expect(counts).toMatchObject({ completed: 1, ready: 2, in_progress: 0 });
    expect(calls).toEqual({ made: 2, open: 0, failed: 1, repeated: 0, late: 0 });
    expect(existsSync(salvagePath)).toBe(false);
  });

  it('reads what a version left that knew calls of one task only, the call inside what became of it', async () => {
    const runId = await openRun(store, documents(2));
    const [answered, refused] = await claim(store, runId, 2);
    if (answered === undefined || refused === undefined) throw new Error('claimed too few');
    const refusal = { kind: 'refused', httpStatus: 400 } as const;
    const older = [
      completed(answered, callEnd(await startCall(store, runId, answered))),
      failed(refused, 'refused', callEnd(await startCall(store, runId, refused), refusal)),
    ].map(({ call, outcomes }) => {
      const { message: _, ...callThen } = call as CallEnd;
      const { share: __, ...outcomeThen } = outcomes[0] ?? { share: null };
      return { ...outcomeThen, call: callThen };
    });
    leave(...older);
    expect(await recover()).toEqual({ rescued: 0, lostCalls: 0, poisoned: 0 });
    expect(await results(store, runId)).toMatchObject([
      { state: 'completed', usage: USAGE, costMicroUsd: 42, latencyMs: 800 },
      { state: 'failed', usage: USAGE, costMicroUsd: 42, error: { message: 'it was refused' } },
    ]);
    expect(await store.maintenance.recount()).toEqual([]);
  });

  it('takes what can be read of a file that was cut in the middle of a line', async () => {
    const runId = await openRun(store, documents(2));
    const [one, other] = await claim(store, runId, 2);
    if (one === undefined || other === undefined) throw new Error('claimed too few');
    const lines = [completed(one, null), completed(other, null)].map((outcome) => JSON.stringify(outcome));
    writeFileSync(salvagePath, `\n${lines[0]}\n\n${lines[1]?.slice(0, -20)}`);
    expect(await recover()).toMatchObject({ rescued: 1 });
    expect(await results(store, runId)).toMatchObject([{ line: 1, state: 'completed' }]);
  });

  it('changes nothing that was settled otherwise since', async () => {
    const runId = await openRun(store, documents(1));
    const first = await claimOne(store, runId);
    leave(completed(first, null, { outputJson: '"too late"', model: 'm', finishReason: 'stop' }));
    await store.rescueTasks({ workers: [WORKER], crashLimit: 3 });
    await store.record([], [completed(await claimOne(store, runId))]);
    expect(await recover()).toEqual({ rescued: 0, lostCalls: 0, poisoned: 0 });
    expect(await results(store, runId)).toMatchObject([{ result: { outputJson: '"fine"' } }]);
    expect(existsSync(salvagePath)).toBe(false);
  });

  it('keeps the file where its outcomes cannot be recorded, and puts nothing back', async () => {
    const runId = await openRun(store, documents(1));
    leave(completed(await claimOne(store, runId)));
    const broken = new Error('the disk is broken');
    const failing = storeWith(store, { record: () => Promise.reject(broken) });
    await expect(recoverStore(failing, salvagePath)).rejects.toBe(broken);
    expect(existsSync(salvagePath)).toBe(true);
    expect((await store.summarizeRun(runId)).counts).toMatchObject({ in_progress: 1 });
  });

  it('puts every document back, whichever run and whatever lease it has', async () => {
    const one = await openRun(store, documents(2), 'one');
    const other = await openRun(store, documents(1), 'other');
    await claim(store, one, 2);
    await claim(store, other, 1);
    expect(await recover()).toMatchObject({ rescued: 3 });
  });

  it('tries a document that was alone at a crash three times, then takes it for the cause', async () => {
    const runId = await openRun(store, documents(1));
    for (const poisoned of [0, 0, 1]) {
      await startCall(store, runId, await claimOne(store, runId));
      expect(await recover()).toMatchObject({ rescued: 1 - poisoned, poisoned });
    }
    expect(await results(store, runId)).toMatchObject([{ state: 'failed', error: { kind: 'poison' } }]);
  });
});
