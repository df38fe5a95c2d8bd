/** The lines of a file that a server gave: only `\n` ends one, and no line is held that is longer than any answer. */
import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import type { FileLine } from '../../provider/remote-batches.js';

const LONGEST_LINE_BYTES = 64 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Blank lines and such as are too long are left out. */
export async function* linesOfFile(path: string): AsyncGenerator<FileLine> {
  let parts: Buffer[] = [];
  let bytes = 0;
  const take = (): FileLine => {
    const whole = bytes > LONGEST_LINE_BYTES ? Buffer.alloc(0) : Buffer.concat(parts);
    parts = [];
    bytes = 0;
    return { text: whole.toString('utf8').trim(), isUtf8: isUtf8(whole) };
  };
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      parts.push(chunk.subarray(start, end));
      bytes += end - start;
      start = end + 1;
      const line = take();
      if (line.text !== '') yield line;
    }
    bytes += chunk.length - start;
    if (bytes > LONGEST_LINE_BYTES) parts = [];
    else parts.push(chunk.subarray(start));
  }
  const last = take();
  if (last.text !== '') yield last;
}
