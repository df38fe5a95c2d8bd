import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { InputFormat } from '../../src/core/input-format.js';
import { readDocuments } from '../../src/documents/read.js';
import { openInput } from '../../src/input/input.js';
import { locateInput } from '../../src/input/input-files.js';
import type { InputRecord, RecordOptions } from '../../src/input/source.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-formats-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function write(name: string, content: string | Uint8Array): string {
  mkdirSync(join(folder, dirname(name)), { recursive: true });
  writeFileSync(join(folder, name), content);
  return name;
}

interface ReadOptions extends RecordOptions {
  readonly format?: InputFormat;
  readonly stdin?: string;
  readonly cwd?: string;
}

async function read(names: string | readonly string[], options: ReadOptions = {}) {
  const { format = null, stdin = '', cwd = folder, ...recordOptions } = options;
  const input = await openInput(names, { cwd, stdin: Readable.from(stdin === '' ? [] : [stdin]), format });
  const records: InputRecord[] = [];
  for await (const page of input.records(recordOptions)) records.push(...page);
  await input.close();
  return { format: input.description.format, records, read: input.bytesRead(), total: input.totalBytes };
}

async function textsOf(
  names: string | readonly string[],
  options: ReadOptions = {},
): Promise<(string | null)[]> {
  return (await read(names, options)).records.map(({ text }) => text);
}

describe('the format of an input', () => {
  const jsonl = '{"text":"x"}\n';
  const parquet = Buffer.from(
    parquetWriteBuffer({ columnData: [{ name: 'text', data: ['x'], type: 'STRING' }] }),
  );

  it.each([
    ['a.jsonl', jsonl, 'jsonl'],
    ['a.ndjson', jsonl, 'jsonl'],
    ['a.JSON', jsonl, 'jsonl'],
    ['a', jsonl, 'jsonl'],
    ['a.log', jsonl, 'jsonl'],
    ['a.csv', 'text\nx\n', 'csv'],
    ['a.CSV', 'text\nx\n', 'csv'],
    ['a.tsv', 'text\nx\n', 'tsv'],
    ['a.tab', 'text\nx\n', 'tsv'],
    ['a.txt', 'x\n', 'text'],
    ['a.parquet', parquet, 'parquet'],
    ['a.csv.gz', gzipSync('text\nx\n'), 'csv'],
    ['a.txt.gz', gzipSync('x\n'), 'text'],
    ['data[1].csv', 'text\nx\n', 'csv'],
  ] as const)('%s is told by its name', async (name, content, format) => {
    const found = await read(write(name, content));
    expect(found).toMatchObject({ format, records: [{ text: '{"text":"x"}' }] });
    expect(found.read).toBe(found.total);
  });

  it.each([
    ['csv', 'text\nx\n'],
    ['tsv', 'text\nx\n'],
    ['text', 'x\n'],
    ['jsonl', jsonl],
  ] as const)('is what the user says before what the name says: %s', async (format, content) => {
    expect(await textsOf(write('a.parquet', content), { format })).toEqual(['{"text":"x"}']);
    expect(await textsOf('-', { format, stdin: content })).toEqual(['{"text":"x"}']);
  });

  it.each([
    ['book.xlsx', /XLSX file/, /CSV/],
    ['t.avro', /AVRO file/, /Parquet or JSONL/],
    ['T.ARROW.gz', /ARROW file/, /Parquet/],
  ])('%s is refused with the way out', async (name, message, hint) => {
    await expect(read(name)).rejects.toMatchObject({
      code: 'INPUT_FORMAT_UNSUPPORTED',
      exitCode: 2,
      message: expect.stringMatching(message),
      hint: expect.stringMatching(hint),
    });
  });
});

describe('plain text', () => {
  it('is one document per line, numbered like the lines', async () => {
    const { records } = await read(write('a.txt', '\ufeffone "two"\r\n\n  \nthree\u2028\n'));
    expect(records).toEqual([
      { line: 1, text: '{"text":"one \\"two\\""}' },
      { line: 4, text: '{"text":"three\u2028"}' },
    ]);
  });

  it('reports lines that are not text', async () => {
    const { records } = await read(write('a.txt', Buffer.from([0x61, 0xe9, 0x0a, 0x62, 0x0a])));
    expect(records).toEqual([
      { line: 1, reason: 'not valid UTF-8 at byte 2 of the line', text: 'a\ufffd' },
      { line: 2, text: '{"text":"b"}' },
    ]);
  });
});

