/** JSON Lines: each line is a document as it stands. */
import type { ByteInput } from './bytes.js';
import { readLines } from './lines.js';
import type { RecordSource } from './source.js';

export function openJsonl(input: ByteInput): RecordSource {
  return {
    name: input.name,
    description: { format: 'jsonl' },
    totalBytes: input.totalBytes,
    bytesRead: input.bytesRead,
    records: (options) => readLines(input.chunks, options),
    close: input.close,
  };
}
