/** Small whole files of the kinds that a prompt can hold, made here so that their bytes are known. */
import { deflateSync } from 'node:zlib';

/** One colour, 8 bits a channel. */
export function samplePng(width: number, height: number, shade = 0): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const row = Buffer.alloc(1 + width * 3, shade);
  row[0] = 0;
  const pixels = Buffer.concat(Array.from({ length: height }, () => row));
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    pngChunk('IHDR', header),
    pngChunk('IDAT', deflateSync(pixels)),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(data.length, 0);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(checksum(body), body.length + 4);
  return chunk;
}

/** CRC-32 as PNG's specification gives it. */
function checksum(bytes: Buffer): number {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return (value ^ 0xffffffff) >>> 0;
}

/**
 * A JPEG as far as its frame header and end; every byte value is in it.
 * @param cameraBytes of camera data before the frame, up to 65,000
 */
export function sampleJpeg(width: number, height: number, cameraBytes = 256): Buffer {
  const camera = Buffer.alloc(cameraBytes + 4);
  camera.writeUInt16BE(0xffe1, 0);
  camera.writeUInt16BE(cameraBytes + 2, 2);
  for (let index = 0; index < cameraBytes; index += 1) camera[index + 4] = index % 256;
  const frame = Buffer.from([0xff, 0xc0, 0, 11, 8, 0, 0, 0, 0, 1, 1, 0x11, 0]);
  frame.writeUInt16BE(height, 5);
  frame.writeUInt16BE(width, 7);
  return Buffer.concat([Buffer.from([0xff, 0xd8]), camera, frame, Buffer.from([0xff, 0xd9])]);
}

export function samplePdf(): Buffer {
  return Buffer.from(
    '%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n' +
      '2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n' +
      '3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>\nendobj\ntrailer\n<</Root 1 0 R>>\n%%EOF\n',
    'latin1',
  );
}

export function sampleGif(width: number, height: number): Buffer {
  const head = Buffer.from('GIF89a\0\0\0\0\0\0\0;', 'latin1');
  head.writeUInt16LE(width, 6);
  head.writeUInt16LE(height, 8);
  return head;
}

/** Lossless, without its pixels. */
export function sampleWebp(width: number, height: number): Buffer {
  const head = Buffer.alloc(32);
  head.write('RIFF', 0, 'latin1');
  head.writeUInt32LE(24, 4);
  head.write('WEBPVP8L', 8, 'latin1');
  head[20] = 0x2f;
  head.writeUInt32LE(((width - 1) | ((height - 1) << 14)) >>> 0, 21);
  return head;
}
