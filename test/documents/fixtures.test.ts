import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { FAILURE_KINDS } from '../../src/core/failure.js';
import { type DocumentPage, readDocuments } from '../../src/documents/read.js';
import { openInput } from '../../src/input/input.js';

const folder = fileURLToPath(new URL('../../fixtures/', import.meta.url));

async function read(name: string): Promise<DocumentPage[]> {
  const input = await openInput(name, { cwd: folder, stdin: process.stdin });
  const settings = { model: null, promptTemplate: null, systemTemplate: null, parameters: {}, idField: null };
  const pages: DocumentPage[] = [];
  for await (const page of readDocuments(input, { settings })) pages.push(page);
  await input.close();
  return pages;
}

describe('the fixture of bad lines', () => {
  it('gives each bad line its number and reason, and every good line its document', async () => {
    const pages = await read('bad-lines.jsonl');
    const found = pages.flatMap((page) => [
      ...page.documents.map(({ line, key }) => [line, `good: ${key}`] as const),
      ...page.bad.map(({ line, reason }) => [line, reason] as const),
    ]);
    expect(found.sort(([one], [other]) => one - other)).toEqual([
      [1, 'good: after-a-byte-order-mark'],
      [2, 'good: carriage-return'],
      [5, 'not JSON: expected a value at character 1, found "t"'],
      [6, 'not JSON: the string that begins at character 24 is not closed'],
      [7, 'not JSON: expected a field name in double quotes at character 52, found "}"'],
      [8, `not JSON: expected a field name in double quotes at character 2, found "'"`],
      [9, 'a JSON array, where each line must be one JSON object'],
      [10, 'a string, where each line must be one JSON object'],
      [11, 'a number, where each line must be one JSON object'],
      [12, 'not valid UTF-8 at byte 34 of the line'],
      [13, 'not valid UTF-8 at byte 32 of the line'],
      [14, 'good: line-separator'],
      [15, 'text holds half of a surrogate pair (such as \\ud83d alone), which is no character; remove it'],
      [16, 'good: whole-pair'],
      [17, 'good: 9007199254740993'],
      [18, 'seed is an integer beyond 2^53 and would be rounded; write it as a string'],
      [19, 'price is a number beyond all range; write it as a string'],
      [20, 'the id field id is empty'],
      [21, 'the id field id must be a string or a number, not an object'],
      [
        22,
        "none of the fields prompt, text, content, document, input is a string; the fields are: id, stars; name the one to send in a prompt: '…{{field}}…'",
      ],
      [23, 'the field text, which is the message, is empty'],
      [
        24,
        'url "/v1/images/generations" is not supported; only /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/completions, /v1/moderations are',
      ],
      [25, 'body: stream must be left out: an answer is kept whole or not at all'],
      [26, 'good: escaped-nul'],
      [27, 'not JSON: a control character in a string at character 26 must be escaped'],
      [28, 'good: twice'],
      [29, 'good: no-final-newline'],
    ]);
  });

  it('is still the bytes it was made of', () => {
    const bytes = readFileSync(`${folder}bad-lines.jsonl`);
    expect(bytes.subarray(0, 3)).toEqual(Buffer.from([0xef, 0xbb, 0xbf]));
    expect(bytes.includes('\r\n')).toBe(true);
    expect(bytes.includes(0xe9)).toBe(true);
    expect(bytes.at(-1)).not.toBe(0x0a);
  });
});

interface FailureDocument {
  readonly id: string;
  readonly text: string;
  readonly expect: { readonly state: string; readonly kind: string | null; readonly attempts: number };
}

describe('the reviews', () => {
  it.each(['reviews.csv', 'reviews.tsv', 'reviews.parquet'])(
    '%s holds the documents of reviews.jsonl',
    async (name) => {
      const documentsOf = async (file: string) =>
        (await read(file)).flatMap((page) =>
          page.documents.map(({ line: _line, body, ...rest }) => ({ ...rest, document: JSON.parse(body) })),
        );
      expect(await documentsOf(name)).toEqual(await documentsOf('reviews.jsonl'));
    },
  );
});

describe('the other fixtures', () => {
  it.each([
    ['reviews.jsonl', 62, 0],
    ['reviews.csv', 62, 0],
    ['reviews.tsv', 62, 0],
    ['reviews.parquet', 62, 0],
    ['notes/*.md', 3, 0],
    ['batch-api.jsonl', 8, 1],
    ['requests.jsonl', 7, 0],
    ['failures.jsonl', 28, 0],
    ['failures-timeout.jsonl', 4, 0],
  ])('%s has %i good lines, %i of them a repeat', async (name, documents, duplicates) => {
    const [page, ...more] = await read(name);
    expect(more).toEqual([]);
    expect(page?.bad).toEqual([]);
    expect(page).toMatchObject({ documents: { length: documents }, duplicates });
  });

  it.each(['failures.jsonl', 'failures-timeout.jsonl'])(
    '%s names in each id what its text asks for',
    (name) => {
      const lines = readFileSync(folder + name, 'utf8')
        .trim()
        .split('\n');
      for (const line of lines) {
        const { id, text, expect: expected } = JSON.parse(line) as FailureDocument;
        expect(/^\[\[simulate:(.+?)\]\] /.exec(text)?.[1]?.replace(' ', '-')).toBe(id);
        expect(expected).toMatchObject({
          state: expect.stringMatching(/^(?:completed|failed)$/),
          attempts: expect.any(Number),
        });
        expect([null, ...FAILURE_KINDS]).toContain(expected.kind);
      }
    },
  );
});
