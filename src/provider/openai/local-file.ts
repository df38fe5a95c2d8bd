/** A file of this machine's own, on its way to a server or from it, that cannot be read or written. */
import { EXIT_CODES, LlmBatchError } from '../../core/errors.js';

/** An exception, as it is no server's doing: whoever asks again would find the same. */
export function localFileError(verb: 'read' | 'written', path: string, error: unknown): LlmBatchError {
  const message = error instanceof Error ? error.message : String(error);
  return new LlmBatchError(`The file ${path} of a batch cannot be ${verb}: ${message}.`, {
    code: 'BATCH_FILE',
    exitCode: EXIT_CODES.store,
    hint: 'See that there is room, and that the folder may be read and written; then resume.',
    cause: error,
  });
}
