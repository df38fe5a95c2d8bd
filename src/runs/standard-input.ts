/**
 * Keeps standard input in a temporary file: its content says which run it is, and an import that goes on with a run reads
 * it twice.
 */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ImportInterrupted } from './import-input.js';

export interface SpooledInput {
  readonly path: string;
  /** In hexadecimal, of all of it. */
  readonly sha256: string;
  remove(): Promise<void>;
}

/** @throws ImportInterrupted when `signal` aborts before its end */
export async function spoolStandardInput(stdin: Readable, signal: AbortSignal): Promise<SpooledInput> {
  const folder = await mkdtemp(join(tmpdir(), 'llm-batch-stdin-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const path = join(folder, 'stdin.jsonl');
  try {
    const hash = createHash('sha256');
    const hashed = async function* (chunks: AsyncIterable<Uint8Array | string>) {
      for await (const chunk of chunks) {
        hash.update(chunk);
        yield chunk;
      }
    };
    await pipeline(stdin, hashed, createWriteStream(path, { mode: 0o600 }));
    return { path, sha256: hash.digest('hex'), remove };
  } catch (error) {
    await remove();
    throw signal.aborted ? new ImportInterrupted() : error;
  }
}
