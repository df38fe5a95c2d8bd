/** JSON lists and documents over several lines, from bytes to records. */
import { describe, expect, it } from 'vitest';
import { isJsonOverLines, readJsonRecords } from '../../src/input/json-records.js';
import type { InputRecord } from '../../src/input/source.js';

async function read(
  text: string | Uint8Array,
  chunkBytes: number,
  maxLineBytes?: number,
): Promise<InputRecord[]> {
  const bytes = Buffer.from(text);
  async function* chunks() {
    // As the source does, which writes over each chunk once the next is asked for.
    const buffer = Buffer.alloc(chunkBytes);
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      yield buffer.subarray(0, bytes.copy(buffer, 0, at, at + chunkBytes));
    }
  }
  const records: InputRecord[] = [];
  for await (const page of readJsonRecords(chunks(), maxLineBytes === undefined ? {} : { maxLineBytes })) {
    records.push(...page);
  }
  return records;
}

const ODD = { text: 'a "quoted" {brace} [bracket],\n\\ and ä 😀' };

describe.each([1, 3, 1_000])('in chunks of %i bytes', (chunkBytes) => {
  it.each([
    ['a list on one line', JSON.stringify([ODD, { n: 1 }]), [1, 2]],
    ['a list, indented', JSON.stringify([ODD, { n: 1 }], null, 2), [2, 5]],
    [
      'a list, indented on Windows',
      JSON.stringify([ODD, { n: 1 }], null, 2).replaceAll('\n', '\r\n'),
      [2, 5],
    ],
    [
      'objects behind each other',
      `${JSON.stringify(ODD, null, 2)}\n${JSON.stringify({ n: 1 }, null, 2)}\n`,
      [1, 4],
    ],
    ['a byte order mark, and a comma too many', `\ufeff[\n${JSON.stringify(ODD)},\n{"n":1},\n]`, [2, 3]],
  ])('%s gives its documents, each on one line', async (_, text, lines) => {
    const records = await read(text, chunkBytes);
    expect(records.map(({ line }) => line)).toEqual(lines);
    expect(records.map((record) => JSON.parse(record.text ?? ''))).toEqual([ODD, { n: 1 }]);
    for (const record of records) expect(record.text).not.toMatch(/[\n\r]/);
  });

  it('what is broken in one document costs no other, and is told with its line', async () => {
    const records = await read(
      '[\n  {"a": 1\n   "b": 2},\n  "text", 7,\n  [1, 2],\n  {"c":\n "x\ny"},\n  {"n": 1}\n]',
      chunkBytes,
    );
    expect(records).toEqual([
      { line: 2, text: '{"a": 1 "b": 2}' },
      { line: 4, text: '"text"' },
      { line: 5, text: '7' },
      { line: 6, text: '[1, 2]' },
      { line: 7, text: '{"c":\n "x\ny"}' },
      { line: 9, text: '{"n": 1}' },
    ]);
  });

  it.each([
    ['inside a document', '[\n{"a": 1},\n{"b": "', [2, 3], 'the file ends before this document does'],
    ['inside the list', '[\n{"a": 1},\n', [2, 3], 'the file ends before the list does that begins on line 1'],
  ])('a file that ends %s says so', async (_, text, lines, reason) => {
    const records = await read(text, chunkBytes);
    expect(records.map(({ line }) => line)).toEqual(lines);
    expect(records.at(-1)).toMatchObject({ text: null, reason: expect.stringContaining(reason) });
  });

  it('a document that is too long is told and not kept', async () => {
    const records = await read(`[{"text": "${'x'.repeat(5_000)}"}, {"n": 1}]`, chunkBytes, 100);
    expect(records[0]).toEqual({ line: 1, reason: '5012 bytes long, over the cap of 100', text: null });
    expect(records[1]).toEqual({ line: 2, text: '{"n": 1}' });
  });

  it('bytes that are no text are told', async () => {
    const bytes = Buffer.concat([Buffer.from('[{"a":"'), Buffer.from([0xff]), Buffer.from('"}]')]);
    expect(await read(bytes, chunkBytes)).toMatchObject([
      { line: 1, reason: 'not valid UTF-8 at byte 7 of the document' },
    ]);
  });
});

it.each([
  ['{"a": 1}\n', false],
  ['{"a": 1\n{"b": 2}\n', false],
  ['\n\n[', true],
  ['{\n  "a": 1\n}', true],
  ['{ "a": 1,\n  "b": 2 }', true],
  ['x\n', false],
])('%j is JSON over lines: %s', (head, expected) => {
  expect(isJsonOverLines(head)).toBe(expected);
});
