/** The salvage file lies where others may put something: nothing of it is waited on, followed or believed. */
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { Settlement } from '../../src/core/outcome.js';
import { applySalvage, findSalvage, saveSalvage } from '../../src/runs/salvage.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';
import { temporaryFolder } from '../support/program.js';

const TASK = { taskId: 1, attemptToken: 'a-token' };
const RELEASED = {
  ...TASK,
  action: 'released',
  share: null,
  delayMs: null,
  isThrottled: false,
} as const;
const SETTLEMENT: Settlement = { call: null, outcomes: [RELEASED] };

let folder: ReturnType<typeof temporaryFolder>;
let store: Store;
let path: string;

beforeEach(async () => {
  folder = temporaryFolder();
  path = join(folder.path, 'llm-batch.db.salvage.jsonl');
  store = await openStore(join(folder.path, 'llm-batch.db'), { mode: 'write', clock: systemClock });
});

afterEach(async () => {
  await store.close();
  folder.remove();
});

describe('in the place of the salvage file', () => {
  it('a pipe is neither waited on nor written to: answers go to another file', async () => {
    execFileSync('mkfifo', [path]);
    expect(await applySalvage(store, path)).toBe(0);
    expect(findSalvage(path)).toEqual([]);
    const place = await saveSalvage(path, [SETTLEMENT]);
    expect(place).not.toBe(path);
    expect(findSalvage(path)).toEqual([place]);
    expect(await applySalvage(store, path)).toBe(0);
    expect(existsSync(place)).toBe(false);
    expect(lstatSync(path).isFIFO()).toBe(true);
  });

  it('a link is not followed', async () => {
    const victim = join(folder.path, 'victim');
    writeFileSync(victim, 'mine');
    symlinkSync(victim, path);
    expect(await applySalvage(store, path)).toBe(0);
    expect(await saveSalvage(path, [SETTLEMENT])).not.toBe(path);
    expect(readFileSync(victim, 'utf8')).toBe('mine');
    await applySalvage(store, path);
  });

  it('lines that are no settlements are left out', async () => {
    const odd = [
      { ...RELEASED, taskId: 'one' },
      { ...RELEASED, action: 'deleted' },
      { ...RELEASED, action: 'completed' },
      { ...RELEASED, action: 'completed', atMs: 1, result: { outputJson: 1, model: {}, finishReason: [] } },
      { ...RELEASED, action: 'failed', atMs: 1, error: { kind: 'unheard_of', message: '' } },
      { ...RELEASED, share: undefined },
      { ...RELEASED, share: { usage: null } },
    ].map((outcome) => ({ call: null, outcomes: [outcome] }));
    const odder = [
      null,
      1,
      [],
      {},
      { outcomes: [RELEASED] },
      { call: { callId: 1, finishedAtMs: 'soon' }, outcomes: [RELEASED] },
      // Of the older form, where an outcome had its call inside.
      { ...RELEASED, call: { callId: 1, finishedAtMs: 'soon' } },
      { ...TASK, action: 'released', notBeforeMs: null, throttledSinceMs: null },
    ];
    writeFileSync(path, [...odd, ...odder].map((line) => `${JSON.stringify(line)}\n`).join(''));
    expect(await applySalvage(store, path)).toBe(0);
    expect(existsSync(path)).toBe(false);
  });
});
