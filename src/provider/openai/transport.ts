/**
 * The way to the server, over one undici pool. It keeps a fixed number of connections, reads every body whole until
 * the caller cuts it off (so that one deadline covers headers and body), or hands it on where it is a file, refuses
 * bodies over a limit, and follows no redirect: neither key nor prompt go anywhere but to the configured origin.
 */
import { isUtf8 } from 'node:buffer';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import {
  brotliDecompress,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  gunzip,
  inflate,
  inflateRaw,
} from 'node:zlib';
import type { Dispatcher } from 'undici';
import type { BodyRoom, RoomHolder } from './body-room.js';
import { createDispatcher, type DispatcherOptions } from './dispatcher.js';
import { type HeaderRecord, isAnswered, type ReceivedResponse, readerOf } from './response.js';

export interface TransportOptions extends DispatcherOptions {
  /** Of one body, after decompression. */
  readonly maxResponseBytes: number;
  /** Shared by all transports of a run. */
  readonly bodyRoom: BodyRoom;
}

/** A request but for its body. */
export interface RequestDraft {
  readonly method: string;
  readonly url: URL;
  /** Names and values in turn; a `content-length` where the body is a stream. */
  readonly headers: readonly string[];
}

/** Where the body of a response with status 2xx goes, unpacked, as it comes; the response then has none. */
export interface BodySink {
  readonly stream: Writable;
  /** Called for each piece that it is given. */
  readonly onProgress: () => void;
}

/** A request that is on its way or waits for a connection. */
export interface OpenRequest {
  /** Rejects with a `TransportError` only. */
  readonly response: Promise<ReceivedResponse>;
  /** There is a connection, and the request has been or is about to be written to it. */
  readonly hasLeft: boolean;
  /** Ends it, as `ABORTED`. Nothing for one that has ended. */
  cut(): void;
}

export interface Transport {
  send(draft: RequestDraft, body: string | Readable | null, sink: BodySink | null): OpenRequest;
  /** Cuts every open call and closes the connections. */
  close(): Promise<void>;
}

/**
 * Why no whole response arrived. `code` is undici's or Node's (`ECONNRESET`, `UND_ERR_SOCKET`, …) or one of
 * ours: `ABORTED`, `RESPONSE_TOO_LARGE`, `BAD_CONTENT_ENCODING`, `FOREIGN_ORIGIN`, `SINK_FAILED`.
 */
export class TransportError extends Error {
  readonly code: string;
  /** The words of the error underneath. May hold anything; redact before use. */
  readonly detail: string;
  /** No connection was there to send the request over, so the server has seen nothing of it. */
  readonly isUnsent: boolean;

  constructor(code: string, detail = '', isUnsent = false) {
    super('The transport failed.');
    this.name = 'TransportError';
    this.code = code;
    this.detail = detail;
    this.isUnsent = isUnsent;
  }
}

export function createTransport(options: TransportOptions): Transport {
  const { origin } = options.baseUrl;
  const dispatcher = createDispatcher(options);
  return {
    send({ url, method, headers }, body, sink) {
      const exchange = new Exchange(options, sink);
      if (url.origin !== origin) exchange.cut(new TransportError('FOREIGN_ORIGIN', url.origin));
      else {
        const path = url.pathname + url.search;
        dispatcher.dispatch({ origin, path, method, headers: headers as string[], body }, exchange);
      }
      return exchange;
    },
    close: () => dispatcher.destroy(),
  };
}

/** One request and its response, told by undici. */
class Exchange implements Dispatcher.DispatchHandler, OpenRequest, RoomHolder {
  readonly response: Promise<ReceivedResponse>;
  hasLeft = false;
  receivedBytes = 0;
  readonly #limits: TransportOptions;
  readonly #sink: BodySink | null;
  #resolve!: (response: ReceivedResponse) => void;
  #reject!: (error: TransportError) => void;
  #controller: Dispatcher.DispatchController | null = null;
  #status = 0;
  #headers: HeaderRecord = {};
  #chunks: Buffer[] = [];
  #settled = false;
  /** What takes the pieces of the body in the sink's stead or for it. */
  #intake: Writable | null = null;

