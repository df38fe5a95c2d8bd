/** From `{{image field}}` to the parts of a request, over real files. */

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isLineProblem, type LineProblem } from '../../src/core/line-problem.js';
import { MOST_FILE_BYTES } from '../../src/documents/attached-file.js';
import { loadAttachments } from '../../src/documents/attachment.js';
import { createStoredRequestReader } from '../../src/documents/read.js';
import { type RequestSettings, requestHash } from '../../src/documents/request.js';
import { ENDPOINTS } from '../../src/endpoints/endpoints.js';
import type { RenderedRequest } from '../../src/endpoints/rendered-request.js';
import { temporaryFolder } from '../support/program.js';
import { sampleGif, sampleJpeg, samplePdf, samplePng, sampleWebp } from '../support/sample-images.js';

let folder: ReturnType<typeof temporaryFolder>;

beforeEach(() => {
  folder = temporaryFolder();
});

afterEach(() => folder.remove());

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder.path, name);
  writeFileSync(path, content);
  return path;
}

function read(document: object, settings: Partial<RequestSettings> = {}): RenderedRequest | LineProblem {
  return createStoredRequestReader({
    model: 'm',
    promptTemplate: '{{image photo}}',
    systemTemplate: null,
    parameters: {},
    imageFolder: folder.path,
    idField: null,
    ...settings,
  })(JSON.stringify(document));
}

function rendered(document: object, settings: Partial<RequestSettings> = {}): RenderedRequest {
  const request = read(document, settings);
  if (isLineProblem(request)) throw new Error(request.reason);
  return request;
}

function hashOf(document: object): string {
  return requestHash(rendered(document));
}

function load(bodyJson: string, attachments: RenderedRequest['attachments']): Promise<string | LineProblem> {
  const { placeFile } = ENDPOINTS.chat;
  if (placeFile === null) throw new Error('chat takes files');
  return loadAttachments(bodyJson, attachments, placeFile);
}

/** The user's message as it would go over the wire. */
async function sentContent(document: object, settings: Partial<RequestSettings> = {}): Promise<unknown> {
  const { bodyJson, attachments } = rendered(document, settings);
  const loaded = await load(bodyJson, attachments);
  if (typeof loaded !== 'string') throw new Error(loaded.reason);
  return (JSON.parse(loaded) as { messages: { role: string; content: unknown }[] }).messages.at(-1)?.content;
}

function image(type: string, bytes: Buffer): object {
  return { type: 'image_url', image_url: { url: `data:image/${type};base64,${bytes.toString('base64')}` } };
}

const text = (words: string): object => ({ type: 'text', text: words });

it('a file that a link leads out to since it was looked at is not sent', async () => {
  const inside = join(folder.path, 'inside');
  mkdirSync(inside);
  file('secret.png', samplePng(9, 9));
  file('inside/a.png', samplePng(2, 2));
  const settings = { imageFolder: inside, allowAnyPath: false };
  const { bodyJson, attachments } = rendered({ photo: 'a.png' }, settings);
  rmSync(join(inside, 'a.png'));
  symlinkSync('../secret.png', join(inside, 'a.png'));
  expect(await load(bodyJson, attachments)).toMatchObject({
    reason: expect.stringContaining('lies outside'),
  });
});

