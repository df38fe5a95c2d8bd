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
import { EXIT_CODES, LlmBatchError } from '../core/errors.js';
import { ImportInterrupted } from './import-input.js';

export interface SpooledInput {
  readonly path: string;
  /** In hexadecimal, of all of it. */
  readonly sha256: string;
  remove(): Promise<void>;
}

/**
 * @throws ImportInterrupted when `signal` aborts before its end
 * @throws LlmBatchError STDIN_NOT_KEPT (exit 2) where the temporary folder does not take it
 */
export async function spoolStandardInput(stdin: Readable, signal: AbortSignal): Promise<SpooledInput> {
  const folder = await mkdtemp(join(tmpdir(), 'llm-batch-stdin-')).catch((error: unknown) => {
    throw notKept(error);
  });
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
    if (signal.aborted) throw new ImportInterrupted();
    throw isOfFolder(error) ? notKept(error) : error;
  }
}

/** Standard input is read, the file in the folder is not. */
function isOfFolder(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && error.syscall !== 'read';
}

function notKept(error: unknown): LlmBatchError {
  const reason = error instanceof Error ? error.message : String(error);
  const problem = `Standard input could not be kept in the folder for temporary files, ${tmpdir()}: ${reason}`;
  return new LlmBatchError(problem, {
    ...{ code: 'STDIN_NOT_KEPT', exitCode: EXIT_CODES.usage, cause: error },
    hint: 'make room there, name another folder in TMPDIR, or write the documents to a file and name that',
  });
}
