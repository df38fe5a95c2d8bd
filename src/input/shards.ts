/** Several files of one format and shape that are one input: their rows follow each other, in the order of the files. */
import { isDeepStrictEqual } from 'node:util';
import { usageError } from '../core/errors.js';
import type { InputDescription } from './input-description.js';
import type { InputRecord, RecordOptions, RecordSource } from './source.js';

/**
 * Lines are counted on from file to file; a bad one tells its own.
 * @param name of all of them together
 * @param paths as messages call them; at least one
 * @param totalBytes of all; null where that is not known
 * @param open is given each path once, the first at once and the others when their turn has come
 * @throws LlmBatchError as `open`; while records are read, INPUT_SHAPES (exit 2) for a file that is not like the first
 */
export async function openShards(
  name: string,
  paths: readonly string[],
  totalBytes: number | null,
  open: (path: string) => Promise<RecordSource>,
): Promise<RecordSource> {
  const [firstPath = '', ...otherPaths] = paths;
  const first = await open(firstPath);
  let current = first;
  let bytesBefore = 0;
  async function* records(options: RecordOptions): AsyncGenerator<readonly InputRecord[]> {
    let linesBefore = 0;
    for (const path of paths) {
      if (path !== firstPath) {
        await current.close();
        bytesBefore += current.bytesRead();
        current = await open(path);
        if (!isDeepStrictEqual(shapeOf(current.description), shapeOf(first.description))) {
          throw usageError(
            'INPUT_SHAPES',
            `${path} has other columns than ${firstPath}, so they are not one input.`,
            'Run each by itself, or give both the same columns in the same order.',
          );
        }
      }
      let lastLine = 0;
      for await (const page of current.records(options)) {
        lastLine = page.at(-1)?.line ?? lastLine;
        const before = linesBefore;
        yield page.map((record) => ({
          ...record,
          line: record.line + before,
          place: `${path}:${record.line}`,
        }));
      }
      linesBefore += lastLine;
    }
  }
  return {
    name,
    description: first.description,
    totalBytes,
    bytesRead: () => bytesBefore + current.bytesRead(),
    records: otherPaths.length === 0 ? (options) => first.records(options) : records,
    close: () => current.close(),
  };
}

/** Files may be written in other ways and yet hold the same columns. */
function shapeOf(description: InputDescription): unknown {
  switch (description.format) {
    case 'csv':
    case 'tsv':
      return description.columns;
    default:
      return description;
  }
}
