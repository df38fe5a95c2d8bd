/** The flags that say where answers go, for `run` and `resume`. */
import { usageError } from '../core/errors.js';
import { isStandardOutput } from '../results/output-paths.js';

export const OUTPUT_FLAG = [
  '-o, --output <file>',
  'results file, in the format of its ending (.jsonl, .csv, .tsv, .parquet, and .gz behind it), or - for standard output: every answer, what is stored first',
] as const;

export const ONLY_NEW_FLAG = [
  '--only-new',
  'with -o -: leave out the answers that are stored already',
] as const;

/** @throws LlmBatchError ONLY_NEW_ALONE (exit 2): a file always has every answer */
export function refuseOnlyNewAlone(options: { readonly output?: string; readonly onlyNew?: boolean }): void {
  if (!options.onlyNew || isStandardOutput(options.output ?? '')) return;
  throw usageError(
    'ONLY_NEW_ALONE',
    '--only-new is for standard output; a file has every answer.',
    'add -o -',
  );
}
