/** What the first bytes of a file say of it: which kind of image it is or whether a PDF, and an image's size. */

export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

export type MediaType = 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp' | 'application/pdf';

/** Enough to tell the kind, and the size of all but most JPEGs. */
export const SHORT_HEAD_BYTES = 4 * 1024;
/** A JPEG's size may come after pages of camera data and a preview; whatever is further in is not looked for. */
export const LONG_HEAD_BYTES = 256 * 1024;

const PNG_START = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** By the signature that each format's specification asks for at the very start; null for anything else. */
export function mediaTypeOf(head: Buffer): MediaType | null {
  if (head.subarray(0, PNG_START.length).equals(PNG_START)) return 'image/png';
  if (head[0] === 0xff && head[1] === 0xd8 && head[2] === 0xff) return 'image/jpeg';
  const start = head.toString('latin1', 0, 12);
  if (/^GIF8[79]a/.test(start)) return 'image/gif';
  if (/^RIFF.{4}WEBP/s.test(start)) return 'image/webp';
  return start.startsWith('%PDF-') ? 'application/pdf' : null;
}

/** @returns the size in pixels of a PNG, JPEG, GIF or WebP; null where the head does not tell it */
export function sizeOfImage(head: Buffer): ImageSize | null {
  const size = sizeOfPng(head) ?? sizeOfGif(head) ?? sizeOfWebp(head) ?? sizeOfJpeg(head);
  return size !== null && size.width > 0 && size.height > 0 ? size : null;
}

/** As `sizeOfImage`, of an image in a data URL in base64; null for any other URL. */
export function sizeOfDataUrl(url: string): ImageSize | null {
  const comma = url.indexOf(',');
  if (!/^data:/i.test(url) || comma < 0 || !/;base64$/i.test(url.slice(0, comma))) return null;
  const start = comma + 1;
  const head = (bytes: number) => Buffer.from(url.slice(start, start + Math.ceil((bytes * 4) / 3)), 'base64');
  return sizeOfImage(head(SHORT_HEAD_BYTES)) ?? sizeOfImage(head(LONG_HEAD_BYTES));
}

function sizeOfPng(head: Buffer): ImageSize | null {
  if (head.length < 24 || head.toString('latin1', 1, 4) !== 'PNG') return null;
  return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
}

function sizeOfGif(head: Buffer): ImageSize | null {
  if (head.length < 10 || head.toString('latin1', 0, 4) !== 'GIF8') return null;
  return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) };
}

/** Three forms: lossy, lossless, and extended (with transparency, animation or camera data). */
function sizeOfWebp(head: Buffer): ImageSize | null {
  if (head.length < 30 || head.toString('latin1', 8, 12) !== 'WEBP') return null;
  switch (head.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff };
    case 'VP8L': {
      const bits = head.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case 'VP8X':
      return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 };
    default:
      return null;
  }
}

/** Walks the segments to the frame header (SOF0-SOF15 but for the three of that range that are none). */
function sizeOfJpeg(head: Buffer): ImageSize | null {
  if (head.length < 4 || head.readUInt16BE(0) !== 0xffd8) return null;
  let position = 2;
  while (position + 9 <= head.length) {
    if (head[position] !== 0xff) return null;
    const marker = head[position + 1] ?? 0;
    if (marker === 0xff) {
      position += 1;
      continue;
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (isFrame) return { width: head.readUInt16BE(position + 7), height: head.readUInt16BE(position + 5) };
    position += 2 + head.readUInt16BE(position + 2);
  }
  return null;
}
