import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readLines } from '../../src/input/lines.js';
import type { InputRecord } from '../../src/input/source.js';

async function* chunksOf(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  // One buffer for all chunks, as a reader that saves memory has it.
  const reused = Buffer.alloc(bytes.length);
  let start = 0;
  for (let index = 0; start < bytes.length; index += 1) {
    const size = Math.max(1, sizes.length === 0 ? bytes.length : (sizes[index % sizes.length] ?? 1));
    const chunk = bytes.subarray(start, start + size);
    reused.fill(0);
    reused.set(chunk);
    yield reused.subarray(0, chunk.length);
    start += size;
  }
}

async function linesOf(
  input: string | Uint8Array,
  options: { sizes?: readonly number[]; maxLineBytes?: number } = {},
): Promise<InputRecord[]> {
  const { sizes = [], ...lineOptions } = options;
  const bytes = typeof input === 'string' ? Buffer.from(input) : input;
  const lines: InputRecord[] = [];
  for await (const page of readLines(chunksOf(bytes, sizes), lineOptions)) lines.push(...page);
  return lines;
}

describe('readLines', () => {
  it('numbers lines from 1 and counts the blank ones it leaves out', async () => {
    expect(await linesOf('a\n\n \t\r\nb\n')).toEqual([
      { line: 1, text: 'a' },
      { line: 4, text: 'b' },
    ]);
  });

  it('drops the carriage return of a line end and keeps any other', async () => {
    expect(await linesOf('a\r\nb\rc\n\rd\r\n')).toEqual([
      { line: 1, text: 'a' },
      { line: 2, text: 'b\rc' },
      { line: 3, text: '\rd' },
    ]);
  });

  it('takes a last line without a line end', async () => {
    expect(await linesOf('a\nb')).toEqual([
      { line: 1, text: 'a' },
      { line: 2, text: 'b' },
    ]);
  });

  it('yields nothing for nothing', async () => {
    expect(await linesOf('')).toEqual([]);
    expect(await linesOf('\n\r\n')).toEqual([]);
  });

  it('drops a byte order mark at the start, even in pieces, and nowhere else', async () => {
    const text = '\ufeffa\n\ufeffb\n';
    const expected = [
      { line: 1, text: 'a' },
      { line: 2, text: '\ufeffb' },
    ];
    expect(await linesOf(text)).toEqual(expected);
    expect(await linesOf(text, { sizes: [1] })).toEqual(expected);
    expect(await linesOf('\ufeff\na\n')).toEqual([{ line: 2, text: 'a' }]);
  });

  it('does not end a line at U+2028, U+2029 or U+0085', async () => {
    const text = 'a\u2028b\u2029c\u0085d';
    expect(await linesOf(`${text}\n`)).toEqual([{ line: 1, text }]);
  });

  it('reports a line of invalid UTF-8 with the place, and reads on', async () => {
    const bytes = Buffer.concat([
      Buffer.from('gut\nübel'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('\nbesser ü\n'),
    ]);
    expect(await linesOf(bytes)).toEqual([
      { line: 1, text: 'gut' },
      { line: 2, reason: 'not valid UTF-8 at byte 6 of the line', text: 'übel\ufffd\ufffd' },
      { line: 3, text: 'besser ü' },
    ]);
  });

  it('finds the invalid byte far behind the start of a long line', async () => {
    const bytes = Buffer.concat([Buffer.from('ü'.repeat(10_000)), Buffer.from([0xc3]), Buffer.from('(\n')]);
    const [line] = await linesOf(bytes);
    expect(line).toMatchObject({ reason: 'not valid UTF-8 at byte 20001 of the line' });
  });

  it.each([
    ['a character cut off by the line end', [0xe2, 0x82]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a code point beyond U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['a continuation byte alone', [0x80]],
  ])('refuses %s', async (_name, bytes) => {
    expect(await linesOf(Buffer.from([...bytes, 0x0a, 0x61]))).toMatchObject([
      { line: 1, reason: 'not valid UTF-8 at byte 1 of the line' },
      { line: 2, text: 'a' },
    ]);
  });

  it('reports a line over the cap without keeping it, and takes one of exactly the cap', async () => {
    const text = `${'x'.repeat(10)}\n${'y'.repeat(11)}\nz\n${'x'.repeat(10)}\r\n${'y'.repeat(11)}\r\n`;
    const expected = [
      { line: 1, text: 'x'.repeat(10) },
      { line: 2, reason: '11 bytes long, over the cap of 10', text: null },
      { line: 3, text: 'z' },
      { line: 4, text: 'x'.repeat(10) },
      { line: 5, reason: '11 bytes long, over the cap of 10', text: null },
    ];
    for (const sizes of [[], [1], [4], [11], [12]]) {
      expect(await linesOf(text, { sizes, maxLineBytes: 10 })).toEqual(expected);
    }
  });

  it('holds no more than the cap and a few chunks while it skips a huge line', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    const chunks = 200;
    let largestBytes = 0;
    async function* hugeLine(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('before\n');
      for (let index = 0; index < chunks; index += 1) {
        yield chunk;
        largestBytes = Math.max(largestBytes, process.memoryUsage().arrayBuffers);
      }
      yield Buffer.from('\nafter\n');
    }
    const startBytes = process.memoryUsage().arrayBuffers;
    const lines: InputRecord[] = [];
    for await (const page of readLines(hugeLine(), { maxLineBytes: 4 * chunk.length })) lines.push(...page);
    expect(lines).toEqual([
      { line: 1, text: 'before' },
      {
        line: 2,
        reason: `${chunks * chunk.length} bytes long, over the cap of 4194304`,
        text: null,
      },
      { line: 3, text: 'after' },
    ]);
    expect(largestBytes - startBytes).toBeLessThan(32 * chunk.length);
  });

  const lineBytes = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 12 }).map((text) => Buffer.from(text)),
    fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom('', '\r', ' ', '\ufeff', '\u2028', 'é', '😀', '{}').map((text) => Buffer.from(text)),
  );
  const document = fc
    .array(fc.tuple(lineBytes, fc.constantFrom('\n', '\r\n', '\n\n')))
    .map((lines) => Buffer.concat(lines.flatMap(([bytes, end]) => [bytes, Buffer.from(end)])));
  const chunkSizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
  const cap = fc.constantFrom(3, 8, 1_000);

  it('gives the same lines however the bytes are cut into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(document, chunkSizes, cap, async (bytes, sizes, maxLineBytes) => {
        expect(await linesOf(bytes, { sizes, maxLineBytes })).toEqual(await linesOf(bytes, { maxLineBytes }));
      }),
    );
  });

  it('agrees with a splitter that decodes every line by itself', async () => {
    await fc.assert(
      fc.asyncProperty(document, cap, async (bytes, maxLineBytes) => {
        expect(await linesOf(bytes, { maxLineBytes })).toMatchObject(plainLines(bytes, maxLineBytes));
      }),
    );
  });

  it('agrees with it over regions of many kilobytes, ASCII and not', async () => {
    const rows = Array.from({ length: 3_000 }, (_, index) =>
      index % 700 === 0 ? `Zeile ${index}: größer` : `line ${index} ${'x'.repeat(index % 97)}`,
    );
    const bytes = Buffer.from(rows.join('\n'));
    expect(bytes.length).toBeGreaterThan(128 * 1024);
    expect(await linesOf(bytes)).toEqual(rows.map((text, index) => ({ line: index + 1, text })));
    expect(await linesOf(bytes, { sizes: [50_000] })).toEqual(
      rows.map((text, index) => ({ line: index + 1, text })),
    );
  });
});

/** The same rules in the plainest way. */
function plainLines(bytes: Buffer, maxLineBytes: number): object[] {
  const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const lines: object[] = [];
  const parts = bytes.toString('latin1').split('\n');
  for (const [index, part] of parts.entries()) {
    const line = index + 1;
    const content = Buffer.from(part.endsWith('\r') ? part.slice(0, -1) : part, 'latin1');
    if (content.length > maxLineBytes) {
      lines.push({ line, text: null });
      continue;
    }
    try {
      const text = strict.decode(content);
      const unmarked = line === 1 ? text.replace(/^\ufeff/, '') : text;
      if (/[^ \t\r]/.test(unmarked)) lines.push({ line, text: unmarked });
    } catch {
      lines.push({ line, reason: expect.stringContaining('not valid UTF-8') });
    }
  }
  return lines;
}
