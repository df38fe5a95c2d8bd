import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { wayOutOf } from '../../src/commands/error-words.js';
import type { LlmBatchError } from '../../src/core/errors.js';
import {
  createStoredRequestReader,
  type DocumentPage,
  type PreparedDocument,
  readDocuments,
} from '../../src/documents/read.js';
import type { RequestSettings } from '../../src/documents/request.js';
import { openInput } from '../../src/input/input.js';

const noSettings: RequestSettings = {
  model: null,
  promptTemplate: null,
  systemTemplate: null,
  parameters: {},
  idField: null,
};

async function pagesOf(text: string, settings: Partial<RequestSettings> = {}): Promise<DocumentPage[]> {
  const input = await openInput('-', { cwd: '/', stdin: Readable.from([Buffer.from(text)]) });
  const pages: DocumentPage[] = [];
  for await (const page of readDocuments(input, { settings: { ...noSettings, ...settings } }))
    pages.push(page);
  await input.close();
  return pages;
}

async function documentsOf(lines: readonly unknown[], settings: Partial<RequestSettings> = {}) {
  const text = lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');
  return (await pagesOf(text, settings)).flatMap((page) => page.documents);
}

describe('readDocuments', () => {
  it('gives documents as the store takes them', async () => {
    const line = '{"id": "a", "text": "x", "priority": 2, "metadata": {"k": 1}}';
    expect(await documentsOf([line])).toMatchObject([
      {
        line: 1,
        key: 'a',
        idIsNumber: false,
        occurrence: 0,
        requestHash: expect.stringMatching(/^sha256:[\w-]{22}$/),
        priority: 2,
        body: line,
        metadataJson: '{"k": 1}',
      },
    ]);
  });

  it('goes on after a bad line, which keeps its number, reason and text', async () => {
    const [page] = await pagesOf('{"text":"a"}\nnope\n\n{"text":"b"}\n');
    expect(page?.documents.map(({ line }) => line)).toEqual([1, 4]);
    expect(page?.bad).toEqual([
      { line: 2, reason: 'not JSON: expected a value at character 1, found "n"', text: 'nope' },
    ]);
    expect(page?.line).toBe(4);
  });

  it('pages a long input and tells how far it has come', async () => {
    const lines = Array.from({ length: 2_500 }, (_, index) => `{"id":${index},"text":"x"}\n`);
    const pages = await pagesOf(lines.join(''));
    expect(pages.map((page) => page.documents.length)).toEqual([1_000, 1_000, 500]);
    expect(pages.map((page) => page.line)).toEqual([1_000, 2_000, 2_500]);
    expect(pages.at(-1)?.bytesRead).toBe(lines.join('').length);
    expect(pages.flatMap((page) => page.documents.map(({ key }) => key))).toEqual(
      lines.map((_, index) => String(index)),
    );
  });

  it('makes smaller pages of long lines', async () => {
    const line = `{"text":"${'x'.repeat(3_000_000)}"}\n`;
    const pages = await pagesOf(line.repeat(8));
    expect(Math.max(...pages.map((page) => page.documents.length))).toBe(3);
  });

  it('numbers repeats of a key and counts them', async () => {
    const pages = await pagesOf(
      '{"id":1,"text":"a"}\n{"id":"1","text":"b"}\n{"text":"c"}\n{"text":"c"}\n{"id":1,"text":"a"}\n',
    );
    const documents = pages.flatMap((page) => page.documents);
    expect(documents.map(({ occurrence }) => occurrence)).toEqual([0, 1, 0, 1, 2]);
    expect(pages[0]?.duplicates).toBe(3);
  });

  it('shows what the first good document is', async () => {
    const [page] = await pagesOf('[]\n{"id":1,"text":"a"}\n', { model: 'm' });
    expect(page?.first).toEqual({
      line: 2,
      form: 'record',
      fields: ['id', 'text'],
      model: 'm',
      promptField: 'text',
    });
    const [templated] = await pagesOf('{"id":1,"text":"a"}\n', { promptTemplate: '{{text}}' });
    expect(templated?.first).toMatchObject({ promptField: null, model: 'gpt-4o-mini' });
  });

  it('counts whole requests that a given template is not used for', async () => {
    const request = '{"messages":[{"role":"user","content":"x"}]}\n';
    const [page] = await pagesOf(`${request}{"text":"a"}\n${request}`, { promptTemplate: '{{text}}' });
    expect(page?.documents).toHaveLength(3);
    expect(page?.remarks.map(({ kind, line }) => [kind, line])).toEqual([
      ['template_unused', 1],
      ['template_unused', 3],
    ]);
    expect((await pagesOf(request))[0]).toMatchObject({ remarks: [] });
  });

  it.each([
    [
      'only blank lines',
      '\n \n',
      {},
      'INPUT_EMPTY',
      /^Standard input has only blank lines/,
      /at least one document/,
    ],
    [
      'nothing to send',
      '{"id":"a","stars":5,"review":"x"}\n',
      {},
      'PROMPT_FIELD_MISSING',
      /the fields are: id, stars, review/,
      /--prompt '…\{\{review\}\}…'/,
    ],
    [
      'a template without field',
      '{"id":"a","text":"x"}\n',
      { promptTemplate: 'Classify {text}' },
      'PROMPT_WITHOUT_FIELD',
      /the fields are: id, text/,
      /Write two braces: \{\{text\}\}/,
    ],
    [
      'a template that forgot the document',
      '{"id":"a","text":"x"}\n',
      { promptTemplate: 'Classify this' },
      'PROMPT_WITHOUT_FIELD',
      /same request/,
      /\{\{text\}\}/,
    ],
  ])('stops at once for %s', async (_name, text, settings, code, message, hint) => {
    const error: LlmBatchError = await pagesOf(text, settings).catch((thrown) => thrown);
    expect(error).toMatchObject({ code, exitCode: 2, message: expect.stringMatching(message) });
    expect(wayOutOf(error)).toMatch(hint);
  });

  it('does not mind a template without field when every line is a whole request', async () => {
    const request = '{"messages":[{"role":"user","content":"x"}]}\n';
    expect(await pagesOf(request, { promptTemplate: 'Classify' })).toHaveLength(1);
  });
});

