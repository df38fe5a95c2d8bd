/** The columns of tables, whatever file they are in: each is a field of the documents. */
import { usageError } from '../core/errors.js';
import { showName } from '../core/field.js';

/** `{"id":`, `,"text":`, … */
export function memberStarts(names: readonly string[]): string[] {
  return names.map((name, index) => `${index === 0 ? '{' : ','}${JSON.stringify(name)}:`);
}

/**
 * Columns become fields, so each needs a name of its own.
 * @param told the sentence up to what is repeated, e.g. `The header of x.csv names`
 * @throws LlmBatchError INPUT_HEADER (exit 2)
 */
export function refuseRepeated(names: readonly string[], told: string, example = ''): void {
  const repeated = names.filter((name, index) => names.indexOf(name) !== index);
  if (repeated.length === 0) return;
  throw usageError(
    'INPUT_HEADER',
    `${told} more than one column ${[...new Set(repeated)].map(showName).join(', ')}.`,
    `Give every column a name of its own${example === '' ? '.' : `: ${example}`}`,
  );
}
