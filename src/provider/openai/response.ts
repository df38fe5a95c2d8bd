/** A response that has been read whole. */
import type { HeaderReader } from './headers.js';

/** As undici parses them: names in lower case, a list where a header came several times. */
export type HeaderRecord = Readonly<Record<string, string | string[] | undefined>>;

export interface ReceivedResponse {
  readonly status: number;
  readonly headers: HeaderReader;
  /** The body as it came, bytes that are not UTF-8 replaced by U+FFFD. */
  readonly content: string;
  /** False where there were such bytes. */
  readonly isUtf8: boolean;
}

export function isAnswered(status: number): boolean {
  return status >= 200 && status < 300;
}

export function readerOf(record: HeaderRecord): HeaderReader {
  return {
    get(name) {
      const value = record[name] ?? null;
      return Array.isArray(value) ? value.join(', ') : value;
    },
  };
}
