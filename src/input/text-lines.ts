/** Plain text: each line is a document with the single field `text`. */
import type { ByteInput } from './bytes.js';
import { readLines } from './lines.js';
import type { InputRecord, RecordOptions, RecordSource } from './source.js';

export function openTextLines(input: ByteInput): RecordSource {
  return {
    name: input.name,
    description: { format: 'text', files: false },
    totalBytes: input.totalBytes,
    bytesRead: input.bytesRead,
    records: (options) => documentsOf(input, options),
    close: input.close,
  };
}

async function* documentsOf(input: ByteInput, options: RecordOptions): AsyncGenerator<InputRecord[]> {
  for await (const page of readLines(input.chunks, options)) {
    yield page.map((line) =>
      'reason' in line ? line : { line: line.line, text: `{"text":${JSON.stringify(line.text)}}` },
    );
  }
}
