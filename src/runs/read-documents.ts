/** The one way to an input, for those that store its documents and those that only look at them. */
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import type { TellEvent } from '../core/event.js';
import type { InputFormat } from '../core/input-format.js';
import type { StopRequests } from '../core/stop-requests.js';
import { type DocumentPage, readDocuments } from '../documents/read.js';
import type { RequestSettings } from '../documents/request.js';
import { openInput } from '../input/input.js';
import type { InputDescription } from '../input/input-description.js';
import type { PriceBook } from '../pricing/price-book.js';
import type { RunSettings } from './run-settings.js';

/** What the user named, and how it is to be read. */
export interface WantedInput {
  /** Paths, a pattern or `-`. */
  readonly names: readonly string[];
  /** What relative paths start from. */
  readonly folder: string;
  readonly stdin: Readable;
  /** A file that holds what standard input held, to be read in its place; null: none. */
  readonly spool: string | null;
  /** Null: by the ending of the name. */
  readonly format: InputFormat | null;
  /** Of a database. */
  readonly query: string | null;
  readonly maxLineBytes: number;
}

export interface ReadDocumentsOptions {
  readonly request: RequestSettings;
  readonly signal: AbortSignal;
  readonly tell: TellEvent;
  /** Before the first page. */
  readonly onOpened?: (input: InputDescription) => Promise<void>;
}

/** One pass over an input, for those that only look. */
export interface InputReading {
  readonly pages: AsyncIterable<DocumentPage>;
  /** Of the run that would send the input, with the prices of now. */
  readonly settings: RunSettings;
  readonly prices: PriceBook;
  readonly nowMs: number;
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal;
}

/** @throws LlmBatchError (exit 2) as `openInput` and `readDocuments` do */
export async function* readPages(
  input: WantedInput,
  { request, signal, tell, onOpened }: ReadDocumentsOptions,
): AsyncGenerator<DocumentPage> {
  const { names, folder, spool, format, query, maxLineBytes } = input;
  const stdin = spool === null ? input.stdin : createReadStream(spool);
  const opened = await openInput(names, { cwd: folder, stdin, format, query, signal });
  try {
    await onOpened?.(opened.description);
    tell({ type: 'input_opened', totalBytes: opened.totalBytes });
    let documents = 0;
    for await (const page of readDocuments(opened, { settings: request, maxLineBytes })) {
      yield page;
      documents += page.documents.length;
      tell({ type: 'importing', documents, bytesRead: page.bytesRead });
    }
  } finally {
    await opened.close();
  }
}

/**
 * Ends the reading of an input when the user asks to stop.
 * @param read must not outlive it
 */
export async function untilStopped<Value>(
  { names, stdin }: WantedInput,
  stop: StopRequests,
  read: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const stopping = new AbortController();
  const stopListening = stop.subscribe(() => {
    stopping.abort();
    // A read that waits for whoever writes there would not notice.
    if (names.includes('-')) stdin.destroy();
  });
  try {
    return await read(stopping.signal);
  } finally {
    stopListening();
  }
}
