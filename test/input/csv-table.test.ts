import { Readable } from 'node:stream';
import { parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { InputFormat } from '../../src/core/input-format.js';
import { openInput } from '../../src/input/input.js';
import type { InputDescription } from '../../src/input/input-description.js';
import type { InputRecord, RecordOptions } from '../../src/input/source.js';

interface Reading {
  readonly description: InputDescription;
  readonly records: InputRecord[];
}

/** Reads a table from standard input, which comes in chunks of the given sizes, over and over. */
async function read(
  content: string | Buffer,
  options: RecordOptions & { readonly format?: InputFormat; readonly sizes?: readonly number[] } = {},
): Promise<Reading> {
  const { format = 'csv', sizes = [1_000_000], ...recordOptions } = options;
  const chunks = Readable.from(chunksOf(Buffer.from(content), sizes));
  const input = await openInput('-', { cwd: '/', stdin: chunks, format });
  try {
    const records: InputRecord[] = [];
    for await (const page of input.records(recordOptions)) records.push(...page);
    return { description: input.description, records };
  } finally {
    await input.close();
  }
}

function chunksOf(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1;
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

/** The number and the parsed document of each row, or what is wrong with it. */
function shown(records: readonly InputRecord[]): unknown[] {
  return records.map((record) => [record.line, 'reason' in record ? record.reason : JSON.parse(record.text)]);
}

async function rowsOf(
  content: string | Buffer,
  options: Parameters<typeof read>[1] = {},
): Promise<unknown[]> {
  return shown((await read(content, options)).records);
}

describe('a table with a header', () => {
  it('makes each row a document, with the columns as fields and strings as values', async () => {
    expect(await rowsOf('id,text,stars\na,fine,5\nb,,\n')).toEqual([
      [2, { id: 'a', text: 'fine', stars: '5' }],
      [3, { id: 'b', text: '', stars: '' }],
    ]);
  });

  it('keeps the order of the columns in the stored text, even of columns named by numbers', async () => {
    const { records } = await read('text,2021,2020\nx,1,2\n');
    expect(records).toEqual([{ line: 2, text: '{"text":"x","2021":"1","2020":"2"}' }]);
  });

  it('describes the table well enough to write it back', async () => {
    expect((await read('\ufeffid;text\n1;x\n')).description).toEqual({
      format: 'csv',
      columns: ['id', 'text'],
      delimiter: ';',
      byteOrderMark: true,
    });
  });

  it('reads quotes, delimiters and line ends in quoted values, and numbers rows by their first line', async () => {
    const table = 'id,text\n1,"a, ""b""\nc"\n2,"x\r\ny"\r\n3,plain\r4,"last"';
    expect(await rowsOf(table)).toEqual([
      [2, { id: '1', text: 'a, "b"\nc' }],
      [4, { id: '2', text: 'x\r\ny' }],
      [6, { id: '3', text: 'plain' }],
      [7, { id: '4', text: 'last' }],
    ]);
  });

  it('takes a quote inside a value that does not begin with one as text', async () => {
    expect(await rowsOf('id,text\n1,5" pipe\n2,say "hi"\n')).toEqual([
      [2, { id: '1', text: '5" pipe' }],
      [3, { id: '2', text: 'say "hi"' }],
    ]);
  });

  it('leaves out blank lines before, between and after the rows, but counts them', async () => {
    expect(await rowsOf('\n\r\nid,text\n\n1,x\n  \n2,y\n\n')).toEqual([
      [5, { id: '1', text: 'x' }],
      [7, { id: '2', text: 'y' }],
    ]);
  });

  it('keeps a row of empty values, since it is not blank', async () => {
    expect(await rowsOf('a\tb\n\t\n', { format: 'tsv' })).toEqual([[2, { a: '', b: '' }]]);
    expect(await rowsOf('a,b\n,\n')).toEqual([[2, { a: '', b: '' }]]);
  });

  it.each([
    ['a comma', 'id,text;more', ['id', 'text;more'], ','],
    ['a semicolon', 'id;text', ['id', 'text'], ';'],
    ['a tab', 'id\ttext', ['id', 'text'], '\t'],
    ['a comma only in quotes', '"id, or key";text', ['id, or key', 'text'], ';'],
    ['none of them', 'text', ['text'], ','],
  ])('finds out that the delimiter is %s', async (_name, header, columns, delimiter) => {
    const values = columns.map((_, index) => String(index)).join(delimiter);
    expect(await read(`${header}\n${values}\n`)).toMatchObject({
      description: { columns, delimiter },
      records: [{ line: 2 }],
    });
  });

  it('separates TSV by tabs, whatever its header looks like', async () => {
    expect(await rowsOf('id\ta,b\n1\t"x\ty"\n', { format: 'tsv' })).toEqual([
      [2, { id: '1', 'a,b': 'x\ty' }],
    ]);
  });

  it('says which rows have too few or too many values, and how many they have', async () => {
    const { records } = await read('id,text\n1\n2,x,y\n3,x\n4,"open\nfor long",x\n');
    expect(records).toEqual([
      { line: 2, reason: '1 value, where the header has 2 columns: id, text', text: '1' },
      { line: 3, reason: '3 values, where the header has 2 columns: id, text', text: '2,x,y' },
      { line: 4, text: '{"id":"3","text":"x"}' },
      {
        line: 5,
        reason: '3 values, where the header has 2 columns: id, text (the row goes on to line 6)',
        text: '4,"open\nfor long",x',
      },
    ]);
  });

  it('goes on after a quoted value that does not end at its quote', async () => {
    expect(await rowsOf('id,text\n1,"say "hi" to me"\n2,x\n"3"4,y\n5,"a" b,c\n')).toEqual([
      [2, 'text goes on behind its closing quote; write a quote inside a quoted value twice'],
      [3, { id: '2', text: 'x' }],
      [4, 'id goes on behind its closing quote; write a quote inside a quoted value twice'],
      [5, 'text goes on behind its closing quote; write a quote inside a quoted value twice'],
    ]);
  });

  it('takes blanks between a closing quote and what follows for nothing', async () => {
    expect(await rowsOf('"id" ,"text"  \n"1" ,"x" \n"2","y"\t\n')).toEqual([
      [2, { id: '1', text: 'x' }],
      [3, { id: '2', text: 'y' }],
    ]);
  });

  it('calls columns without a name by their place', async () => {
    expect(await rowsOf(',text,,column_3\n0,x,y,z\n')).toEqual([
      [2, { column_1: '0', text: 'x', column_3_: 'y', column_3: 'z' }],
    ]);
  });

  it('applies the cap to whole rows and keeps nothing of a longer one, however its bytes arrive', async () => {
    const table = `id,text\n1,"${'x\n'.repeat(50)}"\n2,ok\n3,${'y'.repeat(100)}`;
    for (const sizes of [[1_000], [7], [1]]) {
      expect((await read(table, { maxLineBytes: 20, sizes })).records).toEqual([
        { line: 2, reason: '104 bytes long, over the cap of 20', text: null },
        { line: 53, text: '{"id":"2","text":"ok"}' },
        { line: 54, reason: '102 bytes long, over the cap of 20', text: null },
      ]);
    }
  });

  it('reports rows that are not UTF-8 and goes on', async () => {
    const table = Buffer.concat([
      Buffer.from('id,text\n1,caf'),
      Buffer.from([0xe9]),
      Buffer.from('\n2,café\n'),
    ]);
    expect(await rowsOf(table)).toEqual([
      [2, 'not valid UTF-8 at byte 6 of the row'],
      [3, { id: '2', text: 'café' }],
    ]);
  });

  it('keeps NUL, characters that JSON escapes, and names that every JavaScript object has', async () => {
    expect((await read('__proto__,"a""b"\n\u0000\u2028,\\ud83d\n')).records).toEqual([
      { line: 2, text: '{"__proto__":"\\u0000\u2028","a\\"b":"\\\\ud83d"}' },
    ]);
  });

  it.each([
    ['a repeated name', 'id,text,id,x,text\n', 'INPUT_HEADER', /more than one column id, text\.$/],
    [
      'a header that is not UTF-8',
      Buffer.from([0x66, 0xe9, 0x0a]),
      'INPUT_NOT_UTF8',
      /header of standard input/,
    ],
    ['a name that goes on after its closing quote', '"a"b,c\n', 'INPUT_HEADER', /^Column 1 of the header/],
    ['blank lines alone', '\n\n  \n', 'INPUT_EMPTY', /only blank lines/],
    ['a header and no rows', 'id,text\n\n', 'INPUT_EMPTY', /a header and no rows/],
    [
      'a quote that is never closed',
      'id,text\n1,x\n2,"y\n3,z\n',
      'INPUT_QUOTE_OPEN',
      /opens on line 3 of standard input/,
    ],
    [
      'a header that never ends',
      `id,${'x'.repeat(2_000_000)}`,
      'INPUT_HEADER',
      /first row is over 1048576 bytes long/,
    ],
  ])('refuses %s with exit code 2 and the way out', async (_name, table, code, message) => {
    await expect(read(table)).rejects.toMatchObject({
      code,
      exitCode: 2,
      message: expect.stringMatching(message),
      hint: expect.stringMatching(/./),
    });
  });

  it('names the line on which a quote opens inside a row of many lines', async () => {
    await expect(read('id,text,more\n1,"a\nb","c\nd')).rejects.toMatchObject({
      message: expect.stringMatching(/^A quote that opens on line 3 /),
    });
  });
});

/** Without characters that a table cannot keep apart: a lone CR is a line end in any unquoted place. */
const value = fc.string({
  unit: fc.constantFrom('a', 'é', '😀', '"', ',', ';', '\t', '\n', '\r', '\r\n', ' '),
});
const table = fc
  .integer({ min: 2, max: 4 })
  .chain((width) =>
    fc.array(fc.array(value, { minLength: width, maxLength: width }), { minLength: 1, maxLength: 8 }),
  );
const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 4 });

