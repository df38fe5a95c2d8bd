/** Keeps standard input in a temporary file, for an import that has to read it twice. */
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { CommandContext } from '../app/context.js';
import { ImportInterrupted } from '../runs/import-input.js';

export interface SpooledInput {
  readonly path: string;
  remove(): Promise<void>;
}

/** @throws ImportInterrupted when `signal` aborts before its end */
export async function spoolStandardInput(
  context: CommandContext,
  signal: AbortSignal,
): Promise<SpooledInput> {
  const folder = await mkdtemp(join(tmpdir(), 'llm-batch-stdin-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const path = join(folder, 'stdin.jsonl');
  try {
    await pipeline(context.stdin, createWriteStream(path, { mode: 0o600 }));
    return { path, remove };
  } catch (error) {
    await remove();
    throw signal.aborted ? new ImportInterrupted() : error;
  }
}
