/** Wall clocks are set while tasks wait for their time: nothing freezes, nothing is released all at once. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openStore } from '../../../src/store/open.js';
import type { Store } from '../../../src/store/store.js';
import { claim, claimOne, documents, openRun, released, retried } from '../../contract/store/builders.js';
import { FakeClock } from '../../support/fake-clock.js';

const HOUR_MS = 3_600_000;

let folder: string;
let clock: FakeClock;
let store: Store;
let runId: number;

const open = () => openStore(join(folder, 'llm-batch.db'), { mode: 'write', clock });

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-schedule-'));
  clock = new FakeClock();
  store = await open();
  runId = await openRun(store, documents(1));
  await store.record([], [retried(await claimOne(store, runId), 5_000)]);
});

afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

it.each([30 * 24 * HOUR_MS, -30 * 24 * HOUR_MS])(
  'a clock that is set by %i ms while a store is open changes nothing',
  async (byMs) => {
    clock.jumpWallClock(byMs);
    expect(await store.nextDueMs(runId)).toBe(5_000);
    expect(await claim(store, runId, 1)).toEqual([]);
    await clock.advance(5_000);
    expect(await store.nextDueMs(runId)).toBe(0);
    expect(await claim(store, runId, 1)).toHaveLength(1);
  },
);

it('a clock that was set back between two processes lets nobody wait for the time it has lost', async () => {
  await store.close();
  clock.jumpWallClock(-30 * 24 * HOUR_MS);
  store = await open();
  expect(await store.nextDueMs(runId)).toBe(0);
  expect(await claim(store, runId, 1)).toHaveLength(1);
});

it('a clock that is set counts for nothing in how long throttling has held a task back', async () => {
  await clock.advance(5_000);
  await store.record([], [released(await claimOne(store, runId), null, true)]);
  clock.jumpWallClock(24 * HOUR_MS);
  await clock.advance(2_000);
  expect((await claimOne(store, runId)).throttledForMs).toBe(2_000);
});

it('a clock that was set back does not make what was throttled before look as if it were still to come', async () => {
  await clock.advance(5_000);
  await store.record([], [released(await claimOne(store, runId), null, true)]);
  await store.close();
  clock.jumpWallClock(-24 * HOUR_MS);
  store = await open();
  expect((await claimOne(store, runId)).throttledForMs).toBe(0);
});
