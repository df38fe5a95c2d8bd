/** The file for answers that were paid for and that the store could not take. */
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Settlement } from '../../src/core/outcome.js';
import { findSalvage, saveSalvage } from '../../src/runs/salvage.js';
import { completed } from '../contract/store/builders.js';
import { temporaryFolder } from '../support/program.js';

let folder: ReturnType<typeof temporaryFolder>;
let path: string;

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, 'llm-batch.db.salvage.jsonl');
  mkdirSync(join(folder.path, 'tmp'));
  vi.stubEnv('TMPDIR', join(folder.path, 'tmp'));
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  folder.remove();
});

function settlement(taskId: number): Settlement {
  return completed({ taskId, attemptToken: `token-${taskId}` });
}

function linesOf(file: string): unknown[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown);
}

/** What is in a file each time that it is synced. */
async function syncedSizes(work: () => Promise<unknown>): Promise<number[]> {
  const handle = await open(join(folder.path, 'any'), 'w');
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const sizes: number[] = [];
  const sync = prototype.sync;
  vi.spyOn(prototype, 'sync').mockImplementation(async function (this: FileHandle) {
    sizes.push((await this.stat()).size);
    return sync.call(this);
  });
  await work();
  return sizes;
}

describe('an answer that cannot be stored', () => {
  it('is on the disk, not only in its cache, when it counts as saved', async () => {
    const sizes = await syncedSizes(() => saveSalvage(path, [settlement(1), settlement(2)]));
    expect(sizes).toContain(statSync(path).size);
  });

  it('can be read by its owner alone', async () => {
    await saveSalvage(path, [settlement(1)]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('is put behind what is there, whole, though the last line was cut', async () => {
    await saveSalvage(path, [settlement(1)]);
    const cut = readFileSync(path, 'utf8').trimEnd().slice(0, -5);
    writeFileSync(path, cut);
    await saveSalvage(path, [settlement(2), settlement(3)]);
    const lines = readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
    expect(lines[0]).toBe(cut.trim());
    expect(lines.slice(1).map((line) => JSON.parse(line))).toEqual([settlement(2), settlement(3)]);
  });

  it('finds another place where there is none beside the store, and is found there again', async () => {
    mkdirSync(path);
    const place = await saveSalvage(path, [settlement(1)]);
    expect(place).not.toBe(path);
    expect(linesOf(place)).toEqual([settlement(1)]);
    expect(findSalvage(path)).toContain(place);
  });

  it('that finds no place at all ends with an error that counts what is lost and says what to do', async () => {
    mkdirSync(path);
    vi.stubEnv('TMPDIR', join(folder.path, 'is-not-there'));
    await expect(saveSalvage(path, [settlement(1), settlement(2)])).rejects.toMatchObject({
      code: 'SALVAGE_FAILED',
      exitCode: 5,
      message: expect.stringContaining('2 answers could not be stored') as string,
      hint: expect.stringContaining('resume') as string,
    });
  });
});
