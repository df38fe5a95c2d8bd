import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openAtomicFile } from '../../src/results/atomic-file.js';
import { temporaryFolder } from './rows.js';

const fresh = { mayReplace: false };
const replacing = { mayReplace: true };

async function writeWhole(path: string, text: string, options = fresh): Promise<void> {
  const file = await openAtomicFile(path, options);
  await file.write(text);
  await file.commit();
}

describe('an atomic file', () => {
  it('has its name only once it is whole', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'out.jsonl');
    const file = await openAtomicFile(path, fresh);
    await file.write('one\n');
    await file.write(Buffer.from('two\n'));
    expect(existsSync(path)).toBe(false);
    await file.commit();
    expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n');
    expect(readdirSync(folder)).toEqual(['out.jsonl']);
  });

  it('leaves the old content until the new one is whole', async () => {
    const path = join(temporaryFolder(), 'out.jsonl');
    writeFileSync(path, 'old');
    const file = await openAtomicFile(path, replacing);
    await file.write('new');
    expect(readFileSync(path, 'utf8')).toBe('old');
    await file.commit();
    expect(readFileSync(path, 'utf8')).toBe('new');
  });

  it('leaves nothing behind when it is aborted, also twice', async () => {
    const folder = temporaryFolder();
    const file = await openAtomicFile(join(folder, 'out.jsonl'), fresh);
    await file.write('half');
    await file.abort();
    await file.abort();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('keeps its content when it is aborted after the commit', async () => {
    const path = join(temporaryFolder(), 'out.jsonl');
    const file = await openAtomicFile(path, fresh);
    await file.commit();
    await file.abort();
    expect(existsSync(path)).toBe(true);
  });

  it('is refused where a file stands that may not be replaced', async () => {
    const path = join(temporaryFolder(), 'out.jsonl');
    writeFileSync(path, 'precious');
    await expect(openAtomicFile(path, fresh)).rejects.toMatchObject({
      code: 'OUTPUT_EXISTS',
      exitCode: 2,
      message: expect.stringContaining(path),
    });
    expect(readFileSync(path, 'utf8')).toBe('precious');
  });

  it('never replaces a file that came while it was written', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'out.jsonl');
    const file = await openAtomicFile(path, fresh);
    await file.write('ours');
    writeFileSync(path, 'theirs');
    await expect(file.commit()).rejects.toMatchObject({ code: 'OUTPUT_EXISTS' });
    expect(readFileSync(path, 'utf8')).toBe('theirs');
    expect(readdirSync(folder)).toEqual(['out.jsonl']);
  });

  it('names the path and what to do for a folder, a missing folder and a file taken for a folder', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'plain'), '');
    const cases = [
      [folder, 'it is a folder'],
      [join(folder, 'missing', 'out.jsonl'), 'its folder does not exist'],
      [join(folder, 'plain', 'out.jsonl'), 'not a folder'],
      [join(folder, 'n'.repeat(300)), 'too long'],
    ] as const;
    for (const [path, reason] of cases) {
      await expect(openAtomicFile(path, replacing)).rejects.toMatchObject({
        code: 'OUTPUT_PATH',
        exitCode: 2,
        message: expect.stringMatching(new RegExp(`${path}.*${reason}`)),
      });
    }
  });

  it('says so when its folder vanished before the commit', async () => {
    const folder = join(temporaryFolder(), 'sub');
    mkdirSync(folder);
    const path = join(folder, 'out.jsonl');
    const file = await openAtomicFile(path, replacing);
    await file.write('x');
    rmSync(folder, { recursive: true });
    await expect(file.commit()).rejects.toMatchObject({ message: expect.stringContaining(path) });
  });

  it.skipIf(!existsSync('/dev/full'))('reports a full disk with the path and exit code 5', async () => {
    const file = await openAtomicFile('/dev/full', fresh);
    await expect(file.write('x')).rejects.toMatchObject({
      code: 'OUTPUT_WRITE',
      exitCode: 5,
      message: 'Cannot write /dev/full: the disk is full.',
      hint: 'free some space',
    });
    await file.abort();
  });

  it('replaces what a symbolic link points to and keeps the link', async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'real'));
    writeFileSync(join(folder, 'real', 'target'), 'old');
    symlinkSync(join('real', 'target'), join(folder, 'link'));
    await expect(openAtomicFile(join(folder, 'link'), fresh)).rejects.toMatchObject({
      code: 'OUTPUT_EXISTS',
    });
    await writeWhole(join(folder, 'link'), 'new', replacing);
    expect(lstatSync(join(folder, 'link')).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(folder, 'real', 'target'), 'utf8')).toBe('new');
    expect(readdirSync(join(folder, 'real'))).toEqual(['target']);
  });

  it('makes the target of a link that dangles', async () => {
    const folder = temporaryFolder();
    symlinkSync('later', join(folder, 'link'));
    await writeWhole(join(folder, 'link'), 'here');
    expect(readFileSync(join(folder, 'later'), 'utf8')).toBe('here');
    expect(lstatSync(join(folder, 'link')).isSymbolicLink()).toBe(true);
  });

  it('refuses links that form a circle', async () => {
    const folder = temporaryFolder();
    symlinkSync('b', join(folder, 'a'));
    symlinkSync('a', join(folder, 'b'));
    await expect(openAtomicFile(join(folder, 'a'), fresh)).rejects.toMatchObject({ code: 'OUTPUT_PATH' });
  });

  it.skipIf(process.platform === 'win32')('keeps the permissions of the file it replaces', async () => {
    const path = join(temporaryFolder(), 'out.jsonl');
    writeFileSync(path, 'old');
    chmodSync(path, 0o666);
    await writeWhole(path, 'new', replacing);
    expect(statSync(path).mode & 0o777).toBe(0o666);
  });

  it.skipIf(process.platform === 'win32')('writes into a named pipe instead of replacing it', async () => {
    const path = join(temporaryFolder(), 'pipe');
    execFileSync('mkfifo', [path]);
    const reader = spawn('cat', [path]);
    let read = '';
    reader.stdout.on('data', (chunk) => {
      read += chunk;
    });
    const closed = once(reader, 'close');
    await writeWhole(path, 'through the pipe');
    await closed;
    expect(read).toBe('through the pipe');
    expect(statSync(path).isFIFO()).toBe(true);
  });

  it('removes what a killed writer left, and nothing of a living one', async () => {
    const folder = temporaryFolder();
    const dead = spawnSync('true').pid;
    const leftovers = [`.out.jsonl.${dead}-0123abcd.partial`, `.out.jsonl.${process.pid}-0123abcd.partial`];
    const others = [
      `.out.jsonl.${process.ppid}-0123abcd.partial`,
      `.other.jsonl.${dead}-0123abcd.partial`,
      '.out.jsonl.notes.partial',
    ];
    for (const name of [...leftovers, ...others]) writeFileSync(join(folder, name), 'half');
    const concurrent = await openAtomicFile(join(folder, 'out.jsonl'), replacing);
    await writeWhole(join(folder, 'out.jsonl'), 'whole', replacing);
    await concurrent.commit();
    expect(readdirSync(folder).sort()).toEqual([...others, 'out.jsonl'].sort());
  });
});
