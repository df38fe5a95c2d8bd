/** JSON Lines, each of which is a document as it stands; a JSON list, or documents over several lines, are told apart. */
import type { ByteInput } from './bytes.js';
import { behind, headOf } from './chunks.js';
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
      // At least to the end of the first line that holds anything.
      const isEnough = (start: Buffer): boolean =>
        start.length >= MOST_HEAD_BYTES || textOf(start).trimStart().includes('\n');
      const head = await headOf(chunks, isEnough);
      const all = behind(head, chunks);
      yield* isJsonOverLines(textOf(head)) ? readJsonRecords(all, options) : readLines(all, options);
    },
    close: input.close,
  };
}

/** Without a byte order mark. */
function textOf(head: Buffer): string {
  return head.toString('utf8', 0, MOST_HEAD_BYTES).replace(/^\ufeff/, '');
}
