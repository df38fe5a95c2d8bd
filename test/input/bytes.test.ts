import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { wayOutOf } from '../../src/commands/error-words.js';
import { LlmBatchError } from '../../src/core/errors.js';
import { type ByteInput, openBytes } from '../../src/input/bytes.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-input-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const noStdin = Readable.from([]);

function write(name: string, content: string | Uint8Array): string {
  writeFileSync(join(folder, name), content);
  return name;
}

function makeFolder(name: string): string {
  mkdirSync(join(folder, name));
  return name;
}

async function contentOf(input: ByteInput): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of input.chunks) chunks.push(Buffer.from(chunk));
  await input.close();
  return Buffer.concat(chunks).toString();
}

function open(path: string, stdin: AsyncIterable<Uint8Array | string> = noStdin): Promise<ByteInput> {
  return openBytes(path, { cwd: folder, stdin });
}

async function failureOf(promise: Promise<unknown>): Promise<LlmBatchError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason) => reason,
  );
  expect(error).toBeInstanceOf(LlmBatchError);
  return error as LlmBatchError;
}

/** Several chunks long, compressed too, and no two chunks alike. */
const manyLines = Array.from({ length: 30_000 }, (_, index) => `${digest(index)}\n`).join('');

function digest(index: number): string {
  return createHash('sha256').update(String(index)).digest('base64');
}

