/** Where results go: one interface over a file that must be complete and a stream that may lose its reader. */
import type { Writable } from 'node:stream';
import { writeData } from '../core/terminal-gate.js';
import { type AtomicFile, type AtomicFileOptions, openAtomicFile } from './atomic-file.js';
import { endsInCutLine } from './cut-line.js';
import { gzipped } from './gzip-file.js';
import { errorCodeOf, outputError } from './output-error.js';

export interface OutputSink {
  /** True once the reader has gone (`| head`): what is written after that is dropped, and no error. */
  readonly readerGone: boolean;
  /** Collects text; resolves when there is room for more. */
  write(text: string): Promise<void> | undefined;
  /** Writes bytes behind what was collected. They are not kept: the array may be used again afterwards. */
  writeBytes(bytes: Uint8Array): Promise<void>;
  /** Writes out what was collected and, for a file, makes it durable and gives it its name. */
  finish(): Promise<void>;
  /** Drops what was not written; a file leaves nothing behind. */
  abort(): Promise<void>;
}

/** Large enough that writing costs nothing beside formatting, small enough to leave memory flat. */
const CHUNK_CHARACTERS = 256 * 1024;

/**
 * A file, compressed where its name ends in `.gz`.
 * @throws LlmBatchError as `openAtomicFile` does; so do `write` and `finish`
 */
export async function openFileSink(path: string, options: AtomicFileOptions): Promise<OutputSink> {
  const file = await openAtomicFile(path, options);
  return new FileSink(/\.gz$/i.test(path) ? gzipped(file) : file);
}

/** Collects text until there is enough of it to be sent. */
abstract class CollectingSink {
  protected pending = '';

  protected abstract send(content: string | Uint8Array): Promise<void>;

  write(text: string): Promise<void> | undefined {
    this.pending += text;
    return this.pending.length < CHUNK_CHARACTERS ? undefined : this.flush();
  }

  /** Writes out what was collected, for answers that are streamed as they are committed. */
  async flush(): Promise<void> {
    const text = this.pending;
    this.pending = '';
    if (text !== '') await this.send(text);
  }

  async writeBytes(bytes: Uint8Array): Promise<void> {
    await this.flush();
    await this.send(bytes);
  }

  async finish(): Promise<void> {
    await this.flush();
  }

  async abort(): Promise<void> {
    this.pending = '';
  }
}

class FileSink extends CollectingSink implements OutputSink {
  readonly readerGone = false;
  readonly #file: AtomicFile;

  constructor(file: AtomicFile) {
    super();
    this.#file = file;
  }

  protected send(content: string | Uint8Array): Promise<void> {
    return this.#file.write(content);
  }

  override async finish(): Promise<void> {
    await super.finish();
    await this.#file.commit();
  }

  override async abort(): Promise<void> {
    await super.abort();
    await this.#file.abort();
  }
}

/**
 * A sink over a stream that is not ours to end, such as standard output. Text begins on a line of its own.
 * @param name for error messages, e.g. `standard output`
 * @throws LlmBatchError OUTPUT_WRITE (exit 5) from `write` and `finish`
 */
export function openStreamSink(stream: Writable, name: string): StreamSink {
  if (!guardedStreams.has(stream)) {
    guardedStreams.add(stream);
    stream.on('error', () => undefined);
  }
  return new StreamSink(stream, name);
}

/**
 * A failed write tells its own callback and then raises an `error` event that would end the process. The callback is
 * where it is dealt with, so the event needs a listener for as long as the stream lives.
 */
const guardedStreams = new WeakSet<Writable>();

const READER_GONE = new Set(['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_WRITE_AFTER_END']);

/** Whether a write failed because nobody reads there any more: a pipe that was closed, a terminal that was. */
export function isReaderGone(stream: Writable, error: Error): boolean {
  const code = errorCodeOf(error);
  return READER_GONE.has(code) || (code === 'EIO' && 'isTTY' in stream && stream.isTTY === true);
}

export class StreamSink extends CollectingSink implements OutputSink {
  readonly #stream: Writable;
  readonly #name: string;
  /** Comes before the first text. */
  #lead: '' | '\n';
  #readerGone = false;

  constructor(stream: Writable, name: string) {
    super();
    this.#stream = stream;
    this.#name = name;
    this.#lead = endsInCutLine(stream) ? '\n' : '';
  }

  get readerGone(): boolean {
    return this.#readerGone;
  }

  override write(text: string): Promise<void> | undefined {
    if (this.#readerGone) return undefined;
    const begun = this.#lead + text;
    this.#lead = '';
    return super.write(begun);
  }

  protected async send(content: string | Uint8Array): Promise<void> {
    if (this.#readerGone) return;
    const error = await new Promise<Error | null | undefined>((resolve) => {
      writeData(this.#stream, content, resolve);
    });
    if (!error) return;
    if (isReaderGone(this.#stream, error)) this.#readerGone = true;
    else throw outputError(this.#name, error);
  }
}
