/** An append-only file with one JSON line per call, for those who want to know what came when. */
import { once } from 'node:events';
import { createWriteStream, type WriteStream } from 'node:fs';
import { usageError } from '../core/errors.js';

/** One line. The bearer key itself is never in it. */
export interface CallLine {
  /** Wall time of arrival, milliseconds since the epoch. */
  readonly timeMs: number;
  /** The same moment on the monotonic clock. */
  readonly monotonicMs: number;
  readonly call: number;
  /** Fingerprint of the document; null when the request could not be read. */
  readonly document: string | null;
  /** Null when the reply has no status line. */
  readonly status: number | null;
  /** The directive, fault or outage that was met; null for none. */
  readonly behaviour: string | null;
  readonly accepted: boolean;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly tokensCharged: number;
  readonly keyHash: string;
}

export class CallLog {
  #failure: Error | null = null;

  private constructor(private readonly stream: WriteStream) {}

  /**
   * @param onFailure told once when the file can no longer be written; logging then stops
   * @throws LlmBatchError `SIMULATOR_LOG` when the file cannot be opened
   */
  static async open(path: string, onFailure: (message: string) => void): Promise<CallLog> {
    const stream = createWriteStream(path, { flags: 'a' });
    await once(stream, 'open').catch((error: Error) => {
      throw usageError(
        'SIMULATOR_LOG',
        `The simulator's log file ${path} cannot be opened: ${error.message}.`,
        'Name a file in a folder that exists and may be written.',
      );
    });
    const log = new CallLog(stream);
    stream.on('error', (error) => {
      if (log.#failure === null) onFailure(`The log file ${path} cannot be written: ${error.message}.`);
      log.#failure = error;
    });
    return log;
  }

  append(line: CallLine): void {
    if (this.#failure === null) this.stream.write(`${JSON.stringify(line)}\n`);
  }

  /** Resolves when every line is with the operating system, or lost to a failure told before. */
  async close(): Promise<void> {
    if (this.stream.closed) return;
    const closed = once(this.stream, 'close');
    this.stream.end();
    await closed.catch(() => undefined);
  }
}
