import { wayOutOf } from '../../src/commands/error-words.js';
import { LlmBatchError } from '../../src/core/errors.js';

/** An error as a terminal tells it. @throws Error when nothing was refused */
export async function refusal(
  work: Promise<unknown>,
): Promise<{ readonly code: string; readonly exitCode: number; readonly wayOut: string | undefined }> {
  const error: unknown = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof LlmBatchError)) throw new Error(`not refused: ${String(error)}`);
  return { code: error.code, exitCode: error.exitCode, wayOut: wayOutOf(error) };
}
