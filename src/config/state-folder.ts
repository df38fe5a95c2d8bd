/** Where a program keeps what is this user's alone and of no folder or project. */
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** As the XDG Base Directory Specification has it, which wants relative paths to be ignored. Null where this user has no home. */
export function stateFolder(environment: Readonly<Record<string, string | undefined>>): string | null {
  const named = environment['XDG_STATE_HOME'] ?? '';
  if (isAbsolute(named)) return named;
  try {
    return join(environment['HOME'] || homedir(), '.local', 'state');
  } catch {
    // A user without an entry in the system's list, as in some containers.
    return null;
  }
}