describe('text files', () => {
  function document(path: string, text: string): string {
    return JSON.stringify({ id: path, path, name: path.split('/').at(-1), text });
  }

  it('are one document each, sorted by path, however they are named', async () => {
    write('notes/b.md', 'B\n');
    write('notes/a.md', '\ufeffA');
    write('notes/c.txt', 'C');
    const expected = [document('notes/a.md', 'A'), document('notes/b.md', 'B\n')];
    for (const names of [
      'notes/*.md',
      ['notes/b.md', 'notes/a.md'],
      ['./notes/b.md', 'notes/a.md', 'notes/b.md'],
    ]) {
      expect(await textsOf(names)).toEqual(expected);
    }
    expect(await textsOf(join(folder, 'notes', '*.md'))).toEqual(expected);
    expect(await textsOf('{notes/[c]*,notes/a*}')).toEqual([expected[0], document('notes/c.txt', 'C')]);
  });

  it('outside the working folder are named by their whole path', async () => {
    write('notes/a.md', 'A');
    const path = join(folder, 'notes/a.md');
    expect(await textsOf('../notes/*.md', { cwd: join(folder, 'other') })).toEqual([document(path, 'A')]);
  });

  it('may be a single file', async () => {
    write('a.md', 'one\ntwo\n');
    expect(await textsOf('a.md')).toEqual([document('a.md', 'one\ntwo\n')]);
    expect(await textsOf('a.m?')).toEqual([document('a.md', 'one\ntwo\n')]);
    expect(await textsOf('*.md', { format: 'text' })).toEqual([document('a.md', 'one\ntwo\n')]);
  });

  it('may have any ending if there are several, and any name if the user says they are text', async () => {
    write('src/a.py', 'print(1)');
    write('src/b.json', '{}');
    expect(await textsOf('src/*.py')).toEqual([document('src/a.py', 'print(1)')]);
    expect(await textsOf('src/*', { format: 'text' })).toHaveLength(2);
  });

  it('are bad documents if they are binary, not UTF-8 or too long', async () => {
    write('a.md', 'fine');
    write('b.md', Buffer.from([0x61, 0xe9]));
    write('c.md', Buffer.from([0x61, 0]));
    write('d.md', 'x'.repeat(20));
    const { records, read: bytesRead, total } = await read('*.md', { maxLineBytes: 10 });
    expect(records).toEqual([
      { line: 1, text: document('a.md', 'fine'), place: 'a.md' },
      { line: 2, reason: 'not valid UTF-8 at byte 2 of the file', text: null, place: 'b.md' },
      { line: 3, reason: 'a binary file: it holds a NUL byte', text: null, place: 'c.md' },
      { line: 4, reason: '20 bytes long, over the cap of 10', text: null, place: 'd.md' },
    ]);
    expect(bytesRead).toBe(total);
    expect(total).toBe(28);
  });

  it('are named in what is wrong with their documents', async () => {
    write('a.md', 'fine');
    write('b.md', ' \n');
    const input = await openInput('*.md', { cwd: folder, stdin: Readable.from([]) });
    const settings = {
      model: null,
      promptTemplate: null,
      systemTemplate: null,
      parameters: {},
      idField: null,
    };
    const pages = [];
    for await (const page of readDocuments(input, { settings })) pages.push(page);
    expect(pages).toMatchObject([
      {
        documents: [{ line: 1, key: 'a.md' }],
        bad: [{ line: 2, place: 'b.md', reason: 'the field text, which is the message, is empty' }],
      },
    ]);
  });

  it('never include what this program wrote beside them', async () => {
    write('notes/a.md', 'A');
    write('notes/notes.results.jsonl', '{}');
    write('notes/notes.errors.jsonl', '{}');
    expect(await textsOf('notes/*')).toEqual([document('notes/a.md', 'A')]);
  });

  it('come in pages, however many there are', async () => {
    for (let index = 0; index < 250; index += 1) write(`n/${String(index).padStart(3, '0')}.md`, 'x');
    const input = await openInput('n/*', { cwd: folder, stdin: Readable.from([]) });
    const pages: number[] = [];
    for await (const page of input.records({})) pages.push(page.length);
    expect(pages).toEqual([100, 100, 50]);
  });

  it.each([
    ['a pattern that finds nothing', ['*.md'], 'INPUT_NOT_FOUND', /^No file matches \*\.md\.$/],
    ['a file that is gone', ['a.txt', 'gone.md'], 'INPUT_NOT_FOUND', /gone\.md/],
    ['a single file that is gone', ['gone.md'], 'INPUT_NOT_FOUND', /gone\.md/],
    ['a folder among them', ['a.txt', 'sub'], 'INPUT_IS_FOLDER', /sub is a folder/],
    ['a folder called like a file', ['folder.md'], 'INPUT_IS_FOLDER', /folder\.md is a folder/],
    ['data among them', ['a.txt', 'a.csv'], 'INPUT_SEVERAL', /a\.csv is csv, .*a\.txt is text\.$/],
    ['data of two formats', ['a.{csv,jsonl}'], 'INPUT_SEVERAL', /a\.csv is csv, .*a\.jsonl is jsonl\.$/],
    ['standard input among them', ['a.txt', '-'], 'INPUT_SEVERAL', /Standard input \(-\)/],
  ])('are refused for %s', async (_name, names, code, message) => {
    write('a.txt', 'x');
    write('a.csv', 'text\nx\n');
    write('a.jsonl', '{"text":"x"}\n');
    write('sub/x', 'x');
    mkdirSync(join(folder, 'folder.md'));
    await expect(read(names)).rejects.toMatchObject({
      code,
      exitCode: 2,
      message: expect.stringMatching(message),
      hint: expect.stringMatching(/./),
    });
  });

  it('a pattern that finds one data file means that file', async () => {
    write('reviews-2026.csv', 'id,text\n1,x\n');
    expect(await read('reviews-*.csv')).toMatchObject({
      format: 'csv',
      records: [{ line: 2, text: '{"id":"1","text":"x"}' }],
    });
  });
});

