/** The file that a batch is handed in as: written line by line, whole only once it is closed. */
import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';

export class ShardFile {
  readonly path: string;
  readonly #handle: FileHandle;
  readonly #hash: Hash = createHash('sha256');

  private constructor(path: string, handle: FileHandle) {
    this.path = path;
    this.#handle = handle;
  }

  /** An empty file that only its owner reads, in the place of any that is there: it would be a dead process's. */
  static async create(path: string): Promise<ShardFile> {
    await rm(path, { force: true });
    return new ShardFile(path, await open(path, 'wx', 0o600));
  }

  async write(text: string): Promise<void> {
    this.#hash.update(text);
    await this.#handle.appendFile(text);
  }

  /** Brings it to the disk. @returns its SHA-256 in hex */
  async close(): Promise<string> {
    await this.#handle.sync();
    await this.#handle.close();
    return this.#hash.digest('hex');
  }

  async discard(): Promise<void> {
    await this.#handle.close();
    await rm(this.path, { force: true });
  }
}
