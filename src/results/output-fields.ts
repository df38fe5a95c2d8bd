/** Outputs that are objects, spread over columns of their own (`--csv-columns`). */
import { usageError } from '../core/errors.js';
import { type ExactJson, parseExact, stringifyExact } from '../core/exact-json.js';
import type { TaskRow } from '../core/result-row.js';

/** Answers without a schema may name each field differently; a table of that many columns is of no use. */
const MOST_FIELDS = 1_000;

/** Gathers the names of the fields that outputs have, in the order in which they first come. */
export class OutputFields {
  readonly #names = new Set<string>();

  /** @throws LlmBatchError OUTPUT_FIELDS (exit 2) for more fields than a table can have */
  add(row: TaskRow): void {
    const output = objectOf(row);
    if (output === null) return;
    for (const name of Object.keys(output)) this.#names.add(name);
    if (this.#names.size <= MOST_FIELDS) return;
    throw usageError('OUTPUT_FIELDS', `The outputs have more than ${MOST_FIELDS} different fields.`);
  }

  get names(): readonly string[] {
    return [...this.#names];
  }
}

/** The cells of a row's output under the fields' columns; null where the output is no object. */
export function spreadOutput(row: TaskRow, fields: readonly string[]): (string | null)[] | null {
  const output = objectOf(row);
  return output === null
    ? null
    : fields.map((name) => (Object.hasOwn(output, name) ? cellOf(output[name] as ExactJson) : null));
}

function objectOf(row: TaskRow): Readonly<Record<string, ExactJson>> | null {
  const json = row.result?.outputJson;
  if (json === undefined || !json.startsWith('{')) return null;
  return parseExact(json) as Record<string, ExactJson>;
}

/** Text as it is, everything else as JSON. */
function cellOf(value: ExactJson): string | null {
  if (value === null) return null;
  return typeof value === 'string' ? value : stringifyExact(value);
}
