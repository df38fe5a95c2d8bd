/** Places that a test cannot mount and disks that it cannot fill are handed in. */
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { wayOutOf } from '../../../src/commands/error-words.js';
import { systemClock } from '../../../src/core/clock.js';
import type { Diagnosis } from '../../../src/runs/diagnose/diagnose.js';
import { diagnoseStore } from '../../../src/runs/diagnose/diagnose-store.js';
import type { FileSystem } from '../../../src/store/file-system.js';

const GIGABYTE = 1_000_000_000;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-diagnose-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

async function lookAt(place: Partial<FileSystem>): Promise<Map<Diagnosis['check'], Diagnosis>> {
  const path = join(folder, 'llm-batch.db');
  const fileSystem = () => ({
    name: 'ext4',
    network: false,
    uncertain: false,
    freeBytes: 9 * GIGABYTE,
    ...place,
  });
  const findings = new Map<Diagnosis['check'], Diagnosis>();
  for await (const finding of diagnoseStore({
    url: path,
    path,
    clock: systemClock,
    userId: null,
    fileSystem,
  })) {
    findings.set(finding.check, finding);
  }
  return findings;
}

describe('the file system of a store', () => {
  it.each<[place: Partial<FileSystem>, level: Diagnosis['level'], words: string]>([
    [{ name: 'nfs', network: true }, 'fault', 'network file system (nfs)'],
    [{ name: 'fuse', uncertain: true }, 'warning', 'fuse'],
    [{ name: 'ext4' }, 'ok', 'ext4'],
    [{ name: 'unknown' }, 'ok', 'no kind that is known to be unsafe'],
  ])('%j is told as a %s', async (place, level, words) => {
    const found = (await lookAt(place)).get('file_system');
    expect(found).toMatchObject({ level, message: expect.stringContaining(words) });
    if (level !== 'ok') expect(found?.wayOut && wayOutOf(found.wayOut)).toContain('--db');
  });
});

describe('the room on its disk', () => {
  it.each([
    [GIGABYTE, 'ok'],
    [GIGABYTE - 1, 'warning'],
    [0, 'warning'],
  ])('of %i bytes is told as %s', async (freeBytes, level) => {
    expect((await lookAt({ freeBytes })).get('disk_space')).toMatchObject({ level });
  });

  it('has to take the log of the store twice', async () => {
    const log = join(folder, 'llm-batch.db-wal');
    writeFileSync(log, '');
    truncateSync(log, 2 * GIGABYTE);
    expect((await lookAt({ freeBytes: 4 * GIGABYTE })).get('disk_space')?.level).toBe('ok');
    const found = (await lookAt({ freeBytes: 3.9 * GIGABYTE })).get('disk_space');
    expect(found).toMatchObject({ level: 'warning', message: expect.stringContaining('2.0 GB') });
  });
});
