/** The lines of a file that a server gave, of which none is held that is longer than any answer. */
import { createReadStream } from 'node:fs';
import { readLines } from '../../input/lines.js';
import type { FileLine } from '../../provider/remote-batches.js';

const LONGEST_LINE_BYTES = 64 * 1024 * 1024;

/** Blank lines and such as are too long are left out. */
export async function* linesOfFile(path: string): AsyncGenerator<FileLine> {
  for await (const page of readLines(createReadStream(path), { maxLineBytes: LONGEST_LINE_BYTES })) {
    for (const line of page) {
      if (line.text !== null) yield { text: line.text.trim(), isUtf8: !('reason' in line) };
    }
  }
}
