import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { ResultRow } from '../../src/core/result-row.js';
import { type WriteResultsOptions, writeResults } from '../../src/results/export.js';
import { completedRow, failedRow, pagesOf, temporaryFolder } from './rows.js';

const rows = [
  completedRow(1),
  failedRow(2),
  completedRow(3),
  completedRow(5),
  failedRow(8),
  completedRow(13),
];

function optionsFor(destination: WriteResultsOptions['destination']): WriteResultsOptions {
  return { readPage: pagesOf(rows, 2), format: 'jsonl', only: 'all', includeInput: false, destination };
}

function toFile(path: string, change: Partial<WriteResultsOptions> = {}): WriteResultsOptions {
  return { ...optionsFor({ kind: 'file', path, mayReplace: false }), ...change };
}

function linesOf(path: string): number[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).line);
}

/** A reader that takes its time: never more than one write under way. */
class SlowReader extends Writable {
  text = '';
  writes = 0;
  mostWaiting = 0;

  constructor() {
    super({ highWaterMark: 1 });
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk;
    this.writes += 1;
    this.mostWaiting = Math.max(this.mostWaiting, this.writableLength);
    setImmediate(done);
  }
}

/** Endless pages, as from a run that is far larger than memory: only a reader that goes away ends this export. */
async function endlessPages(afterLine: number): Promise<ResultRow[]> {
  return Array.from({ length: 100 }, (_, index) => completedRow(afterLine + 1 + index));
}

describe('writing results with columns for the fields of outputs', () => {
  it('looks at all outputs before the header', async () => {
    const path = join(temporaryFolder(), 'out.csv');
    const objects = [
      completedRow(1, { outputJson: '{"a":1}' }),
      failedRow(2),
      completedRow(3, { outputJson: '{"b":2,"a":3}' }),
    ];
    await writeResults(toFile(path, { format: 'csv', spreadOutput: true, readPage: pagesOf(objects, 1) }));
    const lines = readFileSync(path, 'utf8').split('\n');
    expect(lines[0]).toMatch(/,choices,items,a,b$/);
    expect(lines.slice(1, 4).map((line) => line.slice(-3))).toEqual(
      [',1,', ',,,', ',3,2'].map((end) => end.slice(-3)),
    );
  });
});

describe('writing results to a file', () => {
  it('writes every settled document in input order, page by page', async () => {
    const path = join(temporaryFolder(), 'out.jsonl');
    const progress: number[] = [];
    const written = await writeResults(toFile(path, { onProgress: (count) => progress.push(count) }));
    expect(written).toEqual({ completed: 4, failed: 2, readerGone: false });
    expect(linesOf(path)).toEqual([1, 2, 3, 5, 8, 13]);
    expect(progress).toEqual([2, 4, 6]);
  });

  it.each([
    ['completed', [1, 3, 5, 13]],
    ['failed', [2, 8]],
  ] as const)('writes only the %s ones when asked to', async (only, lines) => {
    const path = join(temporaryFolder(), 'out.jsonl');
    await writeResults(toFile(path, { only }));
    expect(linesOf(path)).toEqual(lines);
  });

  it('asks for each page after the last line of the one before', async () => {
    const readPage = pagesOf(rows, 2);
    await writeResults(toFile(join(temporaryFolder(), 'out.jsonl'), { readPage, only: 'failed' }));
    expect(readPage.asked).toEqual([0, 2, 5, 13]);
  });

  it('begins a CSV file with its header, also when nothing is settled', async () => {
    const path = join(temporaryFolder(), 'out.csv');
    await writeResults(toFile(path, { format: 'csv', readPage: pagesOf([]) }));
    expect(readFileSync(path, 'utf8')).toMatch(/^id,line,status,output,[^\n]*\n$/);
  });

  it('writes Batch API lines', async () => {
    const path = join(temporaryFolder(), 'out.jsonl');
    await writeResults(toFile(path, { format: 'openai' }));
    const [first = ''] = readFileSync(path, 'utf8').split('\n');
    expect(JSON.parse(first)).toMatchObject({ id: 'batch_req_101', custom_id: 'doc-1' });
  });

  it('leaves nothing behind when the store fails in the middle', async () => {
    const folder = temporaryFolder();
    const readPage = async (afterLine: number): Promise<ResultRow[]> => {
      if (afterLine > 0) throw new Error('disk I/O error');
      return [completedRow(1)];
    };
    await expect(writeResults(toFile(join(folder, 'out.jsonl'), { readPage }))).rejects.toThrow(
      'disk I/O error',
    );
    expect(readdirSync(folder)).toEqual([]);
  });

  it('does not read for ever from a store that repeats its pages', async () => {
    const readPage = async (): Promise<ResultRow[]> => [completedRow(1)];
    await expect(writeResults(toFile(join(temporaryFolder(), 'out.jsonl'), { readPage }))).rejects.toThrow(
      'page after line 1',
    );
  });
});

describe('writing results to a stream', () => {
  it('waits for a slow reader instead of piling up text', async () => {
    const stream = new SlowReader();
    const many = Array.from({ length: 5_000 }, (_, index) => completedRow(index + 1));
    const options = optionsFor({ kind: 'stream', stream, name: 'standard output' });
    await writeResults({ ...options, readPage: pagesOf(many, 500) });
    expect(stream.text.split('\n')).toHaveLength(5_001);
    expect(stream.writes).toBeGreaterThan(3);
    expect(stream.mostWaiting).toBeLessThan(512 * 1024);
    expect(stream.writableEnded).toBe(false);
  });

  it('ends quietly, and stops reading the store, when the reader goes away', async () => {
    const head = spawn('head', ['-n', '2'], { stdio: ['pipe', 'pipe', 'inherit'] });
    let read = '';
    head.stdout.on('data', (chunk) => {
      read += chunk;
    });
    const closed = once(head, 'close');
    const written = await writeResults({
      ...optionsFor({ kind: 'stream', stream: head.stdin, name: 'standard output' }),
      readPage: endlessPages,
    });
    await closed;
    expect(written.readerGone).toBe(true);
    expect(read.split('\n')).toHaveLength(3);
  });

  it('writes nothing more to a stream whose reader went earlier', async () => {
    const stream = new SlowReader();
    stream.destroy();
    const written = await writeResults(optionsFor({ kind: 'stream', stream, name: 'standard output' }));
    expect(written.readerGone).toBe(true);
  });

  it.skipIf(!existsSync('/dev/full'))('reports a full disk behind a redirected stream', async () => {
    const stream = createWriteStream('/dev/full');
    await expect(
      writeResults(optionsFor({ kind: 'stream', stream, name: 'standard output' })),
    ).rejects.toMatchObject({
      code: 'OUTPUT_WRITE',
      exitCode: 5,
      message: 'Cannot write standard output: the disk is full.',
    });
  });
});
