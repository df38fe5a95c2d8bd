/** Reads a settings file that anybody may have put there: never waits for a pipe, never reads a device. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { usageError } from '../core/errors.js';

/** More than any settings. */
const MOST_BYTES = 1024 * 1024;
const NO_WAIT = constants.O_NONBLOCK ?? 0;

/**
 * @returns null where there is no such file
 * @throws LlmBatchError CONFIG_UNREADABLE (exit 2)
 */
export function readSmallFile(path: string): string | null {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | NO_WAIT);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw unreadable(path, (error as Error).message);
  }
  try {
    const found = fstatSync(file);
    if (!found.isFile()) throw unreadable(path, 'it is not an ordinary file');
    if (found.size > MOST_BYTES) throw unreadable(path, 'it is larger than 1 MiB');
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

function unreadable(path: string, reason: string): Error {
  return usageError(
    'CONFIG_UNREADABLE',
    `${path} cannot be read: ${reason}.`,
    'It may hold settings for this folder: change its permissions, or move it away.',
  );
}