describe('the message of a document with images', () => {
  it('has texts and images in the order of the template, blank texts left out', async () => {
    const [one, other] = [samplePng(2, 3), sampleJpeg(5, 7)];
    file('one.png', one);
    file('other.jpg', other);
    expect(
      await sentContent(
        { photo: 'one.png', more: ['other.jpg', 'one.png'], name: 'Ann' },
        {
          promptTemplate: 'What is it? {{image photo}} {{image more}}\nFor {{name}}',
          systemTemplate: 'Be brief.',
        },
      ),
    ).toEqual([
      text('What is it? '),
      image('png', one),
      image('jpeg', other),
      image('png', one),
      text('\nFor Ann'),
    ]);
  });

  it.each([
    ['png', samplePng(2, 2)],
    ['jpeg', sampleJpeg(2, 2)],
    ['gif', sampleGif(2, 2)],
    ['webp', sampleWebp(2, 2)],
  ])('names an image %s by its bytes, whatever the file is called', async (type, bytes) => {
    file('photo.txt', bytes);
    expect(await sentContent({ photo: 'photo.txt' })).toEqual([image(type, bytes)]);
  });

  it('holds a PDF as a file with its name', async () => {
    file('invoice', samplePdf());
    expect(await sentContent({ photo: 'invoice' })).toEqual([
      {
        type: 'file',
        file: {
          filename: 'invoice',
          file_data: `data:application/pdf;base64,${samplePdf().toString('base64')}`,
        },
      },
    ]);
  });

  it.each(['https://example.com/a.png?size=1', 'HTTP://example.com/a', 'data:image/png;base64,iVBORw0KGgo='])(
    'holds %s as it is',
    async (url) => {
      expect(await sentContent({ photo: url })).toEqual([{ type: 'image_url', image_url: { url } }]);
    },
  );

  it('holds a PDF in a data URL as a file', async () => {
    const url = 'data:application/pdf;base64,JVBERi0=';
    expect(await sentContent({ photo: url })).toEqual([
      { type: 'file', file: { filename: 'document.pdf', file_data: url } },
    ]);
  });

  it('is a text as ever where the document has a field of the very name', async () => {
    expect(await sentContent({ 'image photo': 'a text', photo: 'none.png' })).toBe('a text');
  });

  it('finds absolute paths, paths through links and names with quotes, dollars and line ends', async () => {
    const bytes = samplePng(1, 1);
    const odd = 'a "b" $& $1\n\u2028ü.png';
    file(odd, bytes);
    mkdirSync(join(folder.path, 'in'));
    symlinkSync(join(folder.path, odd), join(folder.path, 'in', 'link'));
    const photo = [odd, join(folder.path, odd), 'in/../in/link'];
    expect(await sentContent({ photo })).toEqual([
      image('png', bytes),
      image('png', bytes),
      image('png', bytes),
    ]);
  });

  it('puts no file into a text that looks like what holds its place', async () => {
    const bytes = samplePng(1, 1);
    file('a.png', bytes);
    const { attachments } = rendered({ photo: 'a.png' });
    const place = attachments[0]?.url ?? '';
    const words = `"url":${JSON.stringify(place)} ${place}`;
    const content = await sentContent(
      { photo: 'a.png', words },
      { promptTemplate: '{{words}}{{image photo}}' },
    );
    expect(content).toEqual([text(words), image('png', bytes)]);
  });

  it('keeps the bytes of files out of the body until it is sent', () => {
    file('a.png', Buffer.concat([samplePng(640, 480), Buffer.alloc(1_000_000, 7)]));
    const request = rendered({ photo: 'a.png' });
    expect(request.bodyJson.length).toBeLessThan(500);
    expect(request.bodyJson).toContain('data:image/png;base64,… (a.png, 1.0 MB)');
    expect(request.attachments).toMatchObject([{ kind: 'image', size: { width: 640, height: 480 } }]);
  });

  it('has the size of a JPEG whose frame comes after pages of camera data', () => {
    file('a.jpg', sampleJpeg(4_000, 3_000, 60_000));
    expect(rendered({ photo: 'a.jpg' }).attachments[0]?.size).toEqual({ width: 4_000, height: 3_000 });
  });

  it('gives its texts alone for estimates', () => {
    file('a.png', samplePng(1, 1));
    const settings = { promptTemplate: 'One {{image photo}} two', systemTemplate: 'Three' };
    expect(rendered({ photo: 'a.png' }, settings).inputText).toBe('Three\nOne \n two');
  });
});

describe('a document whose image cannot be sent', () => {
  function problem(document: object): LineProblem {
    const request = read(document);
    if (!isLineProblem(request)) throw new Error('it can be sent');
    return request;
  }

  it.each([null, '', [] as string[]])('because the field is %j is bad', (photo) => {
    expect(problem({ photo })).toEqual({ reason: 'the image field photo is empty', field: 'photo' });
  });

  it.each([7, true, {}, [['a.png']]])('because the field is %j is bad', (photo) => {
    expect(problem({ photo }).reason).toMatch(
      /must be a path, an http\(s\) URL, a data: URL or a list of these$/,
    );
  });

  it('because the field is a URL that no server fetches is bad, and not looked for as a file', () => {
    expect(problem({ photo: 'ftp://example.com/a.png' }).reason).toMatch(
      /^the image field photo names a ftp: URL, and only http\(s\): and data: ones can be sent; /,
    );
  });

  it('names the place in a list and the absolute path that was tried', () => {
    file('a.png', samplePng(1, 1));
    expect(problem({ photo: ['a.png', 'sub/b.png'] })).toEqual({
      reason: `the image field photo.1 names ${join(folder.path, 'sub/b.png')}, which does not exist`,
      field: 'photo.1',
    });
  });

  it.each([
    ['a folder', () => mkdirSync(join(folder.path, 'x')), 'which is a folder'],
    ['empty', () => file('x', ''), 'which is empty'],
    ['of another kind', () => file('x', 'BM'), 'which is no PNG, JPEG, GIF, WebP or PDF'],
    ['an SVG', () => file('x', '<svg xmlns="http://www.w3.org/2000/svg"/>'), 'which is no PNG, JPEG, GIF'],
    ['a pipe', () => execFileSync('mkfifo', [join(folder.path, 'x')]), 'which is no regular file'],
    ['not below a folder', () => symlinkSync('nowhere', join(folder.path, 'x')), 'which does not exist'],
    [
      'too large',
      () => truncateSync(file('x', samplePng(1, 1)), MOST_FILE_BYTES + 1),
      'which has 50.0 MB, over the 50.0 MB that a request may carry',
    ],
  ])('because the file is %s is bad', (_name, make, reason) => {
    make();
    expect(problem({ photo: 'x' }).reason).toContain(
      `the image field photo names ${join(folder.path, 'x')}, ${reason}`,
    );
  });

  it.skipIf(process.getuid?.() === 0)('because nobody may read it is bad', () => {
    chmodSync(file('x', samplePng(1, 1)), 0);
    expect(problem({ photo: 'x' }).reason).toMatch(/, which may not be read by this user$/);
  });

  it('because its files are too much together is bad', () => {
    for (const name of ['x', 'y']) truncateSync(file(name, samplePng(1, 1)), MOST_FILE_BYTES / 2 + 1);
    expect(rendered({ photo: 'x' }).attachments).toHaveLength(1);
    expect(problem({ photo: ['x', 'y'] }).reason).toMatch(/files of 50\.0 MB together, over the 50\.0 MB/);
  });

  it.each(['a\0b', 'A'.repeat(5_000)])('because its path is none is bad, in one short sentence', (photo) => {
    expect(problem({ photo }).reason.length).toBeLessThan(120);
  });
});

