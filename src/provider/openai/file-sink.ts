/** A file that is fetched: whole or not at all, durable once it has its name. */
import { once } from 'node:events';
import { createWriteStream, type WriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { localFileError } from './local-file.js';

/** One name for every attempt: what a killed process left is written over. */
const UNFINISHED = '.unfinished';

export class FileSink {
  readonly stream: WriteStream;
  readonly #path: string;
  readonly #unfinished: string;
  #isNamed = false;

  private constructor(path: string) {
    this.#path = path;
    this.#unfinished = path + UNFINISHED;
    this.stream = createWriteStream(this.#unfinished);
    // Heard by whoever asks for it: `throwFailure`.
    this.stream.on('error', () => undefined);
  }

  /** @throws LlmBatchError BATCH_FILE */
  static async open(path: string): Promise<FileSink> {
    const sink = new FileSink(path);
    await once(sink.stream, 'open').catch(() => sink.throwFailure());
    return sink;
  }

  /** @throws LlmBatchError BATCH_FILE where it was the file that broke the download off */
  throwFailure(): void {
    const { errored } = this.stream;
    if (errored !== null) throw localFileError('written', this.#path, errored);
  }

  /** Once the stream has finished. @throws LlmBatchError BATCH_FILE */
  async commit(): Promise<void> {
    await this.#closed();
    this.throwFailure();
    try {
      await sync(this.#unfinished, 'r+');
      await rename(this.#unfinished, this.#path);
      this.#isNamed = true;
      await sync(dirname(this.#path), 'r');
    } catch (error) {
      throw localFileError('written', this.#path, error);
    }
  }

  /** Removes what there is of it; nothing after `commit`. */
  async discard(): Promise<void> {
    if (this.#isNamed) return;
    this.stream.destroy();
    await this.#closed();
    await rm(this.#unfinished, { force: true });
  }

  #closed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.stream.closed) resolve();
      else this.stream.once('close', resolve);
    });
  }
}

async function sync(path: string, flags: 'r' | 'r+'): Promise<void> {
  const handle = await open(path, flags);
  try {
    await handle.sync();
  } catch (error) {
    // Not every platform can flush a folder; a disk that fails must still be heard.
    if (flags === 'r+' || (error as NodeJS.ErrnoException).code === 'EIO') throw error;
  } finally {
    await handle.close();
  }
}
