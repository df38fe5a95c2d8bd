/** Keeps standard input in a temporary file, for an import that has to read it twice. */
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { CommandContext } from './context.js';

export interface SpooledInput {
  readonly path: string;
  remove(): Promise<void>;
}

export async function spoolStandardInput(context: CommandContext): Promise<SpooledInput> {
  const folder = await mkdtemp(join(tmpdir(), 'llm-batch-stdin-'));
  const path = join(folder, 'stdin.jsonl');
  await pipeline(context.stdin, createWriteStream(path, { mode: 0o600 }));
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}
