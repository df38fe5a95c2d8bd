import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { openStore } from '../../src/store/open.js';
import { refusal } from '../support/refusal.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-open-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

const write = { mode: 'write', clock: systemClock } as const;

describe('a store URL', () => {
  it.each(['', 'sqlite:', 'sqlite://'])('may name a path after "%s"', async (prefix) => {
    const store = await openStore(`${prefix}${join(folder, 'my store.db')}`, write);
    expect(readdirSync(folder)).toContain('my store.db');
    await store.close();
  });

  it('may be a name with a colon or a question mark, which is a file like any other', async () => {
    const store = await openStore(join(folder, 'C:a?mode=memory'), write);
    expect(readdirSync(folder)).toContain('C:a?mode=memory');
    await store.close();
  });

  it.each(['mysql://localhost/db', 'https://example.com/'])('cannot be %s in this version', async (url) => {
    await expect(refusal(openStore(url, write))).resolves.toMatchObject({
      code: 'STORE_URL_UNSUPPORTED',
      exitCode: 2,
      wayOut: expect.stringContaining('--db'),
    });
  });

  it.each(['', 'sqlite:'])('must have a name: "%s"', async (url) => {
    await expect(openStore(url, write)).rejects.toMatchObject({ code: 'STORE_URL_EMPTY', exitCode: 2 });
  });
});
