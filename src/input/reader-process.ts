/**
 * The process that Parquet files and SQLite databases are read in, one input each. Both are programs of a kind (runs of a
 * thousand million values in five bytes, views that never end), and what reads them goes on, deaf to signals, until it is
 * done; a process can be ended at any moment, and takes what it filled of memory with it.
 */

import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { LlmBatchError } from '../core/errors.js';
import type { InputRecord, RecordOptions, RecordSource } from './source.js';

export interface ReaderRequest {
  readonly format: 'parquet' | 'sqlite';
  readonly path: string;
  readonly cwd: string;
  readonly query: string | null;
  /** Of this process; it ends when it takes more. */
  readonly mostMemoryBytes: number;
}

export type ToReader = ReaderRequest | { readonly next: RecordOptions };

export type FromReader =
  | { readonly opened: Pick<RecordSource, 'name' | 'description' | 'totalBytes'> }
  | { readonly page: readonly InputRecord[] | null; readonly bytesRead: number }
  | { readonly refused: Pick<LlmBatchError, 'message' | 'code' | 'exitCode' | 'hint' | 'facts'> }
  | { readonly failed: string };

interface Watch {
  readonly parentId: number;
  readonly mostMemoryBytes: number;
}

const WATCH_EVERY_MS = 50;

if (!isMainThread) watch(workerData as Watch);
else if (process.send !== undefined) serve();

/** A thread of its own, for the one that reads looks neither left nor right. */
function watch({ parentId, mostMemoryBytes }: Watch): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    Atomics.wait(pause, 0, 0, WATCH_EVERY_MS);
    const isTooMuch = process.memoryUsage.rss() > mostMemoryBytes;
    // Whoever asked has died, and this process has been given another parent.
    if (isTooMuch || process.ppid !== parentId) process.kill(process.pid, 'SIGKILL');
  }
}

function serve(): void {
  let source: RecordSource | null = null;
  let pages: AsyncIterator<readonly InputRecord[]> | null = null;

  const answer = async (message: ToReader): Promise<FromReader> => {
    if (!('next' in message)) {
      const watched: Watch = { parentId: process.ppid, mostMemoryBytes: message.mostMemoryBytes };
      const watcher = new Worker(new URL(import.meta.url), { workerData: watched });
      await new Promise((resolve) => watcher.once('online', resolve));
      source = await open(message);
      const { name, description, totalBytes } = source;
      return { opened: { name, description, totalBytes } };
    }
    if (source === null) throw new Error('no input is open');
    pages ??= source.records(message.next)[Symbol.asyncIterator]();
    const { done, value } = await pages.next();
    return { page: done ? null : value, bytesRead: source.bytesRead() };
  };

  process.on('message', (message: ToReader) => {
    answer(message)
      .catch((error: unknown): FromReader => {
        if (!(error instanceof LlmBatchError)) return { failed: String(error) };
        const { message: sentence, code, exitCode, hint, facts } = error;
        return { refused: { message: sentence, code, exitCode, hint, facts } };
      })
      .then((reply) => process.send?.(reply));
  });
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
}

async function open({ format, path, cwd, query }: ReaderRequest): Promise<RecordSource> {
  if (format === 'parquet') return (await import('./parquet.js')).openParquet(path, cwd);
  return (await import('./sqlite.js')).openSqlite(path, cwd, query);
}
