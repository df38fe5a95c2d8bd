import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { costUsdJson, resultLine } from '../../src/results/result-line.js';
import { completedRow, failedRow } from './rows.js';

const withoutInput = { includeInput: false };

describe('a results line', () => {
  it('holds exactly the documented fields in their order', () => {
    expect(resultLine(completedRow(7), withoutInput)).toBe(
      '{"id":"doc-7","line":7,"status":"completed","output":"positive","model":"gpt-4o-mini-2024-07-18",' +
        '"finish_reason":"stop","usage":{"input_tokens":31,"output_tokens":2,"cached_tokens":0,"reasoning_tokens":0},' +
        '"cost_usd":0.000006,"attempts":1,"latency_ms":812,"request_id":"req_7","completed_at":"2026-03-14T09:26:53.589Z"}',
    );
  });

  it('says null where usage, cost, latency or request id are not known', () => {
    const row = completedRow(1, { usage: null, costMicroUsd: null, latencyMs: null, requestId: null });
    expect(JSON.parse(resultLine(row, withoutInput))).toMatchObject({
      usage: null,
      cost_usd: null,
      latency_ms: null,
      request_id: null,
    });
  });

  it('splices a parsed output and metadata as they are, numbers beyond 2^53 included', () => {
    const row = completedRow(1, {
      outputJson: '{"id":90071992547409931234}',
      metadataJson: '{"serial":12345678901234567890}',
    });
    const line = resultLine(row, withoutInput);
    expect(line).toContain('"output":{"id":90071992547409931234}');
    expect(line).toContain('"metadata":{"serial":12345678901234567890}}');
  });

  it('ends with what the answer holds beside its text, as the server wrote it', () => {
    const detailsJson = '{"message":{"content": "positive", "n": 1.0},"reasoning":"Hm."}';
    expect(resultLine(completedRow(1, { detailsJson, metadataJson: '[]' }), withoutInput)).toMatch(
      /,"completed_at":"[^"]+","message":\{"content": "positive", "n": 1\.0\},"reasoning":"Hm\.","metadata":\[\]\}$/,
    );
  });

  it('gives an id that is a number back as one', () => {
    const number = { key: '9007199254740993', idIsNumber: true };
    expect(resultLine(completedRow(1, number), withoutInput)).toMatch(/^\{"id":9007199254740993,"line":1,/);
    expect(resultLine(failedRow(1, {}, number), withoutInput)).toMatch(/^\{"id":9007199254740993,"line":1,/);
    expect(resultLine(completedRow(1, { key: '1' }), withoutInput)).toMatch(/^\{"id":"1",/);
  });

  it('holds the input document when asked to', () => {
    const row = completedRow(1, { body: '{"text": "Good.", "n": 1.0}\r' });
    expect(resultLine(row, { includeInput: true })).toMatch(/,"document":\{"text": "Good.", "n": 1.0\} \}$/);
    expect(resultLine(row, withoutInput)).not.toContain('document');
  });

  it('refuses a row that has neither an answer nor an error', () => {
    expect(() => resultLine(completedRow(5, { result: null }), withoutInput)).toThrow(
      expect.objectContaining({
        code: 'RESULT_ROW_BROKEN',
        exitCode: 5,
        message: expect.stringContaining('line 5'),
      }),
    );
  });

  it('is one line of valid JSON whatever the answer, key and message hold', () => {
    const text = fc.string({ unit: 'binary' });
    const trap = fc.constantFrom('\u2028', '\u2029', '\u0085', '\n', '\r', '\ud800', '\0', '"', '\\');
    const hostile = fc.array(fc.oneof(text, trap)).map((parts) => parts.join(''));
    fc.assert(
      fc.property(hostile, hostile, fc.jsonValue(), (key, message, value) => {
        const pretty = JSON.stringify({ value, key }, null, 2);
        const lines = [
          resultLine(
            completedRow(1, { key, model: message, outputJson: pretty, metadataJson: pretty }),
            withoutInput,
          ),
          resultLine(failedRow(1, { message, code: key }, { key }), withoutInput),
        ];
        for (const line of lines) {
          expect(line).not.toMatch(/[\n\r\u0085\u2028\u2029]/);
          expect(Buffer.from(line).toString()).toBe(line);
        }
        const [completed, failed] = lines.map((line) => JSON.parse(line));
        expect(completed).toMatchObject({ id: key, model: message, output: JSON.parse(pretty) });
        expect(failed).toMatchObject({ id: key, error: { message, code: key } });
      }),
    );
  });
});

describe('an errors line', () => {
  it('holds exactly the documented fields in their order', () => {
    expect(resultLine(failedRow(9), withoutInput)).toBe(
      '{"id":"doc-9","line":9,"status":"failed","error":{"kind":"invalid_request","message":"Invalid value",' +
        '"http_status":400,"code":"invalid_value","request_id":"req_9"},"attempts":2,' +
        '"failed_at":"2026-03-14T09:26:53.589Z"}',
    );
  });

  it('keeps what there was of a truncated answer, and the metadata', () => {
    const row = failedRow(
      1,
      { kind: 'truncated', httpStatus: null, code: null, requestId: null, partialOutputJson: '"Once upon"' },
      { metadataJson: '{"lang":"en"}' },
    );
    expect(JSON.parse(resultLine(row, withoutInput))).toMatchObject({
      error: {
        kind: 'truncated',
        http_status: null,
        code: null,
        request_id: null,
        partial_output: 'Once upon',
      },
      metadata: { lang: 'en' },
    });
  });
});

describe('the cost', () => {
  it.each([
    [null, 'null'],
    [0, '0'],
    [6, '0.000006'],
    [0.28, '0.00000028'],
    [-1.5, '-0.0000015'],
    [0.9999999, '0.000001'],
    [100_001, '0.100001'],
    [1_000_000, '1'],
    [12_340_000, '12.34'],
    [9_007_199_254_740_991, '9007199254.740991'],
  ])('of %s micro-dollars is %s', (micro, text) => {
    expect(costUsdJson(micro)).toBe(text);
  });

  it('is the exact decimal for every number of micro-dollars', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (micro) => {
        const [whole = '', fraction = ''] = costUsdJson(micro).split('.');
        expect(BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, '0'))).toBe(BigInt(micro));
      }),
    );
  });
});
