/** Files that are small and ask for all the memory, all the disk or all the time there is. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ApartRequest, openApart } from '../../src/input/apart.js';
import { waitFor } from '../support/wait-for.js';
import { Workspace } from '../support/workspace.js';

/** Rows without an end; the second gives none at all. */
const ENDLESS = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)';
const ROWS_FOR_EVER = `${ENDLESS} SELECT i AS id, hex(zeroblob(1000)) AS text FROM n`;
const NO_ROW_EVER = `${ENDLESS} SELECT i AS id, 'x' AS text FROM n WHERE i < 0`;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-apart-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function database(path: string, view: string): void {
  const made = new Database(path);
  made.exec(`CREATE VIEW docs AS ${view}`);
  made.close();
}

async function rowsOf(request: Partial<ApartRequest>): Promise<number> {
  const source = await openApart({
    format: 'sqlite',
    path: 'in.db',
    cwd: folder,
    query: 'SELECT * FROM docs',
    ...request,
  });
  try {
    let rows = 0;
    for await (const page of source.records({})) rows += page.length;
    return rows;
  } finally {
    await source.close();
  }
}

describe('a view that never ends', () => {
  it('and yields no row ends with the reading', async () => {
    database(join(folder, 'in.db'), NO_ROW_EVER);
    const stop = new AbortController();
    const reading = rowsOf({ signal: stop.signal });
    const first = await Promise.race([reading, new Promise((resolve) => setImmediate(resolve, 'free'))]);
    expect(first).toBe('free');
    stop.abort();
    await expect(reading).rejects.toThrow();
  });

  it('and yields rows is refused before they fill the disk', async () => {
    database(join(folder, 'in.db'), ROWS_FOR_EVER);
    await expect(rowsOf({ mostCharacters: 1_000_000 })).rejects.toMatchObject({
      code: 'INPUT_UNPACKS',
      exitCode: 2,
    });
  });

  it('and yields one row that takes all memory is refused', async () => {
    database(join(folder, 'in.db'), 'SELECT 1 AS id, hex(zeroblob(200000000)) AS text');
    await expect(rowsOf({ mostMemoryBytes: 250_000_000 })).rejects.toMatchObject({
      code: 'INPUT_COSTLY',
      exitCode: 2,
    });
  });
});

describe('a Parquet page', () => {
  it.each(['GZIP', 'SNAPPY'] as const)(
    'unpacks to what it says with %s, or the file is damaged',
    async (codec) => {
      // A mebibyte of zeros for Snappy: a literal zero, then copies of it.
      const copies = Buffer.alloc(3 * 16_384, Buffer.from([0xfe, 0x01, 0x00]));
      const bomb =
        codec === 'GZIP'
          ? gzipSync(Buffer.alloc(50_000_000))
          : Buffer.concat([Buffer.from([0x80, 0x80, 0x40, 0x00, 0x00]), copies]);
      const bytes = parquetWriteBuffer({
        columnData: [{ name: 'text', data: ['a', 'b'], type: 'STRING' }],
        codec,
        compressors: { [codec]: () => new Uint8Array(bomb) },
      });
      writeFileSync(join(folder, 'in.parquet'), new Uint8Array(bytes));
      await expect(rowsOf({ format: 'parquet', path: 'in.parquet', query: null })).rejects.toMatchObject({
        code: 'INPUT_DAMAGED_PARQUET',
        message: expect.stringMatching(/larger than|premature end/),
      });
    },
  );

  it('whose rows all repeat one long word comes in pieces', async () => {
    const word = 'x'.repeat(1_000_000);
    const bytes = parquetWriteBuffer({
      columnData: [{ name: 'text', data: Array.from({ length: 50 }, () => word), type: 'STRING' }],
    });
    writeFileSync(join(folder, 'in.parquet'), new Uint8Array(bytes));
    const source = await openApart({ format: 'parquet', path: 'in.parquet', cwd: folder, query: null });
    const sizes: number[] = [];
    for await (const page of source.records({})) sizes.push(page.length);
    await source.close();
    expect(sizes.length).toBeGreaterThan(4);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(50);
  });
});

describe('the program that reads such a view', () => {
  const runArgs = ['run', 'in.db', '--query', 'SELECT * FROM docs', '--prompt', '{{text}}', '--simulate'];
  let workspace: Workspace;

  beforeEach(() => {
    workspace = new Workspace();
    database(workspace.path('in.db'), NO_ROW_EVER);
  });

  afterEach(() => workspace.remove());

  /** The process that reads, once it is there. */
  async function readerOf(pid: number | undefined): Promise<number> {
    let reader = 0;
    await waitFor('the reader', () => {
      reader = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);
      return reader > 0 && existsSync(`/proc/${reader}/environ`);
    });
    return reader;
  }

  it('hears a signal', async () => {
    const program = workspace.start(runArgs);
    await readerOf(program.child.pid);
    program.kill('SIGTERM');
    expect((await program.ended).exitCode).toBe(130);
  });

  it('takes its reader down with it when it is killed, and gave it no key', async () => {
    const program = workspace.start(runArgs, {
      environment: { OPENAI_API_KEY: 'sk-live-Zq7Lm2Xw9Rt4Yb8Nc3Vd6' },
    });
    const reader = await readerOf(program.child.pid);
    await waitFor('the program of the reader', () =>
      readFileSync(`/proc/${reader}/cmdline`, 'utf8').includes('reader-process'),
    );
    // A second and a half of processor time: it is in the view, and hears nothing any more.
    await waitFor('the reader at its work', () => {
      const [, after = ''] = readFileSync(`/proc/${reader}/stat`, 'utf8').split(') ');
      return Number(after.split(' ')[11]) > 150;
    });
    expect(readFileSync(`/proc/${reader}/environ`, 'utf8')).not.toContain('sk-live');
    program.kill('SIGKILL');
    await program.ended;
    await waitFor('the end of the reader', () => !existsSync(`/proc/${reader}`));
  });
});
