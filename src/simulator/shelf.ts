/**
 * Files that were uploaded or made by batches. They lie on the disk, since a batch's may be as large as memory is; each is
 * unlinked as soon as it is open, so that none is left behind however the process ends.
 */
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface ShelvedFile {
  readonly id: string;
  readonly name: string;
  readonly purpose: string;
  readonly createdSeconds: number;
  bytes: number;
  readonly handle: FileHandle;
}

const CHUNK_BYTES = 256 * 1024;
const LINE_FEED = 0x0a;

export class Shelf {
  readonly #files = new Map<string, ShelvedFile>();
  /** Every handle that is open, files that were never put on the shelf included. */
  readonly #handles = new Set<FileHandle>();
  #count = 0;
  #closed = false;

  /** A new and empty file, on the shelf only once it is `put` there. */
  async create(name: string, purpose: string, createdSeconds: number): Promise<ShelvedFile> {
    const folder = await mkdtemp(join(tmpdir(), 'llm-batch-simulator-'));
    const handle = await open(join(folder, 'file'), 'wx+');
    await rm(folder, { recursive: true });
    if (this.#closed) {
      await handle.close();
      throw new Error('the simulator is closed');
    }
    this.#handles.add(handle);
    this.#count += 1;
    return { id: `file-simulated-${this.#count}`, name, purpose, createdSeconds, bytes: 0, handle };
  }

  async append(file: ShelvedFile, chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.length; ) {
      const { bytesWritten } = await file.handle.write(chunk, at, chunk.length - at, file.bytes);
      at += bytesWritten;
      file.bytes += bytesWritten;
    }
  }

  put(file: ShelvedFile): void {
    this.#files.set(file.id, file);
  }

  get(id: string): ShelvedFile | undefined {
    return this.#files.get(id);
  }

  /** Newest first. */
  list(): ShelvedFile[] {
    return [...this.#files.values()].reverse();
  }

  /** Of the shelf or not. */
  async remove(file: ShelvedFile): Promise<void> {
    this.#files.delete(file.id);
    this.#handles.delete(file.handle);
    await file.handle.close();
  }

  async *chunks(file: ShelvedFile, endBytes = file.bytes): AsyncGenerator<Buffer> {
    for (let at = 0; at < endBytes; ) {
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, endBytes - at));
      const { bytesRead } = await file.handle.read(buffer, 0, buffer.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  /** Without their ends; an empty line at the end of the file is none. */
  async *lines(file: ShelvedFile): AsyncGenerator<string> {
    let rest: Buffer[] = [];
    for await (const chunk of this.chunks(file)) {
      let start = 0;
      for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
        yield Buffer.concat([...rest, chunk.subarray(start, end)]).toString();
        rest = [];
        start = end + 1;
      }
      if (start < chunk.length) rest.push(chunk.subarray(start));
    }
    if (rest.length > 0) yield Buffer.concat(rest).toString();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#handles].map((handle) => handle.close().catch(() => undefined)));
    this.#handles.clear();
    this.#files.clear();
  }
}