describe('the identity of an input', () => {
  async function identityOf(names: readonly string[], format: InputFormat | null = null): Promise<string> {
    return (await locateInput(names, { cwd: folder, format })).identity;
  }

  it('is its absolute path, or a dash', async () => {
    expect(await identityOf(['in.jsonl'])).toBe(join(folder, 'in.jsonl'));
    expect(await identityOf(['-'])).toBe('-');
    write('a.md', 'x');
    expect(await identityOf(['./a.md'])).toBe(join(folder, 'a.md'));
  });

  it('is one pattern, whether a shell expands it or this program does', async () => {
    write('notes/a.md', 'x');
    write('notes/b.md', 'x');
    const pattern = join(folder, 'notes/*.md');
    expect(await identityOf(['notes/*.md'])).toBe(pattern);
    expect(await identityOf(['notes/a.md', 'notes/b.md'])).toBe(pattern);
    expect(await identityOf(['notes/{a,b}.md'])).toBe(pattern);
  });

  it('stays the same when a file is added', async () => {
    write('notes/a.md', 'x');
    write('notes/b.md', 'x');
    const before = await identityOf(['notes/a.md', 'notes/b.md']);
    write('notes/c.md', 'x');
    expect(await identityOf(['notes/a.md', 'notes/b.md', 'notes/c.md'])).toBe(before);
  });

  it('covers all folders and endings that were named', async () => {
    for (const name of ['n/a.md', 'n/sub/b.md', 'n/c.txt']) write(name, 'x');
    expect(await identityOf(['n/a.md', 'n/sub/b.md'])).toBe(join(folder, 'n/**/*.md'));
    expect(await identityOf(['n/a.md', 'n/c.txt'])).toBe(join(folder, 'n/*'));
  });

  it('is the file itself for a name that looks like a pattern', async () => {
    write('data[1].csv', 'text\nx\n');
    expect(await identityOf(['data[1].csv'])).toBe(join(folder, 'data[1].csv'));
  });

  it('is that of the only file that a pattern finds, if it is data', async () => {
    write('reviews-2026.csv', 'text\nx\n');
    expect(await identityOf(['reviews-*.csv'])).toBe(join(folder, 'reviews-2026.csv'));
  });

  it('follows links no further than their name', async () => {
    write('a.csv', 'text\nx\n');
    symlinkSync(join(folder, 'a.csv'), join(folder, 'b.csv'));
    expect(await identityOf(['b.csv'])).toBe(join(folder, 'b.csv'));
  });
});

describe('several files of rows', () => {
  it.each([
    ['csv', 'id,text\n', (id: number) => `${id},row ${id}\n`],
    ['jsonl', '', (id: number) => `{"id":"${id}","text":"row ${id}"}\n`],
  ])('of %s are one input, in the order of their names', async (ending, head, row) => {
    write(`shards/part-1.${ending}`, `${head}${row(1)}${row(2)}`);
    write(`shards/part-2.${ending}`, gzipSync(`${head}${row(3)}`));
    write(`shards/part-3.${ending}`, `${head}${row(4)}broken,row,here\n${row(5)}`);
    // What an earlier run has written is no input.
    write(`shards/shards.results.${ending}`, head);
    const { records, read: bytes, total } = await read(`shards/*.${ending}`);
    expect(records.map(({ text }) => /row \d/.exec(text ?? '')?.[0] ?? null)).toEqual([
      'row 1',
      'row 2',
      'row 3',
      'row 4',
      null,
      'row 5',
    ]);
    const lines = records.map(({ line }) => line);
    expect(lines).toEqual([...new Set(lines)].sort((one, other) => one - other));
    expect(records[4]?.place).toBe(`shards/part-3.${ending}:${head === '' ? 2 : 3}`);
    expect(bytes).toBe(total);
  });

  it('of other columns than the first are refused by name', async () => {
    write('a.csv', 'id,text\n1,x\n');
    write('b.csv', 'id;text\n2;y\n');
    write('c.csv', 'text,id\nz,3\n');
    expect((await read(['a.csv', 'b.csv'])).records).toHaveLength(2);
    await expect(read(['a.csv', 'b.csv', 'c.csv'])).rejects.toMatchObject({
      code: 'INPUT_SHAPES',
      message: expect.stringMatching(/^c\.csv has other columns than a\.csv/),
    });
  });
});
