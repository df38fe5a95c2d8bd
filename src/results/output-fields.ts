/** Outputs that are objects, spread over columns of their own (`--csv-columns`). */
import { usageError } from '../core/errors.js';
import { type ExactJson, parseExact, stringifyExact } from '../core/exact-json.js';
import type { TaskRow } from '../core/result-row.js';

/** Answers without a schema may name each field differently; a table of that many columns is of no use. */
const MOST_FIELDS = 1_000;

/**
 * The names of the fields that outputs have, in the order in which they first come.
 * @param pages all of them: a table's header comes first
 * @throws LlmBatchError OUTPUT_FIELDS (exit 2) for more fields than a table can have
 */
export async function outputFieldsOf(pages: AsyncIterable<readonly TaskRow[]>): Promise<readonly string[]> {
  const names = new Set<string>();
  for await (const page of pages) {
    for (const row of page) {
      for (const name of Object.keys(objectOf(row) ?? {})) names.add(name);
      if (names.size <= MOST_FIELDS) continue;
      throw usageError('OUTPUT_FIELDS', `The outputs have more than ${MOST_FIELDS} different fields.`);
    }
  }
  return [...names];
}

/** The cells of a row's output under the fields' columns; null where the output is no object. */
export function spreadOutput(row: TaskRow, fields: readonly string[]): (string | null)[] | null {
  const output = objectOf(row);
  return output && fields.map((name) => fieldCell(output, name));
}

function objectOf(row: TaskRow): Readonly<Record<string, ExactJson>> | null {
  const json = row.result?.outputJson;
  if (json === undefined || !json.startsWith('{')) return null;
  return parseExact(json) as Record<string, ExactJson>;
}

/** The cell of a field: text as it is, everything else as JSON; null where there is no such field. */
export function fieldCell(fields: Readonly<Record<string, ExactJson>>, name: string): string | null {
  const value = Object.hasOwn(fields, name) ? (fields[name] ?? null) : null;
  return typeof value === 'string' || value === null ? value : stringifyExact(value);
}