/** What tells a task apart, and what of it may not move to another. */
function identities(documents: readonly PreparedDocument[]): Map<string, string> {
  return new Map(documents.map(({ key, occurrence, requestHash }) => [`${key}#${occurrence}`, requestHash]));
}

describe('identity under edits', () => {
  const row = fc.record({ text: fc.constantFrom('a', 'b', 'c', 'd'), note: fc.constantFrom('x', 'y') });
  const rows = fc.array(row, { minLength: 1, maxLength: 12 });

  it('inserting rows leaves every other row its key and its request', async () => {
    await fc.assert(
      fc.asyncProperty(rows, rows, fc.nat(), async (before, inserted, place) => {
        const at = place % (before.length + 1);
        const after = [...before.slice(0, at), ...inserted, ...before.slice(at)];
        const old = identities(await documentsOf(before));
        const now = identities(await documentsOf(after));
        expect(now.size).toBe(after.length);
        for (const [identity, hash] of old) expect(now.get(identity)).toBe(hash);
      }),
      { numRuns: 50 },
    );
  });

  it('moving rows changes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(rows, async (before) => {
        const moved = [...before].reverse();
        expect(identities(await documentsOf(moved))).toEqual(identities(await documentsOf(before)));
      }),
      { numRuns: 50 },
    );
  });

  it('editing a row with an id keeps its key and changes its request, and no other', async () => {
    await fc.assert(
      fc.asyncProperty(rows, fc.nat(), async (texts, place) => {
        const before = texts.map((fields, id) => ({ id, ...fields }));
        const edited = place % before.length;
        const after = before.map((fields, id) => (id === edited ? { ...fields, text: 'edited' } : fields));
        const old = identities(await documentsOf(before));
        const now = identities(await documentsOf(after));
        const changed = [...now].filter(([identity, hash]) => old.get(identity) !== hash);
        expect(changed.map(([identity]) => identity)).toEqual([`${edited}#0`]);
      }),
      { numRuns: 50 },
    );
  });

  it('a field that is not sent can change without a new call, where there is an id', async () => {
    const [before] = await documentsOf([{ id: 1, text: 'a', note: 'x' }]);
    const [after] = await documentsOf([{ note: 'y', id: 1, text: 'a', more: true }]);
    expect(after).toMatchObject({ key: before?.key, requestHash: before?.requestHash });
  });
});

describe('a stored document', () => {
  it('is rendered to the request whose hash was stored', async () => {
    const settings = {
      ...noSettings,
      systemTemplate: 'Answer in {{language}}.',
      promptTemplate: 'Say {{text}}',
    };
    const [document] = await documentsOf([{ id: 1, text: 'Grüße 😀', language: 'de' }], settings);
    const request = createStoredRequestReader(settings)(document?.body ?? '');
    expect(request).toMatchObject({
      bodyJson:
        '{"model":"gpt-4o-mini","messages":[{"role":"system","content":"Answer in de."},{"role":"user","content":"Say Grüße 😀"}]}',
    });
  });
});
