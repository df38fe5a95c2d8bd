/** A response that has been read whole. */
import type { HeaderReader } from './headers.js';

/** As undici parses them: names in lower case, a list where a header came several times. */
export type HeaderRecord = Readonly<Record<string, string | string[] | undefined>>;

export class ReceivedHeaders implements HeaderReader {
  readonly #record: HeaderRecord;

  constructor(record: HeaderRecord) {
    this.#record = record;
  }

  get(name: string): string | null {
    const value = this.#record[name];
    if (value === undefined) return null;
    return typeof value === 'string' ? value : value.join(', ');
  }
}

export class ReceivedResponse {
  constructor(
    readonly status: number,
    readonly headers: ReceivedHeaders,
    /** The body as it came, bytes that are not UTF-8 replaced by U+FFFD. */
    readonly content: string,
    readonly isUtf8: boolean,
  ) {}

  get ok(): boolean {
    return this.status >= 200 && this.status < 300;
  }
}