  constructor(limits: TransportOptions, sink: BodySink | null) {
    this.#limits = limits;
    this.#sink = sink;
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // Cut off while it still waited for a connection: the caller has its answer, nothing may be sent.
    if (this.#settled) controller.abort(new TransportError('ABORTED'));
    else this.hasLeft = true;
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: HeaderRecord): void {
    // Interim responses (1xx) come through here too; the final one overwrites them.
    this.#status = status;
    this.#headers = headers;
    const sink = this.#sink?.stream;
    if (sink !== undefined && isAnswered(status)) {
      this.#intake = this.#openIntake(sink, String(headers['content-encoding'] ?? 'identity'));
      return;
    }
    if (Number(headers['content-length']) > this.#limits.maxResponseBytes) this.cutForRoom();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // Parts may still come after the call was cut off.
    if (this.#settled) return;
    if (this.#intake !== null) {
      this.#sink?.onProgress();
      if (this.#intake.write(chunk)) return;
      controller.pause();
      this.#intake.once('drain', () => controller.resume());
      return;
    }
    this.receivedBytes += chunk.length;
    this.#chunks.push(chunk);
    if (this.receivedBytes > this.#limits.maxResponseBytes) this.cutForRoom();
    else this.#limits.bodyRoom.take(this, chunk.length);
  }

  cutForRoom(): void {
    this.cut(new TransportError('RESPONSE_TOO_LARGE'));
  }

  onResponseEnd(): void {
    if (this.#settled) return;
    if (this.#intake !== null) {
      this.#sink?.stream.once('finish', () => this.#finish(Buffer.alloc(0)));
      this.#intake.end();
      return;
    }
    const [first] = this.#chunks;
    const bytes = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
    const encoding = this.#headers['content-encoding'];
    if (encoding === undefined || encoding === 'identity' || bytes.length === 0) {
      this.#finish(bytes);
      return;
    }
    const unpack = async (): Promise<Buffer> =>
      this.#settled ? bytes : decompress(bytes, String(encoding), this.#limits.maxResponseBytes);
    this.#limits.bodyRoom.unpack(unpack).then(
      (plain) => this.#finish(plain),
      (error: TransportError) => this.#fail(error),
    );
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    // Undici hands out the controller when it has a connection and is about to write to it.
    this.#fail(toTransportError(error, this.#controller === null));
  }

  /** @returns null where the body is not to be had */
  #openIntake(sink: Writable, encoding: string): Writable | null {
    // What is wrong with the sink its owner knows best.
    sink.on('error', () => this.cut(new TransportError('SINK_FAILED')));
    if (encoding === 'identity') return sink;
    const unpacker = UNPACKERS[encoding.trim().toLowerCase() as keyof typeof UNPACKERS]?.();
    if (unpacker === undefined) {
      this.cut(new TransportError('BAD_CONTENT_ENCODING', encoding));
      return null;
    }
    unpacker.on('error', (error) => this.cut(new TransportError('BAD_CONTENT_ENCODING', String(error))));
    unpacker.pipe(sink);
    return unpacker;
  }

  #finish(bytes: Buffer): void {
    if (this.#settled) return;
    this.#leave();
    const headers = readerOf(this.#headers);
    this.#resolve({ status: this.#status, headers, content: decodeUtf8(bytes), isUtf8: isUtf8(bytes) });
  }

  cut(reason = new TransportError('ABORTED')): void {
    this.#fail(reason);
    this.#controller?.abort(reason);
  }

  #fail(reason: TransportError): void {
    if (this.#settled) return;
    this.#leave();
    this.#intake?.destroy();
    this.#reject(reason);
  }

  #leave(): void {
    this.#settled = true;
    this.#chunks = [];
    this.#limits.bodyRoom.leave(this);
  }
}

function decodeUtf8(bytes: Buffer): string {
  const hasByteOrderMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return bytes.toString('utf8', hasByteOrderMark ? 3 : 0);
}

const DECOMPRESSORS = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
};

/** Of a body that is handed on as it comes. */
const UNPACKERS = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** We ask for no compression, but a server may send it all the same (RFC 9110, section 12.5.3). */
async function decompress(bytes: Buffer, encoding: string, maxOutputLength: number): Promise<Buffer> {
  let plain = bytes;
  for (const name of encoding.toLowerCase().split(',').reverse()) {
    const decompressor = DECOMPRESSORS[name.trim() as keyof typeof DECOMPRESSORS];
    if (decompressor === undefined) throw new TransportError('BAD_CONTENT_ENCODING', encoding);
    try {
      plain = await decompressor(plain, { maxOutputLength });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
        throw new TransportError('RESPONSE_TOO_LARGE');
      }
      // Some servers leave out the zlib wrapper that "deflate" stands for.
      if (name.trim() !== 'deflate') throw new TransportError('BAD_CONTENT_ENCODING', String(error));
      plain = await promisify(inflateRaw)(plain, { maxOutputLength }).catch((rawError: unknown) => {
        throw new TransportError('BAD_CONTENT_ENCODING', String(rawError));
      });
    }
  }
  return plain;
}

function toTransportError(
  error: Error & { code?: unknown; errors?: unknown },
  isUnsent: boolean,
): TransportError {
  // Where a host has several addresses and none answers, the error of each stands in `errors`.
  const inner = Array.isArray(error.errors) ? (error.errors[0] as Error | undefined) : undefined;
  const code = typeof error.code === 'string' ? error.code : error.name;
  return new TransportError(code, error.message || (inner?.message ?? ''), isUnsent);
}
