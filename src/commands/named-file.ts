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
    const { code: cause = '', message } = error as NodeJS.ErrnoException;
    const refusal = (problem: string, hint: string) => usageError(code, `${problem}.`, hint);
    if (['ENOENT', 'ENOTDIR'].includes(cause))
      throw refusal(`There is no ${what} ${path}`, 'Check the path.');
    if (cause === 'EISDIR') throw refusal(`The ${what} ${path} is a folder`, 'Name a file inside it.');
    if (['EACCES', 'EPERM'].includes(cause))
      throw refusal(`The ${what} ${path} may not be read by this user`, 'Change its permissions.');
    throw refusal(`The ${what} ${path} cannot be read: ${message}`, 'Check the path.');
  }
}
