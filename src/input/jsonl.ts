/** JSON Lines, each of which is a document as it stands; a JSON list, or documents over several lines, are told apart. */
import type { ByteInput } from './bytes.js';
import { isJsonOverLines, readJsonRecords } from './json-records.js';
import { readLines } from './lines.js';
import type { RecordSource } from './source.js';

/** A first line that is longer is none of a document over several lines. */
const MOST_HEAD_BYTES = 64 * 1024;

export function openJsonl(input: ByteInput): RecordSource {
  return {
    name: input.name,
    description: { format: 'jsonl' },
    totalBytes: input.totalBytes,
    bytesRead: input.bytesRead,
    async *records(options) {
      const chunks = input.chunks[Symbol.asyncIterator]();
      const head = await readHead(chunks);
      const all = behind(head, chunks);
      yield* isJsonOverLines(textOf(head)) ? readJsonRecords(all, options) : readLines(all, options);
    },
    close: input.close,
  };
}

/** A copy of what comes first, at least to the end of the first line that holds anything. */
async function readHead(chunks: AsyncIterator<Uint8Array>): Promise<Buffer> {
  let head = Buffer.alloc(0);
  while (head.length < MOST_HEAD_BYTES && !textOf(head).trimStart().includes('\n')) {
    const next = await chunks.next();
    if (next.done) break;
    head = Buffer.concat([head, next.value]);
  }
  return head;
}

/** Without a byte order mark. */
function textOf(head: Buffer): string {
  return head.toString('utf8', 0, MOST_HEAD_BYTES).replace(/^\ufeff/, '');
}

async function* behind(head: Buffer, chunks: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    if (head.length > 0) yield head;
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
  } finally {
    await chunks.return?.();
  }
}
