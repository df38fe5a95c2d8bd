import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import type { Connection } from '../../../src/store/sqlite/connection.js';
import { openDatabase } from '../../../src/store/sqlite/database.js';

type SyncEnd = (error: Error | null) => void;

/** The disk of these tests: null while it syncs at once, else what it has been asked for and not done. */
const disk = vi.hoisted(() => ({ asked: null as SyncEnd[] | null }));

vi.mock('node:fs', async (original) => ({
  ...(await original<typeof import('node:fs')>()),
  fsync: (_descriptor: number, end: SyncEnd) => {
    if (disk.asked === null) end(null);
    else disk.asked.push(end);
  },
}));

let folder: string;
let connection: Connection;
let asked: SyncEnd[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-log-sync-'));
  connection = await openDatabase(join(folder, 'llm-batch.db'), { mode: 'write', clock: systemClock });
  asked = [];
  disk.asked = asked;
});

afterEach(() => {
  disk.asked = null;
  connection.close();
  rmSync(folder, { recursive: true });
});

/** Writes, and notes when that has resolved or rejected. */
function write(): { end: string; done: Promise<void>; runs: number } {
  const written = { end: '', runs: 0, done: Promise.resolve() };
  const writing = connection.write(() => {
    written.runs += 1;
  });
  written.done = writing.then(
    () => {
      written.end = 'written';
    },
    (error: Error & { code?: string }) => {
      written.end = String(error.code);
    },
  );
  return written;
}

async function untilAsked(times: number): Promise<void> {
  while (asked.length < times) await new Promise((resolve) => setImmediate(resolve));
}

it('A write resolves once its log is on disk, and those that come meanwhile share the next sync', async () => {
  const first = write();
  await untilAsked(1);
  const others = [write(), write()];
  await new Promise((resolve) => setImmediate(resolve));
  expect([first, ...others].map(({ end }) => end)).toEqual(['', '', '']);
  expect(asked).toHaveLength(1);

  asked[0]?.(null);
  await first.done;
  await untilAsked(2);
  expect(others.map(({ end }) => end)).toEqual(['', '']);
  asked[1]?.(null);
  await Promise.all(others.map(({ done }) => done));
  expect(others.map(({ end }) => end)).toEqual(['written', 'written']);
  expect(asked).toHaveLength(2);
});

it.each(['EIO', 'ENOSPC'])(
  'A sync that fails (%s) fails every write from then on, and none runs twice',
  async (code) => {
    const failed = write();
    await untilAsked(1);
    const waiting = write();
    asked[0]?.(Object.assign(new Error(code), { code }));
    await Promise.all([failed.done, waiting.done]);
    const later = write();
    await later.done;
    expect([failed, waiting, later]).toMatchObject(Array(3).fill({ end: 'STORE_IO', runs: 1 }));
    expect(asked).toHaveLength(1);
  },
);

it.skipIf(process.platform !== 'linux')('A store may be closed twice, and while it syncs', async () => {
  const descriptors = (): number =>
    readdirSync('/proc/self/fd').filter((name) => {
      const link = join('/proc/self/fd', name);
      return existsSync(link) && readlinkSync(link).endsWith('-wal');
    }).length;
  disk.asked = null;
  const before = descriptors();
  const other = await openDatabase(join(folder, 'llm-batch.db'), { mode: 'write', clock: systemClock });
  disk.asked = asked;
  const written = other.write(() => undefined);
  await untilAsked(1);
  other.close();
  other.close();
  asked[0]?.(null);
  await written;
  await new Promise((resolve) => setImmediate(resolve));
  expect(descriptors()).toBe(before);
});
