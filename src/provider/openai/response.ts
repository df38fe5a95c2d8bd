/** A response that has been read whole, in the shape that the SDK expects of `fetch`. */
import { readErrorObject } from './error-body.js';
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

  *entries(): IterableIterator<[string, string]> {
    for (const name of Object.keys(this.#record)) yield [name, this.get(name) ?? ''];
  }
}

/**
 * Only what the SDK touches, because the built-in `Response` with its streams costs more than the call.
 * `content` is the body as it came, bytes that are not UTF-8 replaced by U+FFFD; `text()` and `json()` are for the SDK and show the body of an error in
 * the one shape that it keeps.
 */
export class ReceivedResponse {
  readonly ok: boolean;
  readonly body = null;

  constructor(
    readonly url: string,
    readonly status: number,
    readonly headers: ReceivedHeaders,
    readonly content: string,
    readonly isUtf8: boolean,
  ) {
    this.ok = status >= 200 && status < 300;
  }

  async text(): Promise<string> {
    return this.ok ? this.content : JSON.stringify({ error: readErrorObject(this.content) });
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text());
  }
}
