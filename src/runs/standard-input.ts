/** Keeps standard input in a temporary file, for an import that has to read it twice. */
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ImportInterrupted } from './import-input.js';

export interface SpooledInput {
  readonly path: string;
  remove(): Promise<void>;
}

/** @throws ImportInterrupted when `signal` aborts before its end */
export async function spoolStandardInput(stdin: Readable, signal: AbortSignal): Promise<SpooledInput> {
  const folder = await mkdtemp(join(tmpdir(), 'llm-batch-stdin-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const path = join(folder, 'stdin.jsonl');
  try {
    await pipeline(stdin, createWriteStream(path, { mode: 0o600 }));
    return { path, remove };
  } catch (error) {
    await remove();
    throw signal.aborted ? new ImportInterrupted() : error;
  }
}