describe('the hash of a request with images', () => {
  it('changes with the path, the size and the time of change, and with nothing else of the file', () => {
    const path = file('a.png', samplePng(1, 1));
    file('b.png', samplePng(1, 1));
    const at = new Date(1_700_000_000_000);
    utimesSync(path, at, at);
    const before = hashOf({ photo: 'a.png' });
    utimesSync(path, new Date(), at);
    expect(hashOf({ photo: 'a.png' })).toBe(before);
    expect(hashOf({ photo: 'b.png' })).not.toBe(before);
    utimesSync(path, at, new Date(1_700_000_000_001));
    expect(hashOf({ photo: 'a.png' })).not.toBe(before);
    writeFileSync(path, Buffer.concat([samplePng(1, 1), Buffer.from('x')]));
    utimesSync(path, at, at);
    expect(statSync(path).mtimeMs).toBe(at.getTime());
    expect(hashOf({ photo: 'a.png' })).not.toBe(before);
  });

  it('is that of no text, whatever the text says', () => {
    const hash = requestHash(rendered({ photo: 'https://x/a' }));
    for (const words of ['https://x/a', 'image,https://x/a', '[["image","https://x/a"]]', 'parts:']) {
      expect(requestHash(rendered({ words }, { promptTemplate: '{{words}}' }))).not.toBe(hash);
    }
  });

  it('is the same exactly when the bodies are, for texts, URLs and images in any order', () => {
    file('a', samplePng(1, 1));
    file('b', samplePng(1, 2));
    const source = fc.constantFrom('a', 'b', 'https://x/a', 'https://x/b', 'data:image/png;base64,AAAA');
    const words = fc.constantFrom(
      '',
      ' ',
      'a',
      'image,https://x/a',
      '[["image","https://x/a"]]',
      'https://x/a',
    );
    const document = fc.record({
      photo: fc.array(source, { minLength: 1, maxLength: 3 }),
      words,
      more: words,
    });
    const template = fc.constantFrom(
      '{{words}}{{image photo}}{{more}}',
      '{{image photo}}{{words}}',
      '.{{words}}',
      '.{{words}}{{more}}{{image photo}}',
    );
    fc.assert(
      fc.property(document, document, template, template, (one, other, first, second) => {
        const left = rendered(one, { promptTemplate: first });
        const right = rendered(other, { promptTemplate: second });
        expect(requestHash(left) === requestHash(right)).toBe(left.bodyJson === right.bodyJson);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('a file that changes between its look and the sending', () => {
  async function problemAfter(change: (path: string) => void): Promise<unknown> {
    const path = file('a.png', samplePng(1, 1));
    const { bodyJson, attachments } = rendered({ photo: ['a.png'] });
    change(path);
    return load(bodyJson, attachments);
  }

  it.each([
    ['is gone', (path: string) => execFileSync('rm', [path]), 'which does not exist'],
    ['is empty', (path: string) => writeFileSync(path, ''), 'which is empty'],
    ['is no image', (path: string) => writeFileSync(path, 'text'), 'which is no PNG, JPEG, GIF, WebP or PDF'],
    [
      'is of another kind',
      (path: string) => writeFileSync(path, samplePdf()),
      'which is application/pdf by now and was image/png',
    ],
  ])('and %s is told with its field and path', async (_name, change, what) => {
    expect(await problemAfter(change)).toEqual({
      reason: `the image field photo.0 names ${join(folder.path, 'a.png')}, ${what}`,
      field: 'photo.0',
    });
  });

  it('and was edited is sent as it is now', async () => {
    const loaded = await problemAfter((path) => writeFileSync(path, samplePng(2, 2, 9)));
    expect(loaded).toContain(samplePng(2, 2, 9).toString('base64'));
  });
});
