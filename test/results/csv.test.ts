import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CSV_COLUMNS, csvHeader, csvRows, csvText } from '../../src/results/csv.js';
import { completedRow, failedRow } from './rows.js';

/** RFC 4180, and any of the usual line ends, so that text a strict reader would misread shows up. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]];
  let cell = '';
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] ?? '';
    if (quoted) {
      if (character !== '"') cell += character;
      else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else quoted = false;
    } else if (character === '"' && cell === '') quoted = true;
    else if (character === ',' || character === '\n' || character === '\r') {
      rows.at(-1)?.push(cell);
      cell = '';
      if (character !== ',') rows.push([]);
    } else cell += character;
  }
  return rows.slice(0, -1);
}

function asObjects(text: string): Record<string, string>[] {
  const [header = [], ...rows] = parseCsv(text);
  return rows.map((row) => Object.fromEntries(header.map((name, index) => [name, row[index] ?? ''])));
}

describe('results as CSV', () => {
  it('has the same columns for completed and failed documents', () => {
    const text = csvHeader(false) + csvRows([completedRow(1), failedRow(2)], false);
    expect(text).toBe(
      `${CSV_COLUMNS.join(',')}\n` +
        'doc-1,1,completed,positive,gpt-4o-mini-2024-07-18,stop,31,2,0,0,0.000006,1,812,req_1,2026-03-14T09:26:53.589Z,,,,,,,,,,,,\n' +
        'doc-2,2,failed,,,,31,2,0,0,0.000006,2,812,req_2,2026-03-14T09:26:53.589Z,invalid_request,Invalid value,400,invalid_value,,,,,,,,\n',
    );
  });

  it('writes objects, metadata and documents as JSON text', () => {
    const row = completedRow(1, {
      outputJson: '{"mood":"good, very"}',
      metadataJson: '{"a":1}',
      body: '{"text":"x"}',
    });
    expect(asObjects(csvHeader(true) + csvRows([row], true))).toEqual([
      expect.objectContaining({
        output: '{"mood":"good, very"}',
        metadata: '{"a":1}',
        document: '{"text":"x"}',
      }),
    ]);
  });

  it('has columns for what an answer holds beside its text', () => {
    const detailsJson =
      '{"message": {"content": "a, b", "tool_calls": []}, "reasoning":"Hm, \\"so\\"","logprobs":{"content":[]},"choices":[1]}';
    expect(asObjects(csvHeader(false) + csvRows([completedRow(1, { detailsJson })], false))).toEqual([
      expect.objectContaining({
        message: '{"content": "a, b", "tool_calls": []}',
        reasoning: 'Hm, "so"',
        logprobs: '{"content":[]}',
        choices: '[1]',
      }),
    ]);
  });

  it('gives back whatever text the answer, the id and the error hold', () => {
    const trap = fc.constantFrom('"', ',', '\n', '\r', '\r\n', '""', ' ', '=1+1', ';', '\t');
    const hostile = fc.array(fc.oneof(fc.string(), trap)).map((parts) => parts.join(''));
    fc.assert(
      fc.property(hostile, hostile, (key, text) => {
        const rows = [
          completedRow(1, { key, outputJson: JSON.stringify(text) }),
          failedRow(2, { message: text, partialOutputJson: JSON.stringify(text) }, { key }),
        ];
        const [completed, failed, ...more] = asObjects(csvHeader(false) + csvRows(rows, false));
        expect(more).toEqual([]);
        expect(completed).toMatchObject({ id: key, output: text });
        expect(failed).toMatchObject({ id: key, error_message: text, partial_output: text });
      }),
    );
  });

  it('puts an apostrophe before what a spreadsheet would run, where it is asked to, in headers too', () => {
    const formulas = ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1'];
    const rows = formulas.map((text, index) =>
      completedRow(index + 1, { key: text, outputJson: JSON.stringify(text), model: 'a=b' }),
    );
    const style = { escapeFormulas: true };
    const table = asObjects(csvHeader(false, ['=field'], style) + csvRows(rows, false, [], style));
    expect(table.map(({ id, output, model }) => [id, output, model])).toEqual(
      formulas.map((text) => [`'${text}`, `'${text}`, 'a=b']),
    );
    expect(csvHeader(false, ['=field'], style)).toContain("'=field");
    expect(csvRows(rows.slice(2, 3), false)).toContain('-1');
    // Numbers are none, below zero neither.
    expect(csvText([[-1, '-1']], style)).toBe("-1,'-1\n");
  });

  it('writes nothing for an empty page', () => {
    expect(csvRows([], false)).toBe('');
  });

  it('spreads outputs that are objects over columns with names of their own', () => {
    const rows = [
      completedRow(1, { outputJson: '{"mood":"good","id":7,"document":true}' }),
      completedRow(2),
      failedRow(3),
    ];
    const fields = ['mood', 'id', 'document'];
    expect(asObjects(csvHeader(false, fields) + csvRows(rows, false, fields))).toMatchObject([
      { id: 'doc-1', output: '', mood: 'good', id_2: '7', document_2: 'true' },
      { id: 'doc-2', output: 'positive', mood: '', id_2: '', document_2: '' },
      { id: 'doc-3', output: '', mood: '', id_2: '', document_2: '' },
    ]);
    expect(csvHeader(true, fields)).toMatch(/,choices,items,mood,id_2,document_2,document\n$/);
  });
});
