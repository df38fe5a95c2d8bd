import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { openFileSink } from '../../src/results/sink.js';
import { temporaryFolder } from './rows.js';

describe('a file whose name ends in .gz', () => {
  it('is one gzip stream of all that was written, however much', async () => {
    const path = join(temporaryFolder(), 'out.jsonl.gz');
    const sink = await openFileSink(path, { mayReplace: false });
    let all = '';
    for (let line = 0; line < 20_000; line += 1) {
      const text = `{"line":${line},"text":"${'ü'.repeat(line % 90)}"}\n`;
      all += text;
      await sink.write(text);
    }
    await sink.finish();
    const compressed = readFileSync(path);
    expect(gunzipSync(compressed).toString()).toBe(all);
    expect(compressed.length).toBeLessThan(all.length / 5);
  });

  it('is complete or absent: dropped half-way, it leaves nothing behind', async () => {
    const folder = temporaryFolder();
    const sink = await openFileSink(join(folder, 'out.jsonl.gz'), { mayReplace: false });
    await sink.write('x'.repeat(1_000_000));
    await sink.abort();
    expect(readdirSync(folder)).toEqual([]);
  });

  it.skipIf(process.platform !== 'linux')(
    'tells that the disk is full, and does not wait for ever',
    async () => {
      const path = join(temporaryFolder(), 'out.jsonl.gz');
      symlinkSync('/dev/full', path);
      const sink = await openFileSink(path, { mayReplace: true });
      const written = (async () => {
        // More than every buffer on the way takes, of what does not compress.
        for (let seed = 1, part = 0; part < 40; part += 1) {
          let text = '';
          while (text.length < 300_000) {
            seed = (seed * 48_271) % 2_147_483_647;
            text += seed.toString(36);
          }
          await sink.write(text);
        }
        await sink.finish();
      })();
      await expect(written).rejects.toMatchObject({
        code: 'OUTPUT_WRITE',
        message: expect.stringContaining('full'),
      });
      await sink.abort();
    },
  );
});
