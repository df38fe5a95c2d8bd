/** Errors of writing an output: what happened, to which path, and where the answers still are. */
import { EXIT_CODES, LlmBatchError, usageError } from '../core/errors.js';

/** What the operating system says, in words a user can act on. */
const REASONS: Readonly<Record<string, { readonly reason: string; readonly hint: string }>> = {
  ENOSPC: { reason: 'the disk is full', hint: 'free some space' },
  EDQUOT: { reason: 'the disk quota is used up', hint: 'free some space' },
  EFBIG: { reason: 'the file is larger than the file system allows', hint: 'choose another place' },
  EIO: { reason: 'the disk reported an error', hint: 'check the disk' },
  EROFS: { reason: 'the file system is read-only', hint: 'choose another place' },
  EACCES: { reason: 'permission denied', hint: 'change the permissions or choose another place' },
  EPERM: { reason: 'the system does not permit it', hint: 'change the permissions or choose another place' },
  EBADF: {
    reason: 'it is not open, or not for writing',
    hint: 'open it in the shell, e.g. 3> answers.jsonl',
  },
  EMFILE: { reason: 'too many files are open', hint: 'raise the limit (`ulimit -n`)' },
  ENOENT: { reason: 'its folder does not exist', hint: 'make the folder or choose another place' },
  ENOTDIR: { reason: 'a part of its path is not a folder', hint: 'choose another place' },
  EISDIR: { reason: 'it is a folder', hint: 'name a file' },
  ENAMETOOLONG: { reason: 'its name is too long', hint: 'choose a shorter name' },
  ELOOP: { reason: 'its symbolic links form a circle', hint: 'choose another place' },
};

/** Mistakes in the path itself, as against a disk that fails. */
const PATH_MISTAKES = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG', 'ELOOP', 'EBADF']);

export function errorCodeOf(error: unknown): string {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return typeof code === 'string' ? code : '';
}

/**
 * OUTPUT_PATH (exit 2) for a path that cannot be an output, OUTPUT_WRITE (exit 5) for a disk that fails.
 * An error of ours passes through as it is.
 */
export function outputError(path: string, error: unknown): LlmBatchError {
  if (error instanceof LlmBatchError) return error;
  const code = errorCodeOf(error);
  const known = REASONS[code];
  const reason = known?.reason ?? (error instanceof Error ? error.message : String(error));
  const mistake = PATH_MISTAKES.has(code);
  return new LlmBatchError(`Cannot write ${path}: ${reason}.`, {
    code: mistake ? 'OUTPUT_PATH' : 'OUTPUT_WRITE',
    exitCode: mistake ? EXIT_CODES.usage : EXIT_CODES.store,
    ...(known === undefined ? {} : { hint: known.hint }),
    cause: error,
  });
}

/** OUTPUT_EXISTS (exit 2): the path holds something that this run did not write. */
export function outputExistsError(path: string): LlmBatchError {
  return usageError('OUTPUT_EXISTS', `${path} exists and was not written by this run.`);
}
