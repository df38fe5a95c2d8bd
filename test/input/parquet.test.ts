import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import * as zlib from 'node:zlib';
import { type ColumnSource, parquetWriteBuffer } from 'hyparquet-writer';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openInput } from '../../src/input/input.js';
import { openParquet } from '../../src/input/parquet.js';
import type { InputRecord, RecordOptions, RecordSource } from '../../src/input/source.js';

type WriteOptions = Omit<Parameters<typeof parquetWriteBuffer>[0], 'columnData'>;
type Schema = NonNullable<WriteOptions['schema']>;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'llm-batch-parquet-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function write(columnData: readonly ColumnSource[], options: WriteOptions = {}): string {
  const bytes = parquetWriteBuffer({ columnData: [...columnData], ...options });
  writeFileSync(join(folder, 'in.parquet'), Buffer.from(bytes));
  return 'in.parquet';
}

/** As the reader process does it, which takes half a second to start: apart.test.ts has that. */
async function read(name: string, options: RecordOptions = {}): Promise<InputRecord[]> {
  return recordsOf(await openParquet(name, folder), options);
}

function openApart(name: string): Promise<RecordSource> {
  return openInput(name, { cwd: folder, stdin: Readable.from([]), format: 'parquet' });
}

async function recordsOf(input: RecordSource, options: RecordOptions = {}): Promise<InputRecord[]> {
  try {
    const records: InputRecord[] = [];
    for await (const page of input.records(options)) records.push(...page);
    expect(input.bytesRead()).toBe(input.totalBytes);
    return records;
  } finally {
    await input.close();
    await input.close();
  }
}

/** The JSON text of one column's values. */
async function valuesOf(column: ColumnSource, schema?: Schema): Promise<(string | null)[]> {
  const records = await read(write([column], schema === undefined ? {} : { schema }));
  return records.map(({ text }) => text?.slice(`{"${column.name}":`.length, -1) ?? null);
}

const ROOT = { name: 'root', num_children: 1 };

it('a pipe by the name of a Parquet file is refused before anybody writes to it', async () => {
  execFileSync('mkfifo', [join(folder, 'pipe.parquet')]);
  await expect(openParquet('pipe.parquet', folder)).rejects.toMatchObject({ code: 'INPUT_UNREADABLE' });
});

