import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { RejectsWriter } from '../../src/results/rejects.js';
import { temporaryFolder } from './rows.js';

describe('the rejects file', () => {
  it('holds number, reason and text of every bad line', async () => {
    const path = join(temporaryFolder(), 'reviews.rejects.jsonl');
    const rejects = new RejectsWriter(path, { mayReplace: false });
    await rejects.write({ line: 3, reason: 'not JSON', text: '{"a":\u2028' });
    await rejects.write({ line: 9, reason: 'longer than 32 MiB', text: null });
    expect(rejects.count).toBe(2);
    expect(await rejects.finish()).toBe(path);
    expect(readFileSync(path, 'utf8')).toBe(
      '{"line":3,"reason":"not JSON","text":"{\\"a\\":\\u2028"}\n' +
        '{"line":9,"reason":"longer than 32 MiB","text":null}\n',
    );
  });

  it('is not made for a clean input', async () => {
    const folder = temporaryFolder();
    const rejects = new RejectsWriter(join(folder, 'reviews.rejects.jsonl'), { mayReplace: false });
    expect(await rejects.finish()).toBe(null);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('leaves nothing behind when the import is given up', async () => {
    const folder = temporaryFolder();
    const rejects = new RejectsWriter(join(folder, 'reviews.rejects.jsonl'), { mayReplace: false });
    await rejects.write({ line: 1, reason: 'not JSON', text: 'x' });
    await rejects.abort();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('does not replace a file of somebody else', async () => {
    const path = join(temporaryFolder(), 'reviews.rejects.jsonl');
    writeFileSync(path, 'mine');
    const rejects = new RejectsWriter(path, { mayReplace: false });
    await expect(rejects.write({ line: 1, reason: 'not JSON', text: 'x' })).rejects.toMatchObject({
      code: 'OUTPUT_EXISTS',
    });
  });
});
