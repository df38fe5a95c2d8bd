/** Chunks of bytes on their way to rows. */
import type { InputRecord } from './source.js';

/** A copy of what comes first. @param isEnough asked before each further chunk */
export async function headOf(
  chunks: AsyncIterator<Uint8Array>,
  isEnough: (head: Buffer) => boolean,
): Promise<Buffer> {
  let head = Buffer.alloc(0);
  while (!isEnough(head)) {
    const next = await chunks.next();
    if (next.done) break;
    head = Buffer.concat([head, next.value]);
  }
  return head;
}

/** All of it again, when the head was looked at. */
export async function* behind(head: Buffer, chunks: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    if (head.length > 0) yield head;
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
  } finally {
    await chunks.return?.();
  }
}

/** Cuts chunks into rows, of which the last may begin in one and end in another. */
export interface Splitter {
  /** The rows that end in this chunk, which is overwritten afterwards. */
  push(chunk: Buffer): InputRecord[];
  /** What is left at the end. */
  end(): InputRecord[];
}

/** A page for each chunk in which a row ended. */
export async function* pagesOf(
  chunks: AsyncIterable<Uint8Array>,
  splitter: Splitter,
): AsyncGenerator<InputRecord[]> {
  for await (const { buffer, byteOffset, byteLength } of chunks) {
    const page = splitter.push(Buffer.from(buffer, byteOffset, byteLength));
    if (page.length > 0) yield page;
  }
  const page = splitter.end();
  if (page.length > 0) yield page;
}
