/** JSON Lines with answers: each object as it was, byte for byte, with fields added at its end. */
import { parseExact } from '../core/exact-json.js';
import type { TaskRow } from '../core/result-row.js';
import { ANSWER_COLUMNS, freeNames, type ResultColumn } from './result-columns.js';
import { linesOf } from './result-format.js';
import { costUsdJson, oneLine } from './result-line.js';
import { type RowWriter, textRows } from './row-writer.js';
import type { OutputSink } from './sink.js';

/**
 * A field of an answer has one name in all lines: one that no document has at its top.
 * @param pages all rows, looked at before the first is written
 */
export async function openJsonlJoin(
  sink: OutputSink,
  pages: AsyncIterable<readonly TaskRow[]>,
): Promise<RowWriter<TaskRow>> {
  const names = ANSWER_COLUMNS.map(({ name }) => name);
  const memberStarts = freeNames(names, await topFields(names, pages)).map((name) => `"${name}":`);
  return textRows(
    sink,
    linesOf((row: TaskRow) => {
      const members = ANSWER_COLUMNS.map((column, index) => memberStarts[index] + jsonOf(column, row));
      return oneLine(withMembers(row.body ?? '{}', members.join(',')));
    }),
  );
}

/** Those top-level fields of the documents that an added field could be called. */
async function topFields(
  names: readonly string[],
  pages: AsyncIterable<readonly TaskRow[]>,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  // A name that is nowhere in the text is no field; most documents are not parsed.
  const mayHave = new RegExp(`"(?:${names.join('|')})(?:_\\d+)?"|\\\\u`);
  for await (const page of pages) {
    for (const { body } of page) {
      if (body === null || !mayHave.test(body)) continue;
      for (const name of Object.keys(parseExact(body) as object)) found.add(name);
    }
  }
  return found;
}

function withMembers(object: string, members: string): string {
  const open = object.trimEnd().slice(0, -1).trimEnd();
  return `${open}${open.endsWith('{') ? '' : ','}${members}}`;
}

function jsonOf({ name, kind, read }: ResultColumn, row: TaskRow): string {
  // An output that is an object stays one.
  if (name === 'output') return row.result?.outputJson ?? 'null';
  const value = read(row);
  if (value === null) return 'null';
  return kind === 'money' ? costUsdJson(Number(value)) : JSON.stringify(value);
}
