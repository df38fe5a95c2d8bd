/**
 * The process in which a Parquet file or a SQLite database is read, one input per process. Both formats can hold as much
 * work as a program (a run of a thousand million values in five bytes, a view that never ends), and their readers hear no
 * signal until they are done. A process can be killed at any moment, and its memory goes with it.
 */

import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { LlmBatchError } from '../core/errors.js';
import type { InputRecord, RecordOptions, RecordSource } from './source.js';

export interface ReaderRequest {
  readonly format: 'parquet' | 'sqlite';
  readonly path: string;
  readonly cwd: string;
  readonly query: string | null;
  /** The process ends itself when it takes more. */
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

/** Runs in a thread of its own, since the reading thread hears nothing while it works. */
function watch({ parentId, mostMemoryBytes }: Watch): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    Atomics.wait(pause, 0, 0, WATCH_EVERY_MS);
    const isTooMuch = process.memoryUsage.rss() > mostMemoryBytes;
    // Another parent means that the one who asked has died.
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
