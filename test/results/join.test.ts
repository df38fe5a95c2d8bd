import { readFileSync, writeFileSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { Readable } from 'node:stream';
import { parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import fc from 'fast-check';
import { parquetReadObjects } from 'hyparquet';
import { type ColumnSource, parquetWriteBuffer } from 'hyparquet-writer';
import { describe, expect, it } from 'vitest';
import type { TaskRow } from '../../src/core/result-row.js';
import { openInput } from '../../src/input/input.js';
import type { InputDescription } from '../../src/input/input-description.js';
import type { ResultDestination } from '../../src/results/export.js';
import { type JoinOptions, writeJoined } from '../../src/results/join.js';
import { completedRow, failedRow, temporaryFolder } from './rows.js';

/** A task that has no answer yet. */
function openRow(line: number, body: string, state: TaskRow['state'] = 'ready'): TaskRow {
  return {
    ...completedRow(line),
    state,
    attempts: 0,
    settledAtMs: null,
    result: null,
    usage: null,
    costMicroUsd: null,
    latencyMs: null,
    requestId: null,
    body,
  };
}

function pathIn(name: string): string {
  return joinPath(temporaryFolder(), name);
}

function toFile(path: string): ResultDestination {
  return { kind: 'file', path, mayReplace: false };
}

/** Over rows in the order of their task ids, as a store has them. */
function optionsFor(
  rows: readonly TaskRow[],
  input: InputDescription,
  destination: ResultDestination,
  change: Partial<JoinOptions> = {},
): JoinOptions {
  const byId = rows.toSorted((one, other) => one.taskId - other.taskId);
  return {
    input,
    destination,
    spreadOutput: false,
    listTasks: async (afterTaskId) => byId.filter(({ taskId }) => taskId > afterTaskId).slice(0, 2),
    readTasks: async (taskIds) => taskIds.flatMap((id) => byId.filter(({ taskId }) => taskId === id)),
    ...change,
  };
}

async function joined(
  rows: readonly TaskRow[],
  input: InputDescription,
  change: Partial<JoinOptions> = {},
): Promise<string> {
  const path = pathIn('joined');
  await writeJoined(optionsFor(rows, input, toFile(path), change));
  return readFileSync(path, 'utf8');
}

const table: InputDescription = {
  format: 'csv',
  columns: ['id', 'text'],
  delimiter: ',',
  byteOrderMark: false,
};
const ADDED = 'output,status,error,error_message,finish_reason,model,input_tokens,output_tokens,cost_usd';

describe('a joined table of text', () => {
  it('has the columns of the input and those of the answer, one row a document', async () => {
    const rows = [
      { ...completedRow(2), body: '{"id":"a","text":"one, \\"two\\""}' },
      { ...failedRow(3), body: '{"id":"b","text":"x\\r\\ny"}' },
      openRow(4, '{"id":"c","text":""}'),
    ];
    expect(await joined(rows, table)).toBe(
      `id,text,${ADDED}\n` +
        'a,"one, ""two""",positive,completed,,,stop,gpt-4o-mini-2024-07-18,31,2,0.000006\n' +
        'b,"x\r\ny",,failed,invalid_request,Invalid value,,,31,2,0.000006\n' +
        'c,,,pending,,,,,,,\n',
    );
  });

  it.each([
    ['ready', 'pending'],
    ['delayed', 'pending'],
    ['in_progress', 'pending'],
    ['cancelled', 'cancelled'],
  ] as const)('says of a document that is %s: %s', async (state, status) => {
    expect(await joined([openRow(2, '{"id":"a","text":"x"}', state)], table)).toContain(`a,x,,${status},`);
  });

  it('keeps the delimiter and the byte order mark of the input', async () => {
    const input: InputDescription = { ...table, format: 'tsv', delimiter: '\t', byteOrderMark: true };
    const text = await joined([openRow(2, '{"id":"a","text":"x\\ty,z"}')], input);
    expect(text.split('\n')[0]).toBe(`\ufeffid\ttext\t${ADDED.replaceAll(',', '\t')}`);
    expect(text.split('\n')[1]).toBe('a\t"x\ty,z"\t\tpending\t\t\t\t\t\t\t');
  });

  it('gives an added column another name where the input has its own', async () => {
    const input: InputDescription = { ...table, columns: ['output', 'status', 'output_2', 'error'] };
    const text = await joined([openRow(2, '{"output":"1","status":"2","output_2":"3","error":"4"}')], input);
    expect(text.split('\n')[0]).toMatch(
      /^output,status,output_2,error,output_3,status_2,error_2,error_message,/,
    );
    expect(text.split('\n')[1]).toBe('1,2,3,4,,pending,,,,,,,');
  });

  it('keeps columns that are called like numbers or like what JavaScript objects inherit', async () => {
    const input: InputDescription = { ...table, columns: ['b', '1', '__proto__', 'toString'] };
    const text = await joined([openRow(2, '{"b":"x","1":"y","__proto__":"z"}')], input);
    expect(text.split('\n').slice(0, 2)).toEqual([
      `b,1,__proto__,toString,${ADDED}`,
      'x,y,z,,,pending,,,,,,,',
    ]);
  });

  it('spreads outputs that are objects over columns, those of all outputs', async () => {
    const rows = [
      {
        ...completedRow(2, { outputJson: '{"mood":"good","id":12345678901234567890}' }),
        body: '{"id":"a","text":"x"}',
      },
      { ...completedRow(3, { outputJson: '{"mood":null,"tags":["a"]}' }), body: '{"id":"b","text":"y"}' },
      { ...completedRow(4), body: '{"id":"c","text":"z"}' },
      openRow(5, '{"id":"d","text":"w"}'),
    ];
    const [header, ...lines] = parse(await joined(rows, table, { spreadOutput: true })) as string[][];
    expect(header).toEqual(['id', 'text', ...ADDED.split(','), 'mood', 'id_2', 'tags']);
    expect(lines.map((cells) => [cells[0], cells[2], ...cells.slice(-3)])).toEqual([
      ['a', '', 'good', '12345678901234567890', ''],
      ['b', '', '', '', '["a"]'],
      ['c', 'positive', '', '', ''],
      ['d', '', '', '', ''],
    ]);
  });

  it('refuses to spread outputs without end', async () => {
    const output = Object.fromEntries(Array.from({ length: 1_001 }, (_, index) => [`f${index}`, index]));
    const rows = [
      { ...completedRow(2, { outputJson: JSON.stringify(output) }), body: '{"id":"a","text":"x"}' },
    ];
    await expect(joined(rows, table, { spreadOutput: true })).rejects.toMatchObject({
      code: 'OUTPUT_FIELDS',
      exitCode: 2,
    });
  });

  it('keeps every column, order and value of any table', async () => {
    const cell = fc.string({ unit: fc.constantFrom('a', 'é', '"', ',', ';', '\n', '\r', '\t', ' ', '=') });
    const tables = fc.array(fc.array(cell, { minLength: 3, maxLength: 3 }), { minLength: 1, maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(tables, fc.constantFrom(',', ';', '\t'), async (values, delimiter) => {
        const columns = ['z', '10', 'output'];
        const path = pathIn('in.csv');
        const text = stringify([columns, ...values], { delimiter, quoted: true });
        writeFileSync(path, text);
        const format = delimiter === '\t' ? 'tsv' : 'csv';
        const input = await openInput(path, { cwd: '/', stdin: Readable.from([]), format });
        const rows: TaskRow[] = [];
        for await (const page of input.records({})) {
          for (const { line, text: body } of page) rows.push({ ...completedRow(line), body });
        }
        await input.close();
        const result = parse(await joined(rows, input.description), { delimiter }) as string[][];
        expect(result.map((row) => row.slice(0, 3))).toEqual([columns, ...values]);
      }),
      { numRuns: 100 },
    );
  });
});

describe('joined JSON Lines', () => {
  it('keep each object as it was and add fields at its end', async () => {
    const rows = [
      { ...completedRow(1), body: '{ "id": 9007199254740993, "z": {"a": 1.0} } ' },
      { ...failedRow(2), body: '{}' },
      openRow(3, '{"text":"a\\u2028\u2028b"}'),
    ];
    expect((await joined(rows, { format: 'jsonl' })).split('\n')).toEqual([
      '{ "id": 9007199254740993, "z": {"a": 1.0},"output":"positive","status":"completed","error":null,"error_message":null,"finish_reason":"stop","model":"gpt-4o-mini-2024-07-18","input_tokens":31,"output_tokens":2,"cost_usd":0.000006}',
      '{"output":null,"status":"failed","error":"invalid_request","error_message":"Invalid value","finish_reason":null,"model":null,"input_tokens":31,"output_tokens":2,"cost_usd":0.000006}',
      '{"text":"a\\u2028\\u2028b","output":null,"status":"pending","error":null,"error_message":null,"finish_reason":null,"model":null,"input_tokens":null,"output_tokens":null,"cost_usd":null}',
      '',
    ]);
  });

  it('keep outputs that are objects', async () => {
    const rows = [{ ...completedRow(1, { outputJson: '{"mood":[1]}' }), body: '{"id":1}' }];
    expect(JSON.parse(await joined(rows, { format: 'jsonl' }))).toMatchObject({ output: { mood: [1] } });
  });

  it('give a field one name in all lines, one that no document has at its top', async () => {
    const rows = [
      { ...completedRow(1), body: '{"text":"the \\"status\\": fine"}' },
      { ...completedRow(2), body: '{"nested":{"error":1}}' },
      { ...completedRow(3), body: '{"output":"mine","output_2":"too"}' },
      { ...completedRow(4), body: '{"\\u006dodel":"T"}' },
    ];
    const lines = (await joined(rows, { format: 'jsonl' })).trim().split('\n');
    for (const line of lines) {
      expect(Object.keys(JSON.parse(line))).toEqual(
        expect.arrayContaining(['output_3', 'status', 'error', 'model_2']),
      );
    }
    expect(JSON.parse(lines[2] ?? '')).toMatchObject({
      output: 'mine',
      output_2: 'too',
      output_3: 'positive',
    });
    expect(JSON.parse(lines[3] ?? '')).toMatchObject({ model: 'T', model_2: 'gpt-4o-mini-2024-07-18' });
  });

  it('are what text inputs become', async () => {
    const rows = [{ ...completedRow(1), body: '{"id":"a.md","path":"a.md","name":"a.md","text":"x"}' }];
    expect(JSON.parse(await joined(rows, { format: 'text', files: true }))).toMatchObject({
      id: 'a.md',
      text: 'x',
      output: 'positive',
    });
  });
});

async function readParquet(path: string): Promise<Record<string, unknown>[]> {
  const file = readFileSync(path);
  return parquetReadObjects({
    file: file.buffer.slice(file.byteOffset, file.byteOffset + file.length) as ArrayBuffer,
  });
}

describe('a joined Parquet file', () => {
  it('has the columns of the input in their types, and those of the answer', async () => {
    const columns: ColumnSource[] = [
      { name: 'id', data: [9007199254740993n, -1n], type: 'INT64' },
      { name: 'text', data: ['é', null], type: 'STRING' },
      { name: 'score', data: [0.1, null], type: 'DOUBLE' },
      { name: 'small', data: [0.1, 2].map(Math.fround), type: 'FLOAT' },
      { name: 'n', data: [1, null], type: 'INT32' },
      { name: 'ok', data: [true, null], type: 'BOOLEAN' },
      { name: 'at', data: [new Date(1_700_000_000_123), null], type: 'TIMESTAMP' },
      { name: 'uuid', data: ['01234567-89ab-cdef-0123-456789abcdef', null], type: 'UUID' },
      { name: 'json', data: [{ a: [1, 'x'] }, null], type: 'JSON' },
      { name: 'output', data: ['mine', 'mine too'], type: 'STRING' },
    ];
    const inPath = pathIn('in.parquet');
    writeFileSync(inPath, Buffer.from(parquetWriteBuffer({ columnData: columns })));
    const input = await openInput(inPath, { cwd: '/', stdin: Readable.from([]) });
    const bodies: string[] = [];
    for await (const page of input.records({})) for (const { text } of page) bodies.push(text ?? '');
    await input.close();

    // As it comes back from a store.
    const description = JSON.parse(JSON.stringify(input.description)) as InputDescription;
    const rows = [{ ...completedRow(1), body: bodies[0] ?? '' }, openRow(2, bodies[1] ?? '')];
    const outPath = pathIn('out.parquet');
    await writeJoined(optionsFor(rows, description, toFile(outPath)));
    const before = await readParquet(inPath);
    const found = await readParquet(outPath);
    // Noted as JSON in the newer way only, which this reader gives as text.
    expect(found.map(({ json }) => (json === null ? null : JSON.parse(String(json))))).toEqual(
      before.map(({ json }) => json),
    );
    expect(found).toMatchObject(before.map(({ json: _json, ...others }) => others));
    expect(
      found.map(({ output_2, status, input_tokens, cost_usd }) => [output_2, status, input_tokens, cost_usd]),
    ).toEqual([
      ['positive', 'completed', 31n, 0.000006],
      [null, 'pending', null, null],
    ]);
  });

  it('is told which column a kept document does not fit', async () => {
    const input: InputDescription = {
      format: 'parquet',
      schema: [
        { name: 'root', num_children: 1 },
        { name: 'n', type: 'INT32', repetition_type: 'OPTIONAL' },
      ],
    };
    const rows = [openRow(7, '{"n":"not a number"}')];
    await expect(writeJoined(optionsFor(rows, input, toFile(pathIn('x'))))).rejects.toMatchObject({
      code: 'JOIN_COLUMN',
      exitCode: 2,
      message: 'The column n of row 7 does not take "not a number".',
    });
  });
});

describe('the rows of a join', () => {
  it('come in input order though they were added in another', async () => {
    const rows = [
      { ...openRow(30, '{"id":"c","text":""}'), taskId: 1 },
      { ...openRow(10, '{"id":"a","text":""}'), taskId: 2 },
      { ...openRow(20, '{"id":"b","text":""}'), taskId: 3 },
      { ...openRow(20, '{"id":"b2","text":""}'), taskId: 4 },
    ];
    expect((await joined(rows, table)).match(/^[a-d]\d?(?=,)/gm)).toEqual(['a', 'b', 'b2', 'c']);
  });

  it('are counted, and told as they are written', async () => {
    const rows = Array.from({ length: 2_500 }, (_, index) =>
      index % 2 === 0
        ? { ...completedRow(index + 1), body: '{"id":"a","text":""}' }
        : openRow(index + 1, '{"id":"b","text":""}'),
    );
    const progress: number[] = [];
    const ids = rows.map(({ taskId, line }) => ({ taskId, line }));
    const written = await writeJoined(
      optionsFor(rows, table, toFile(pathIn('out.csv')), {
        onProgress: (count) => progress.push(count),
        listTasks: async (afterTaskId) => ids.filter(({ taskId }) => taskId > afterTaskId),
        readTasks: async (taskIds) => rows.filter(({ taskId }) => taskIds.includes(taskId)),
      }),
    );
    expect(written).toEqual({ rows: 2_500, settled: 1_250, readerGone: false });
    expect(progress).toEqual([1_000, 2_000, 2_500]);
  });

  it('leave nothing behind when they cannot all be written', async () => {
    const path = pathIn('out.csv');
    const failing = optionsFor([openRow(1, '{"id":"a","text":""}')], table, toFile(path), {
      readTasks: async () => Promise.reject(new Error('the store is gone')),
    });
    await expect(writeJoined(failing)).rejects.toThrow('the store is gone');
    expect(() => readFileSync(path)).toThrow(/ENOENT/);
  });
});
