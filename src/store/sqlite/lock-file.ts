/** The file beside a store whose lock says that a process drains it. */
import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { isBusy, translateError } from './errors.js';

export function lockPathOf(storePath: string): string {
  return `${storePath}.lock`;
}

/** Whether a living process holds the lock: a reader cannot come in while its exclusive transaction is open. */
export function isLocked(lockPath: string): boolean {
  if (!existsSync(lockPath)) return false;
  try {
    const probe = new Database(lockPath, { readonly: true, timeout: 0 });
    try {
      probe.prepare('SELECT count(*) FROM sqlite_schema').get();
      return false;
    } finally {
      probe.close();
    }
  } catch (error) {
    if (isBusy(error)) return true;
    throw translateError(error, lockPath);
  }
}
