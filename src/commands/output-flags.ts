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

export const NO_WAIT_FLAG = [
  '--no-wait',
  'with --remote: hand in what there is, fetch what is done, and leave; `llm-batch resume` fetches the rest',
] as const;

/** @throws LlmBatchError NO_WAIT_ALONE (exit 2): calls are waited for */
export function refuseNoWaitAlone(waits: boolean, isRemote: boolean): void {
  if (waits || isRemote) return;
  throw usageError('NO_WAIT_ALONE', '--no-wait is for remote batches; a call is waited for.', 'add --remote');
}

/** @throws LlmBatchError ONLY_NEW_ALONE (exit 2): a file always has every answer */
export function refuseOnlyNewAlone(options: { readonly output?: string; readonly onlyNew?: boolean }): void {
  if (!options.onlyNew || isStandardOutput(options.output ?? '')) return;
  throw usageError(
    'ONLY_NEW_ALONE',
    '--only-new is for standard output; a file has every answer.',
    'add -o -',
  );
}
