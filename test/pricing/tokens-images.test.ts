import { describe, expect, it } from 'vitest';
import { sizeOfDataUrl } from '../../src/core/image-head.js';
import { imageTokens } from '../../src/pricing/image-tokens.js';
import { loadTokenCounter } from '../../src/pricing/tokens.js';

function dataUrl(type: string, bytes: Buffer): string {
  return `data:image/${type};base64,${bytes.toString('base64')}`;
}

function png(width: number, height: number): string {
  const head = Buffer.alloc(24);
  head.write('\x89PNG\r\n\x1a\n', 0, 'latin1');
  head.write('IHDR', 12, 'latin1');
  head.writeUInt32BE(width, 16);
  head.writeUInt32BE(height, 20);
  return dataUrl('png', head);
}

/** An application segment of `before` bytes, then the frame header. */
function jpeg(width: number, height: number, before: number): string {
  const camera = Buffer.alloc(before + 2);
  camera.writeUInt16BE(0xffe1, 0);
  camera.writeUInt16BE(before, 2);
  const frame = Buffer.alloc(20);
  frame.writeUInt16BE(0xffc2, 0);
  frame.writeUInt16BE(17, 2);
  frame[4] = 8;
  frame.writeUInt16BE(height, 5);
  frame.writeUInt16BE(width, 7);
  return dataUrl('jpeg', Buffer.concat([Buffer.from([0xff, 0xd8]), camera, frame]));
}

function webp(form: 'VP8 ' | 'VP8L' | 'VP8X', width: number, height: number): string {
  const head = Buffer.alloc(32);
  head.write('RIFF', 0, 'latin1');
  head.write('WEBP', 8, 'latin1');
  head.write(form, 12, 'latin1');
  if (form === 'VP8 ') {
    head.writeUInt16LE(width, 26);
    head.writeUInt16LE(height, 28);
  } else if (form === 'VP8L') {
    head[20] = 0x2f;
    head.writeUInt32LE(((width - 1) | ((height - 1) << 14)) >>> 0, 21);
  } else {
    head.writeUIntLE(width - 1, 24, 3);
    head.writeUIntLE(height - 1, 27, 3);
  }
  return dataUrl('webp', head);
}

function gif(width: number, height: number): string {
  const head = Buffer.alloc(12);
  head.write('GIF89a', 0, 'latin1');
  head.writeUInt16LE(width, 6);
  head.writeUInt16LE(height, 8);
  return dataUrl('gif', head);
}

describe('the size of an image in a data URL', () => {
  it.each([
    ['PNG', png(1_800, 2_400)],
    ['JPEG', jpeg(1_800, 2_400, 30_000)],
    ['GIF', gif(1_800, 2_400)],
    ['lossy WebP', webp('VP8 ', 1_800, 2_400)],
    ['lossless WebP', webp('VP8L', 1_800, 2_400)],
    ['extended WebP', webp('VP8X', 1_800, 2_400)],
  ])('is read from a %s', (_, url) => {
    expect(sizeOfDataUrl(url)).toEqual({ width: 1_800, height: 2_400 });
  });

  it.each([
    'https://example.com/cat.png',
    'data:image/png,notbase64',
    'data:image/png;base64,',
    'data:image/png;base64,AAAA',
    'data:image/jpeg;base64,/9j/',
    'data:',
    png(0, 10),
  ])('is unknown for %s', (url) => {
    expect(sizeOfDataUrl(url)).toBeNull();
  });
});

describe('the tokens of an image', () => {
  it.each([
    // The worked examples of the vision guide.
    ['gpt-4o', png(1_024, 1_024), 'high', 765],
    ['gpt-4o', png(2_048, 4_096), 'high', 1_105],
    ['gpt-4o', png(4_096, 8_192), 'low', 85],
    ['gpt-4.1-mini', png(1_024, 1_024), 'auto', Math.ceil(1_024 * 1.62)],
    ['gpt-4.1-mini', png(1_800, 2_400), 'auto', Math.ceil(1_452 * 1.62)],
    // The same shape needs the same patches at any size above the budget, whatever floating point makes of it.
    ['gpt-4.1-mini', png(1_200, 1_600), 'auto', Math.ceil(1_452 * 1.62)],
    // One tile for what fits one, per family.
    ['gpt-4o-mini', png(512, 512), 'auto', 2_833 + 5_667],
    ['gpt-5', png(512, 512), 'auto', 70 + 140],
    ['o3', png(512, 512), 'auto', 75 + 150],
    ['openai/gpt-4o', png(20, 20), 'high', 85 + 170],
    // Patches, at the budgets of newer models.
    ['o4-mini', png(320, 320), 'high', 172],
    ['gpt-5-nano', png(3_000, 3_000), 'low', Math.ceil(256 * 2.46)],
    ['gpt-5.4', png(3_200, 3_200), 'auto', 2_500],
    ['gpt-5.4', png(3_200, 3_200), 'original', 10_000],
    ['gpt-5.6-sol', png(6_400, 3_200), 'auto', 20_000],
  ] as const)('at %s follow its rule', (model, url, detail, tokens) => {
    expect(imageTokens(model, sizeOfDataUrl(url), detail)).toBe(tokens);
  });

  it.each([
    ['gpt-4o', 85 + 8 * 170],
    ['gpt-4.1-mini', Math.ceil(1_536 * 1.62)],
    ['gpt-6-sol', 10_000],
  ])('of unknown size are at %s the most that an image costs', (model, tokens) => {
    expect(imageTokens(model, null, 'auto')).toBe(tokens);
  });

  it('are counted with the request, and reported, without counting the data URL', async () => {
    const counter = await loadTokenCounter('gpt-4o');
    const request = (url: string) => ({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            { type: 'image_url', image_url: { url, detail: 'high' } },
          ],
        },
      ],
    });
    const text = counter.countRequest('chat', { messages: [{ role: 'user', content: 'What is it?' }] });
    expect(counter.countRequest('chat', request(png(1_024, 1_024)))).toEqual({
      tokens: text.tokens + 765,
      exact: false,
      images: 1,
      uncountedParts: 0,
    });
  });
});
