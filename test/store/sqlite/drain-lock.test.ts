import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { openStore } from '../../../src/store/open.js';
import { claim, documents, NOW_MS, openRun, WORKER } from '../../contract/store/builders.js';
import { type Child, startChild } from './child.js';

let folder: string;
let path: string;
let owner: Child;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-lock-'));
  path = join(folder, 'llm-batch.db');
  owner = startChild(
    `const store = await openStore(path, { mode: 'write', clock });
     await store.acquireDrainLock({ pid: process.pid, host: 'server', runName: 'reviews', sinceMs: ${NOW_MS} });
     said('owner'); await told();`,
    path,
  );
  await owner.said('owner');
});

afterEach(async () => {
  await owner.kill();
  rmSync(folder, { recursive: true });
});

const write = { mode: 'write', clock: systemClock } as const;

describe('a store that another process drains', () => {
  it('is refused by the name of that process', async () => {
    const store = await openStore(path, write);
    const mine = { pid: process.pid, host: 'server', runName: 'other', sinceMs: NOW_MS + 1 };
    const refused = store.acquireDrainLock(mine);
    await expect(refused).rejects.toMatchObject({ code: 'STORE_LOCKED', exitCode: 5 });
    await expect(refused).rejects.toThrow(`process ${owner.process.pid} on server (run "reviews")`);
    await store.close();
  });

  it('tells a reader who that is', async () => {
    const reader = await openStore(path, { mode: 'read', clock: systemClock });
    expect(await reader.readOwner()).toEqual({
      pid: owner.process.pid,
      host: 'server',
      runName: 'reviews',
      sinceMs: NOW_MS,
    });
    await owner.kill();
    expect(await reader.readOwner()).toBeNull();
    await reader.close();
  });

  it('is free at once when that process is killed, and its tasks can be rescued', async () => {
    const store = await openStore(path, write);
    const runId = await openRun(store, documents(2));
    await claim(store, runId, 2);
    await owner.kill();
    await store.acquireDrainLock({ pid: process.pid, host: 'server', runName: 'reviews', sinceMs: NOW_MS });
    const report = await store.rescueTasks({ workers: [WORKER], crashLimit: 3 });
    expect(report.rescued).toBe(2);
    expect((await store.readOwner())?.pid).toBe(process.pid);
    await store.close();
  });

  it('is not disturbed by others who look who it is', async () => {
    const reader = await openStore(path, { mode: 'read', clock: systemClock });
    for (let look = 0; look < 50; look += 1) await reader.readOwner();
    const store = await openStore(path, write);
    await expect(
      store.acquireDrainLock({ pid: 1, host: 'h', runName: 'r', sinceMs: NOW_MS }),
    ).rejects.toMatchObject({ code: 'STORE_LOCKED' });
    await store.close();
    await reader.close();
  });
});
