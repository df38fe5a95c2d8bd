/** `.env` of the working folder: variables for what the environment does not set. Read only where it is trusted. */
import { join } from 'node:path';
import { readSmallFile } from './small-file.js';
import type { TrustedFact } from './trust-record.js';

export interface DotEnv {
  readonly path: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly fact: TrustedFact;
}

/** Null where there is none, and where `.env` is something else: it is a name that many programs use. */
export function readDotEnv(folder: string): DotEnv | null {
  const path = join(folder, '.env');
  const text = textOf(path);
  if (text === null) return null;
  return { path, variables: parseDotEnv(text), fact: { kind: 'env', name: path, detail: text } };
}

function textOf(path: string): string | null {
  try {
    return readSmallFile(path);
  } catch {
    return null;
  }
}

/** Lines of `NAME=value`: `export` before it, quotes around the value and comments are understood. */
function parseDotEnv(text: string): Record<string, string> {
  const variables: Record<string, string> = Object.create(null);
  for (const line of text.split(/\r?\n/)) {
    const [, name, value = ''] = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)$/.exec(line) ?? [];
    if (name === undefined) continue;
    const [, , quoted] = /^(["'])(.*?)\1/.exec(value) ?? [];
    variables[name] = quoted ?? withoutComment(value);
  }
  return variables;
}

function withoutComment(value: string): string {
  const comment = /(?:^|\s)#/.exec(value);
  return (comment === null ? value : value.slice(0, comment.index)).trim();
}
