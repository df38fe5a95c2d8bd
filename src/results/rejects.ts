/** The lines that an import left out (`--skip-bad-lines`), each with its number and what is wrong with it. */
import type { BadLine } from '../input/bad-line.js';
import type { AtomicFileOptions } from './atomic-file.js';
import { oneLine } from './result-line.js';
import { type OutputSink, openFileSink } from './sink.js';

/** `{"line", "reason", "text"}`, with `path` behind `line` for a file; without its newline. */
function rejectLine(rejected: BadLine): string {
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

  async write(rejected: BadLine): Promise<void> {
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
