/** A file on its way to the server: `multipart/form-data` (RFC 7578) with its length told, streamed from the disk. */
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { localFileError } from './local-file.js';
import type { UploadBody } from './wire.js';

/** As the server keeps it; what it is called here is nobody's business. */
const FILE_NAME = 'batch.jsonl';
const PIECE_BYTES = 64 * 1024;

export class FileUpload implements UploadBody {
  readonly contentType: string;
  readonly bytes: number;
  readonly #path: string;
  readonly #fileBytes: number;
  readonly #head: Buffer;
  readonly #tail: Buffer;
  #failure: unknown;

  private constructor(path: string, fileBytes: number) {
    const boundary = `llm-batch-${randomUUID()}`;
    const field = (disposition: string): string =>
      `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n`;
    this.#path = path;
    this.#fileBytes = fileBytes;
    this.#head = Buffer.from(
      `${field('name="purpose"')}\r\nbatch\r\n${field(`name="file"; filename="${FILE_NAME}"`)}Content-Type: application/jsonl\r\n\r\n`,
    );
    this.#tail = Buffer.from(`\r\n--${boundary}--\r\n`);
    this.contentType = `multipart/form-data; boundary=${boundary}`;
    this.bytes = this.#head.length + fileBytes + this.#tail.length;
  }

  /** @throws LlmBatchError BATCH_FILE */
  static async open(path: string): Promise<FileUpload> {
    try {
      return new FileUpload(path, (await stat(path)).size);
    } catch (error) {
      throw localFileError('read', path, error);
    }
  }

  open(onProgress: () => void): Readable {
    return Readable.from(this.#pieces(onProgress), { objectMode: false, highWaterMark: PIECE_BYTES });
  }

  /** @throws LlmBatchError BATCH_FILE where it was the file that broke the upload off */
  throwFailure(): void {
    if (this.#failure !== undefined) throw localFileError('read', this.#path, this.#failure);
  }

  async *#pieces(onProgress: () => void): AsyncGenerator<Buffer> {
    yield this.#head;
    let bytes = 0;
    try {
      for await (const piece of createReadStream(this.#path, { highWaterMark: PIECE_BYTES })) {
        bytes += (piece as Buffer).length;
        if (bytes > this.#fileBytes) break;
        onProgress();
        yield piece as Buffer;
      }
      if (bytes !== this.#fileBytes) throw new Error('it changed while it was sent');
    } catch (error) {
      this.#failure = error;
      throw error;
    }
    yield this.#tail;
  }
}
