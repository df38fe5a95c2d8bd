/** What is told of runs that are not there, or are there already. */
import { EXIT_CODES, LlmBatchError, usageError } from '../core/errors.js';

export function runMissing(runId: number): LlmBatchError {
  return new LlmBatchError(`The store has no run with the number ${runId}.`, {
    code: 'RUN_MISSING',
    exitCode: EXIT_CODES.store,
    hint: 'It may have been deleted meanwhile; `llm-batch status` shows what is there.',
  });
}

export function runNameTaken(name: string): LlmBatchError {
  return usageError('RUN_NAME_TAKEN', `The store already has a run called "${name}".`, { run: name });
}
