/** `.env`: variables for what the environment does not set. That of the working folder is read only where it is trusted. */
import { join } from 'node:path';
import { parse } from 'dotenv';
import { readSmallFile } from './small-file.js';
import type { TrustedFact } from './trust-record.js';

export interface DotEnv {
  readonly path: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly fact: TrustedFact;
}

/** Null where there is none, and where `.env` is something else: it is a name that many programs use. */
export function readDotEnv(folder: string): DotEnv | null {
  try {
    return readNamedDotEnv(join(folder, '.env'));
  } catch {
    return null;
  }
}

/**
 * One that the user has named; null where there is none.
 * @throws LlmBatchError CONFIG_UNREADABLE (exit 2)
 */
export function readNamedDotEnv(path: string): DotEnv | null {
  const text = readSmallFile(path);
  if (text === null) return null;
  return { path, variables: parse(text), fact: { kind: 'env', name: path, detail: text } };
}
