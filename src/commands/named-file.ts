/** Small files that a flag names: a prompt, a schema. */
import { readFile } from 'node:fs/promises';
import { usageError } from '../core/errors.js';

/**
 * @param what the file in a word: `schema`, `prompt file`
 * @param code of the error
 * @throws LlmBatchError (exit 2) when it is missing or cannot be read
 */
export async function readNamedFile(path: string, what: string, code: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code: cause, message } = error as NodeJS.ErrnoException;
    switch (cause) {
      case 'ENOENT':
      case 'ENOTDIR':
        throw usageError(code, `There is no ${what} ${path}.`, 'Check the path.');
      case 'EISDIR':
        throw usageError(code, `The ${what} ${path} is a folder.`, 'Name a file inside it.');
      case 'EACCES':
      case 'EPERM':
        throw usageError(
          code,
          `The ${what} ${path} may not be read by this user.`,
          'Change its permissions.',
        );
      default:
        throw usageError(code, `The ${what} ${path} cannot be read: ${message}.`, 'Check the path.');
    }
  }
}