describe('a Parquet file', () => {
  it('makes each row a document, numbered from 1, with the columns in their order', async () => {
    const name = write([
      { name: 'text', data: ['fine', 'é "q"\n', null], type: 'STRING' },
      { name: '1', data: [1, 2, 3], type: 'INT32' },
      { name: '__proto__', data: [true, false, null], type: 'BOOLEAN' },
    ]);
    expect(await recordsOf(await openApart(name))).toEqual([
      { line: 1, text: '{"text":"fine","1":1,"__proto__":true}' },
      { line: 2, text: '{"text":"é \\"q\\"\\n","1":2,"__proto__":false}' },
      { line: 3, text: '{"text":null,"1":3,"__proto__":null}' },
    ]);
  });

  it('keeps all digits of whole numbers, signed or not', async () => {
    const data = [9007199254740993n, -9223372036854775808n];
    expect(await valuesOf({ name: 'n', data, type: 'INT64' })).toEqual(data.map(String));
    const unsigned: Schema = [
      ROOT,
      { name: 'n', type: 'INT64', converted_type: 'UINT_64', repetition_type: 'OPTIONAL' },
    ];
    expect(await valuesOf({ name: 'n', data: [18446744073709551615n, null] }, unsigned)).toEqual([
      '18446744073709551615',
      'null',
    ]);
  });

  it('writes fractions as briefly as possible, and null for what JSON has no number for', async () => {
    const data = [0.1, 1e300, Number.NaN, Number.POSITIVE_INFINITY];
    expect(await valuesOf({ name: 'd', data, type: 'DOUBLE' })).toEqual(['0.1', '1e+300', 'null', 'null']);
    const single = [0.1, 16777217, 3.4028234663852886e38].map(Math.fround);
    expect(await valuesOf({ name: 'f', data: single, type: 'FLOAT' })).toEqual([
      '0.1',
      '16777216',
      '3.4028235e+38',
    ]);
  });

  it('keeps decimals exact: as numbers where a double holds them, else as strings', async () => {
    const decimal = (precision: number): Schema => [
      ROOT,
      {
        name: 'p',
        type: 'FIXED_LEN_BYTE_ARRAY',
        type_length: 16,
        converted_type: 'DECIMAL',
        precision,
        scale: 2,
        repetition_type: 'OPTIONAL',
      },
    ];
    expect(await valuesOf({ name: 'p', data: [1250n, -5n, null] }, decimal(9))).toEqual([
      '12.50',
      '-0.05',
      'null',
    ]);
    expect(await valuesOf({ name: 'p', data: [123456789012345678901n] }, decimal(30))).toEqual([
      '"1234567890123456789.01"',
    ]);
  });

  it.each([
    ['a date', { type: 'INT32', converted_type: 'DATE' }, [-1, 19_000], ['"1969-12-31"', '"2022-01-08"']],
    [
      'a time of milliseconds',
      { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' },
      [-1n, 0n],
      ['"1969-12-31T23:59:59.999Z"', '"1970-01-01T00:00:00Z"'],
    ],
    [
      'a time of nanoseconds',
      { type: 'INT64', logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'NANOS' } },
      [1_700_000_000_123_456_789n],
      ['"2023-11-14T22:13:20.123456789Z"'],
    ],
    [
      'a time without a zone',
      { type: 'INT64', logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: false, unit: 'MICROS' } },
      [1_500_000n],
      ['"1970-01-01T00:00:01.500"'],
    ],
    ['a time of day', { type: 'INT32', converted_type: 'TIME_MILLIS' }, [3_723_004], ['"01:02:03.004"']],
  ] as const)('writes %s as ISO 8601', async (_name, element, data, expected) => {
    const schema = [ROOT, { name: 't', repetition_type: 'OPTIONAL', ...element }] as Schema;
    expect(await valuesOf({ name: 't', data: [...data] }, schema)).toEqual(expected);
  });

  it('writes JSON columns as the JSON they hold', async () => {
    const data = [{ a: [1, 'x'] }, null];
    expect(await valuesOf({ name: 'j', data, type: 'JSON' })).toEqual(['{"a":[1,"x"]}', 'null']);
  });

  it('writes lists, structs and maps as JSON', async () => {
    const list: Schema = [
      ROOT,
      { name: 'l', repetition_type: 'OPTIONAL', converted_type: 'LIST', num_children: 1 },
      { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
      { name: 'element', type: 'INT64', repetition_type: 'OPTIONAL' },
    ];
    expect(await valuesOf({ name: 'l', data: [[1n, null], [], null] }, list)).toEqual([
      '[1,null]',
      '[]',
      'null',
    ]);
    const struct: Schema = [
      ROOT,
      { name: 's', repetition_type: 'OPTIONAL', num_children: 2 },
      { name: 'b', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' },
      { name: 'a', type: 'INT32', converted_type: 'DATE', repetition_type: 'OPTIONAL' },
    ];
    expect(
      await valuesOf({ name: 's', data: [{ b: 'x', a: 0 }, { b: null, a: null }, null] }, struct),
    ).toEqual(['{"b":"x","a":"1970-01-01"}', '{"b":null,"a":null}', 'null']);
    const map: Schema = [
      ROOT,
      { name: 'm', repetition_type: 'OPTIONAL', converted_type: 'MAP', num_children: 1 },
      { name: 'key_value', repetition_type: 'REPEATED', num_children: 2 },
      { name: 'key', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
      { name: 'value', type: 'INT64', repetition_type: 'OPTIONAL' },
    ];
    expect(await valuesOf({ name: 'm', data: [{ k: 1n }, {}, null] }, map)).toEqual([
      '{"k":1}',
      '{}',
      'null',
    ]);
  });

  it('reads row groups and pages in order', async () => {
    const data = Array.from({ length: 5_500 }, (_, index) => `text ${index}`);
    const records = await read(
      write([{ name: 'text', data, type: 'STRING' }], { rowGroupSize: 1_700, pageSize: 2_000 }),
    );
    expect(records).toEqual(data.map((text, index) => ({ line: index + 1, text: `{"text":"${text}"}` })));
  });

  it('reads a row group larger than what is held at once', async () => {
    const tail = 'x'.repeat(12_000);
    const data = Array.from({ length: 2_500 }, (_, index) => `${index} ${tail}`);
    const lists = data.map((_, index) => (index % 2 === 0 ? [`t${index}`] : []));
    const schema: Schema = [
      { name: 'root', num_children: 2 },
      { name: 'text', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' },
      { name: 'tags', repetition_type: 'OPTIONAL', converted_type: 'LIST', num_children: 1 },
      { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
      { name: 'element', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' },
    ];
    const columns = [
      { name: 'text', data, offsetIndex: false },
      { name: 'tags', data: lists },
    ];
    const records = await read(write(columns, { schema, rowGroupSize: 2_500 }));
    expect(records.map(({ text }) => text)).toEqual(
      data.map((text, index) => JSON.stringify({ text, tags: lists[index] })),
    );
  });

  it.each([
    ['GZIP', zlib.gzipSync],
    ['BROTLI', zlib.brotliCompressSync],
  ] as const)('unpacks %s', async (codec, compress) => {
    const compressors = { [codec]: (bytes: Uint8Array) => new Uint8Array(compress(bytes)) };
    const data = Array.from({ length: 50 }, (_, index) => `the same words again and again ${index % 3}`);
    const records = await read(write([{ name: 'text', data, type: 'STRING' }], { codec, compressors }));
    expect(records.at(-1)).toEqual({ line: 50, text: '{"text":"the same words again and again 1"}' });
  });

  it.each(['LZ4_RAW', 'LZO'] as const)('refuses %s, naming what can be read', async (codec) => {
    const compressors = { [codec]: (bytes: Uint8Array) => bytes };
    const name = write([{ name: 'text', data: ['x'], type: 'STRING' }], { codec, compressors });
    await expect(read(name)).rejects.toMatchObject({
      code: 'INPUT_CODEC',
      exitCode: 2,
      message: `The input in.parquet is compressed with ${codec}, which cannot be unpacked here.`,
      hint: expect.stringMatching(/UNCOMPRESSED, SNAPPY, GZIP, BROTLI/),
    });
  });

  it('takes bytes of no declared type as text if they are text', async () => {
    const bytes = new TextEncoder().encode('tëxt');
    expect(await valuesOf({ name: 'b', data: [bytes], type: 'BYTE_ARRAY' })).toEqual(['"tëxt"']);
  });

  it.each([
    ['bytes', { name: 'image', data: [new Uint8Array([0xff, 0xd8])], type: 'BYTE_ARRAY' }, undefined],
    [
      'bytes of one length',
      { name: 'image', data: [new Uint8Array(4)] },
      [ROOT, { name: 'image', type: 'FIXED_LEN_BYTE_ARRAY', type_length: 4, repetition_type: 'REQUIRED' }],
    ],
    [
      'bytes inside a struct',
      { name: 'image', data: [{ raw: new Uint8Array([1, 2]) }] },
      [
        ROOT,
        { name: 'image', repetition_type: 'REQUIRED', num_children: 1 },
        { name: 'raw', type: 'BYTE_ARRAY', converted_type: 'BSON', repetition_type: 'REQUIRED' },
      ],
    ],
    ['variants', { name: 'image', data: [{ a: 1 }], type: 'VARIANT' }, undefined],
  ] as const)('refuses %s, naming the column', async (_name, column, schema) => {
    const name = write(
      [column as unknown as ColumnSource],
      schema === undefined ? {} : { schema: schema as unknown as Schema },
    );
    await expect(read(name)).rejects.toMatchObject({
      code: 'INPUT_BINARY_COLUMN',
      message: expect.stringMatching(/in column image\.$/),
      hint: expect.stringMatching(/EXCLUDE \(image\)/),
    });
  });

  it('reports values that no document can hold, and goes on', async () => {
    const broken = [new Uint8Array([0xe9]), new TextEncoder().encode('fine')];
    const schema: Schema = [
      ROOT,
      { name: 'text', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
    ];
    expect(await read(write([{ name: 'text', data: broken }], { schema }))).toEqual([
      { line: 1, reason: 'text is not valid UTF-8', field: 'text', text: null },
      { line: 2, text: '{"text":"fine"}' },
    ]);
    const json: Schema = [
      ROOT,
      { name: 'j', type: 'BYTE_ARRAY', logical_type: { type: 'JSON' }, repetition_type: 'REQUIRED' },
    ];
    const smuggled = [new TextEncoder().encode('1,"id":2')];
    expect(await read(write([{ name: 'j', data: smuggled }], { schema: json }))).toEqual([
      { line: 1, reason: 'j is a JSON column and holds no JSON', field: 'j', text: null },
    ]);
  });

  it('applies the cap to rows', async () => {
    const name = write([{ name: 'text', data: ['é'.repeat(20), 'x'], type: 'STRING' }]);
    expect(await read(name, { maxLineBytes: 50 })).toEqual([
      { line: 1, reason: '51 bytes long, over the cap of 50', text: null },
      { line: 2, text: '{"text":"x"}' },
    ]);
  });

  it.each([
    ['text', () => Buffer.from('{"id":1}\n{"id":2}\n'), 'INPUT_DAMAGED_PARQUET'],
    ['an empty file', () => Buffer.alloc(0), 'INPUT_EMPTY'],
    ['half a file', (whole: Buffer) => whole.subarray(0, whole.length / 2), 'INPUT_DAMAGED_PARQUET'],
    [
      'a file with a hole',
      (whole: Buffer) => Buffer.concat([whole.subarray(0, 10), whole.subarray(200)]),
      'INPUT_DAMAGED_PARQUET',
    ],
    ['a file without rows', () => Buffer.from(emptyTable()), 'INPUT_EMPTY'],
  ])('refuses %s with exit code 2', async (_name, spoil, code) => {
    write([{ name: 'text', data: Array.from({ length: 99 }, (_, index) => `row ${index}`), type: 'STRING' }]);
    const whole = Buffer.from(
      parquetWriteBuffer({
        columnData: [
          { name: 'text', data: Array.from({ length: 99 }, (_, index) => `row ${index}`), type: 'STRING' },
        ],
      }),
    );
    writeFileSync(join(folder, 'in.parquet'), spoil(whole));
    await expect(read('in.parquet')).rejects.toMatchObject({
      code,
      exitCode: 2,
      hint: expect.stringMatching(/./),
    });
  });

  it('refuses what cannot be read from its end', async () => {
    await expect(read('.')).rejects.toMatchObject({ code: 'INPUT_IS_FOLDER' });
    await expect(read('gone.parquet')).rejects.toMatchObject({ code: 'INPUT_NOT_FOUND' });
    await expect(read('/dev/null')).rejects.toMatchObject({ code: 'INPUT_UNREADABLE' });
    await expect(openApart('-')).rejects.toMatchObject({ code: 'INPUT_IS_PARQUET' });
  });

  it.runIf(process.platform === 'linux')('leaves no file open', async () => {
    const openFiles = (): number => readdirSync('/proc/self/fd').length;
    const name = write([{ name: 'text', data: ['x'], type: 'STRING' }]);
    const before = openFiles();
    for (let index = 0; index < 20; index += 1) await read(name);
    writeFileSync(join(folder, 'bad.parquet'), 'no Parquet at all');
    for (let index = 0; index < 20; index += 1) await read('bad.parquet').catch(() => undefined);
    for (let index = 0; index < 3; index += 1) await recordsOf(await openApart(name));
    expect(openFiles()).toBeLessThan(before + 3);
  });
});

function emptyTable(): ArrayBuffer {
  return parquetWriteBuffer({ columnData: [{ name: 'text', data: [], type: 'STRING' }] });
}
