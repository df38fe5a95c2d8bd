import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { describe, expect, it } from 'vitest';
import type { ResultRow } from '../../src/core/result-row.js';
import { CSV_COLUMNS } from '../../src/results/csv.js';
import { type ResultDestination, writeResults } from '../../src/results/export.js';
import { completedRow, failedRow, pagesOf, temporaryFolder } from './rows.js';

async function write(
  rows: readonly ResultRow[],
  change: { readonly includeInput?: boolean; readonly destination?: ResultDestination } = {},
): Promise<ArrayBuffer> {
  const path = join(temporaryFolder(), 'out.parquet');
  await writeResults({
    readPage: pagesOf(rows, 1_000),
    format: 'parquet',
    only: 'all',
    includeInput: change.includeInput ?? false,
    destination: change.destination ?? { kind: 'file', path, mayReplace: false },
  });
  return change.destination === undefined ? bufferOf(readFileSync(path)) : new ArrayBuffer(0);
}

function bufferOf(bytes: Buffer): ArrayBuffer {
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
}

describe('results as Parquet', () => {
  it('have the columns of the CSV, typed', async () => {
    const file = await write([
      completedRow(1, { outputJson: '{"mood":"é"}', metadataJson: '{"k":1}' }),
      failedRow(2),
    ]);
    const schema = parquetMetadata(file).schema.slice(1);
    expect(schema.map(({ name }) => name)).toEqual(CSV_COLUMNS);
    const [completed, failed] = await parquetReadObjects({ file });
    expect(completed).toEqual({
      id: 'doc-1',
      line: 1n,
      status: 'completed',
      output: '{"mood":"é"}',
      model: 'gpt-4o-mini-2024-07-18',
      finish_reason: 'stop',
      input_tokens: 31n,
      output_tokens: 2n,
      cached_tokens: 0n,
      reasoning_tokens: 0n,
      cost_usd: 0.000006,
      attempts: 1n,
      latency_ms: 812n,
      request_id: 'req_1',
      finished_at: new Date('2026-03-14T09:26:53.589Z'),
      error_kind: null,
      error_message: null,
      http_status: null,
      error_code: null,
      partial_output: null,
      metadata: '{"k":1}',
      shared_from: null,
      reasoning: null,
      message: null,
      logprobs: null,
      choices: null,
      items: null,
    });
    expect(failed).toMatchObject({
      status: 'failed',
      output: null,
      error_kind: 'invalid_request',
      http_status: 400n,
      error_code: 'invalid_value',
    });
  });

  it('have vectors as lists of numbers, whatever failed before the first', async () => {
    const vector = { finishReason: '', outputJson: '[0.1,-2,3e-7]' };
    const file = await write([failedRow(1), completedRow(2, vector), failedRow(3)]);
    const rows = await parquetReadObjects({ file, columns: ['output', 'finish_reason'] });
    expect(rows).toEqual([
      { output: null, finish_reason: null },
      { output: [0.1, -2, 3e-7], finish_reason: null },
      { output: null, finish_reason: null },
    ]);
  });

  it('cannot have vectors and text in one column, and say so', async () => {
    const vector = completedRow(1, { finishReason: '', outputJson: '[0.1]' });
    const mixed = expect.objectContaining({ code: 'OUTPUT_MIXED', exitCode: 2 });
    await expect(write([vector, completedRow(2)])).rejects.toThrow(mixed);
    await expect(write([completedRow(2), vector])).rejects.toThrow(mixed);
  });

  it('have lists of several vectors, or of numbers that a model wrote, as text', async () => {
    for (const change of [{ finishReason: '', outputJson: '[[1],[2]]' }, { outputJson: '[1,2]' }]) {
      const file = await write([completedRow(1, change)]);
      expect(await parquetReadObjects({ file, columns: ['output'] })).toEqual([
        { output: change.outputJson },
      ]);
    }
  });

  it('carry the document when it is asked for', async () => {
    const file = await write([{ ...completedRow(1), body: '{"text":"x"}' }], { includeInput: true });
    expect(await parquetReadObjects({ file, columns: ['document'] })).toEqual([{ document: '{"text":"x"}' }]);
  });

  it('are written a row group at a time', async () => {
    const output = JSON.stringify('x'.repeat(40_000));
    const rows = Array.from({ length: 1_000 }, (_, index) => completedRow(index + 1, { outputJson: output }));
    const file = await write(rows);
    const groups = parquetMetadata(file).row_groups.map(({ num_rows: count }) => Number(count));
    expect(groups.length).toBeGreaterThan(2);
    const lines = await parquetReadObjects({ file, columns: ['line'] });
    expect(lines.map(({ line }) => Number(line))).toEqual(rows.map(({ line }) => line));
  });

  it('are a file with columns even where there is no row', async () => {
    const file = await write([]);
    expect(parquetMetadata(file)).toMatchObject({ num_rows: 0n });
    expect(await parquetReadObjects({ file })).toEqual([]);
  });

  it('may go to standard output, as the same bytes', async () => {
    const chunks: Buffer[] = [];
    const stream = new Writable({
      write(chunk, _encoding, done) {
        // What is written must not change afterwards.
        setImmediate(() => {
          chunks.push(Buffer.from(chunk));
          done();
        });
      },
    });
    const rows = [completedRow(1), failedRow(2)];
    await write(rows, { destination: { kind: 'stream', stream, name: 'standard output' } });
    expect(Buffer.concat(chunks)).toEqual(Buffer.from(await write(rows)));
  });
});
