/** The lines that an import left out (`--skip-bad-lines`), each with its number and what is wrong with it. */
import type { AtomicFileOptions } from './atomic-file.js';
import { oneLine } from './result-line.js';
import { type OutputSink, openFileSink } from './sink.js';

export interface RejectedLine {
  /** 1-based line of the input. */
  readonly line: number;
  readonly reason: string;
  /** The line as far as it could be read; null when it was too long to keep. */
  readonly text: string | null;
  /** The file's path where each document is a file of its own. */
  readonly place?: string;
}

/** `{"line", "reason", "text"}`, with `path` behind `line` for a file; without its newline. */
export function rejectLine(rejected: RejectedLine): string {
  const { line, place, reason, text } = rejected;
  return oneLine(JSON.stringify({ line, path: place, reason, text }));
}

/**
 * A rejects file that is made at the first rejected line, so that a clean input leaves none; it appears when `finish`
 * resolves. All methods throw as `openFileSink` does.
 */
export class RejectsWriter {
  readonly #path: string;
  readonly #options: AtomicFileOptions;
  #sink: OutputSink | null = null;
  #count = 0;

  constructor(path: string, options: AtomicFileOptions) {
    this.#path = path;
    this.#options = options;
  }

  get count(): number {
    return this.#count;
  }

  async write(rejected: RejectedLine): Promise<void> {
    this.#sink ??= await openFileSink(this.#path, this.#options);
    this.#count += 1;
    await this.#sink.write(`${rejectLine(rejected)}\n`);
  }

  /** @returns the path of the file, null when no line was rejected */
  async finish(): Promise<string | null> {
    await this.#sink?.finish();
    return this.#sink === null ? null : this.#path;
  }

  async abort(): Promise<void> {
    await this.#sink?.abort();
  }
}