describe('any table', () => {
  it('comes back as it was written, whatever the chunks and line ends', async () => {
    await fc.assert(
      fc.asyncProperty(
        table,
        sizes,
        fc.constantFrom(',', ';', '\t'),
        fc.constantFrom('\n', '\r\n'),
        fc.boolean(),
        async (rows, chunkSizes, delimiter, lineEnd, quoted) => {
          const columns = (rows[0] ?? []).map((_, index) => `c${index}`);
          const text = stringify([columns, ...rows], {
            delimiter,
            record_delimiter: lineEnd,
            quoted,
            // The library leaves a lone carriage return and the quotes of an empty value to chance.
            quoted_match: /[\r\n"]/,
          });
          const format = delimiter === '\t' ? 'tsv' : 'csv';
          const { records } = await read(text, { sizes: chunkSizes, format });
          const found = records.map((record) => Object.values(JSON.parse(record.text ?? '{}')));
          expect(found).toEqual(rows);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('is read as another parser reads it, where both can', async () => {
    const raw = fc.string({ unit: fc.constantFrom('a', '"', '""', ',', '\n', '\r\n'), maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(raw, sizes, async (content, chunkSizes) => {
        const text = `x,y\n${content}`;
        const expected = parsedByLibrary(text);
        fc.pre(expected !== null && expected.length > 1);
        const { records } = await read(text, { sizes: chunkSizes });
        expect(
          records.map((record) => ('reason' in record ? null : Object.values(JSON.parse(record.text)))),
        ).toEqual((expected ?? []).slice(1).map((row) => (row.length === 2 ? row : null)));
      }),
      { numRuns: 300 },
    );
  });

  it('gives the same rows however its bytes are cut into chunks', async () => {
    const bytes = fc.uint8Array({ maxLength: 60 }).map((tail) => Buffer.concat([Buffer.from('a,b\n'), tail]));
    const noise = fc
      .array(fc.constantFrom('"', ',', '\n', '\r', 'é', 'x', ' '), { maxLength: 40 })
      .map((parts) => Buffer.from(`a,b\n${parts.join('')}`));
    await fc.assert(
      fc.asyncProperty(fc.oneof(bytes, noise), sizes, async (content, chunkSizes) => {
        const outcome = (chunks: readonly number[]) =>
          read(content, { sizes: chunks, maxLineBytes: 12 }).then(
            ({ records }) => records,
            (error: Error) => error.message,
          );
        expect(await outcome(chunkSizes)).toEqual(await outcome([1_000]));
      }),
      { numRuns: 300 },
    );
  });
});

/** Null for what the library refuses as a whole. */
function parsedByLibrary(text: string): string[][] | null {
  try {
    return parse(text, {
      relax_column_count: true,
      skip_empty_lines: true,
      record_delimiter: ['\n', '\r\n'],
    }) as string[][];
  } catch {
    return null;
  }
}
