/**
 * What this user has trusted, or has used before, on this machine. It is kept in the user's own state folder, one
 * small file for each fact: no folder, store or document that came from elsewhere can write there, two processes
 * cannot undo what the other has noted, and deleting a file takes the trust back.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stateFolder } from './state-folder.js';

export interface TrustedFact {
  /** A settings file's contents, the server that a key is sent to, or a file or folder outside the working folder. */
  readonly kind: 'config' | 'env' | 'server' | 'path';
  /** The file, or the server's address. */
  readonly name: string;
  /** What of it is trusted: its contents, or the variable that holds the key. Only a hash of it is written. */
  readonly detail: string;
}

export class TrustRecord {
  /** Null where this user has no home. */
  readonly folder: string | null;

  constructor(environment: Readonly<Record<string, string | undefined>>) {
    const state = stateFolder(environment);
    this.folder = state === null ? null : join(state, 'llm-batch', 'trusted');
  }

  knows(fact: TrustedFact): boolean {
    return this.folder !== null && existsSync(join(this.folder, nameOf(fact)));
  }

  /** @returns false where it could not be noted: it will be asked for again */
  remember(fact: TrustedFact): boolean {
    if (this.folder === null) return false;
    if (this.knows(fact)) return true;
    try {
      mkdirSync(this.folder, { recursive: true, mode: 0o700 });
      writeFileSync(join(this.folder, nameOf(fact)), `${fact.kind} ${fact.name}\n`, { mode: 0o600 });
      return true;
    } catch {
      return false;
    }
  }
}

function nameOf({ kind, name, detail }: TrustedFact): string {
  return createHash('sha256')
    .update(JSON.stringify([kind, name, detail]))
    .digest('hex');
}
