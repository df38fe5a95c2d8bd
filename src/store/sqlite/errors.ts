/** SQLite's and the file system's errors become what a user can act on, in this one place. */
import { EXIT_CODES, LlmBatchError } from '../../core/errors.js';

/** The code of an error from better-sqlite3 (`SQLITE_FULL`) or from `node:fs` (`EACCES`); empty for others. */
function codeOf(error: unknown): string {
  const code = error instanceof Error ? (error as Error & { code?: unknown }).code : undefined;
  return typeof code === 'string' ? code : '';
}

/** Another connection holds the lock just now; the whole transaction may be tried again. */
export function isBusy(error: unknown): boolean {
  const code = codeOf(error);
  return code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_PROTOCOL');
}

interface Translation {
  readonly code: string;
  readonly message: (path: string) => string;
  /** Where it is the same for everybody. */
  readonly hint?: string;
}

const FULL: Translation = {
  code: 'STORE_FULL',
  message: (path) => `The disk is full: ${path} cannot grow.`,
  hint: 'Free some space, then `llm-batch resume`; what was committed is safe.',
};
const CORRUPT: Translation = {
  code: 'STORE_CORRUPT',
  message: (path) => `${path} is damaged, or is not an SQLite database.`,
};
const READ_ONLY: Translation = {
  code: 'STORE_READ_ONLY',
  message: (path) =>
    `${path} cannot be written: the file, its folder or the disk is read-only for this user.`,
};
const CANNOT_OPEN: Translation = {
  code: 'STORE_CANNOT_OPEN',
  message: (path) => `${path} cannot be opened.`,
};
const INPUT_OUTPUT: Translation = {
  code: 'STORE_IO',
  message: (path) => `The disk reported an error while reading or writing ${path}.`,
  hint: 'Check the disk, then `llm-batch resume`: the last commit may or may not be on it.',
};
const BUSY: Translation = {
  code: 'STORE_BUSY',
  message: (path) => `${path} is locked by another program, and stayed locked.`,
  hint: 'Close what holds it (a backup, an sqlite3 shell with an open transaction), then `llm-batch resume`.',
};

/** By prefix: extended result codes (`SQLITE_IOERR_FSYNC`) mean what their family means. */
const TRANSLATIONS: readonly (readonly [string, Translation])[] = [
  ['SQLITE_FULL', FULL],
  ['ENOSPC', FULL],
  ['EDQUOT', FULL],
  ['SQLITE_CORRUPT', CORRUPT],
  ['SQLITE_NOTADB', CORRUPT],
  ['ROW_DAMAGED', CORRUPT],
  ['SQLITE_READONLY', READ_ONLY],
  ['SQLITE_PERM', READ_ONLY],
  ['SQLITE_AUTH', READ_ONLY],
  ['EACCES', READ_ONLY],
  ['EPERM', READ_ONLY],
  ['EROFS', READ_ONLY],
  ['SQLITE_CANTOPEN', CANNOT_OPEN],
  ['ENOENT', CANNOT_OPEN],
  ['ENOTDIR', CANNOT_OPEN],
  ['EISDIR', CANNOT_OPEN],
  ['SQLITE_IOERR', INPUT_OUTPUT],
  ['EIO', INPUT_OUTPUT],
  ['SQLITE_BUSY', BUSY],
  ['SQLITE_PROTOCOL', BUSY],
];

/** What is neither the user's nor the machine's doing (a broken constraint, a bug) is returned as it is. */
export function translateError(error: unknown, path: string): unknown {
  if (error instanceof LlmBatchError) return error;
  const code = codeOf(error);
  const found = TRANSLATIONS.find(([prefix]) => code.startsWith(prefix));
  if (found === undefined) return error;
  const [, translation] = found;
  return new LlmBatchError(translation.message(path), {
    code: translation.code,
    exitCode: EXIT_CODES.store,
    facts: { path },
    ...(translation.hint === undefined ? {} : { hint: translation.hint }),
    cause: error,
  });
}