describe('openBytes', () => {
  it('reads a file relative to the working folder and counts what it has read', async () => {
    write('in.jsonl', manyLines);
    const input = await open('in.jsonl');
    expect(input.absolutePath).toBe(join(folder, 'in.jsonl'));
    expect(input.totalBytes).toBe(manyLines.length);
    expect(input.bytesRead()).toBe(0);
    expect(await contentOf(input)).toBe(manyLines);
    expect(input.bytesRead()).toBe(manyLines.length);
  });

  it('reads an absolute path', async () => {
    write('in.jsonl', '{}\n');
    expect(await contentOf(await open(join(folder, 'in.jsonl')))).toBe('{}\n');
  });

  it('unpacks gzip, also with several members, and counts compressed bytes', async () => {
    const packed = Buffer.concat([gzipSync(manyLines), gzipSync('{"id":"last"}\n')]);
    write('in.jsonl.gz', packed);
    const input = await open('in.jsonl.gz');
    expect(input.totalBytes).toBe(packed.length);
    expect(await contentOf(input)).toBe(`${manyLines}{"id":"last"}\n`);
    expect(input.bytesRead()).toBe(packed.length);
  });

  it('recognises gzip whatever the name, in a file and on standard input', async () => {
    write('in.jsonl', gzipSync('{}\n'));
    expect(await contentOf(await open('in.jsonl'))).toBe('{}\n');
    const packed = gzipSync('{}\n');
    const oneByteFirst = Readable.from([packed.subarray(0, 1), packed.subarray(1)]);
    expect(await contentOf(await open('-', oneByteFirst))).toBe('{}\n');
  });

  it('reads standard input, whose length it does not know', async () => {
    const input = await open('-', Readable.from(['{"id":1}\n', Buffer.from('{"id":2}\n')]));
    expect(input).toMatchObject({ absolutePath: '-', totalBytes: null, name: 'standard input' });
    expect(await contentOf(input)).toBe('{"id":1}\n{"id":2}\n');
  });

  it('does not wait for standard input when it is closed', async () => {
    const stdin = new PassThrough();
    stdin.write('{"id":1}\n');
    const input = await open('-', stdin);
    await input.close();
    await input.close();
    stdin.destroy();
  });

  it('reads a named pipe', async () => {
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    const writing = writeFile(join(folder, 'pipe'), '{}\n');
    const input = await open('pipe');
    expect(input.totalBytes).toBeNull();
    expect(await contentOf(input)).toBe('{}\n');
    await writing;
  });

  it('can be closed in the middle', async () => {
    write('in.jsonl', manyLines);
    const input = await open('in.jsonl');
    for await (const chunk of input.chunks) {
      expect(chunk.length).toBeLessThan(manyLines.length);
      break;
    }
    await input.close();
    await input.close();
  });

  it.each([
    ['a missing file', () => 'gone.jsonl', 'INPUT_NOT_FOUND', /no input file .*gone\.jsonl/],
    ['a path through a file', () => join(write('a', '{}'), 'b'), 'INPUT_NOT_FOUND', /no input file/],
    ['a folder', () => makeFolder('sub'), 'INPUT_IS_FOLDER', /sub is a folder/],
    ['an empty file', () => write('empty.jsonl', ''), 'INPUT_EMPTY', /empty\.jsonl is empty/],
    ['empty standard input', () => '-', 'INPUT_EMPTY', /^Standard input is empty/],
    [
      'UTF-16',
      () => write('w.jsonl', Buffer.from('\ufeff{}', 'utf16le')),
      'INPUT_NOT_UTF8',
      /w\.jsonl is UTF-16/,
    ],
    [
      'a ZIP archive',
      () => write('z.jsonl', 'PK\u0003\u0004…'),
      'INPUT_NOT_UTF8',
      /z\.jsonl is a ZIP archive/,
    ],
    ['a SQLite file', () => write('s', 'SQLite format 3\0'), 'INPUT_IS_SQLITE', /s is a SQLite database/],
    [
      'a Parquet file by another name',
      () => write('p.jsonl', Buffer.from('PAR1\u0015\u0004…')),
      'INPUT_IS_PARQUET',
      /p\.jsonl is a Parquet file/,
    ],
  ])('refuses %s with exit code 2, naming it and the way out', async (_name, prepare, code, message) => {
    const error = await failureOf(open(prepare()));
    expect(error).toMatchObject({ code, exitCode: 2 });
    expect(error.message).toMatch(message);
    expect(wayOutOf(error)).toBeTruthy();
  });

  it.runIf(process.getuid?.() !== 0)('refuses a file it may not read', async () => {
    write('secret.jsonl', '{}');
    chmodSync(join(folder, 'secret.jsonl'), 0);
    expect(await failureOf(open('secret.jsonl'))).toMatchObject({ code: 'INPUT_UNREADABLE', exitCode: 2 });
  });

  it.each([
    [
      'cut off',
      (packed: Buffer) => packed.subarray(0, packed.length - 20),
      /in\.jsonl\.gz ends in the middle/,
    ],
    ['damaged', (packed: Buffer) => packed.fill(0x55, 200, 260), /in\.jsonl\.gz is damaged/],
    ['no gzip at all', () => Buffer.from('{"id":1}\n'), /in\.jsonl\.gz is damaged or no gzip data/],
  ])('tells of a gzip file that is %s', async (_name, spoil, message) => {
    write('in.jsonl.gz', spoil(gzipSync(manyLines)));
    const input = await open('in.jsonl.gz');
    const error = await failureOf(contentOf(input));
    await input.close();
    expect(error).toMatchObject({ code: 'INPUT_DAMAGED_GZIP', exitCode: 2 });
    expect(error.message).toMatch(message);
  });

  it.runIf(process.platform === 'linux')('leaves no file open', async () => {
    const openFiles = (): number => readdirSync('/proc/self/fd').length;
    write('in.jsonl', manyLines);
    const before = openFiles();
    // Kept, so that nothing is closed by the garbage collector.
    const inputs: ByteInput[] = [];
    for (let index = 0; index < 20; index += 1) inputs.push(await open('in.jsonl'));
    expect(openFiles()).toBeGreaterThanOrEqual(before + 20);
    for (const input of inputs) await input.close();
    for (let index = 0; index < 20; index += 1) await failureOf(open(write('empty.jsonl', '')));
    expect(openFiles()).toBeLessThan(before + 10);
  });
});
