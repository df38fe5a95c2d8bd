/** OpenAI and everything that speaks its protocol, behind the provider port: the SDK over our own transport. */
import OpenAI, { APIError } from 'openai';
import { type Clock, nextTurn } from '../../core/clock.js';
import { usageError } from '../../core/errors.js';
import { isJsonObject, type JsonObject } from '../../core/json.js';
import { createRedactor } from '../../core/redact.js';
import { ENDPOINTS } from '../../endpoints/endpoints.js';
import type { ProviderAborted, ProviderProbe, ProviderRejection, ProviderReply } from '../provider.js';
import type { RemoteProvider } from '../remote-batches.js';
import type { BackgroundProvider } from '../remote-responses.js';
import { readAnswer } from './answer.js';
import { createRemoteBatches } from './batch-requests.js';
import { BodyRoom } from './body-room.js';
import { buildFailure, classifyRefusal, type FailureContext } from './classify.js';
import { classifyConnectionFailure } from './connection-failure.js';

import { type ConnectionTimes, USUAL_TIMES } from './dispatcher.js';

import { NO_HINTS, readRateLimitHints } from './headers.js';
import { hasNoList, MODELS_PATH, readModels } from './models.js';
import { passwordsOf, proxyFor } from './proxy.js';
import { ReceivedHeaders, ReceivedResponse } from './response.js';
import { createRemoteResponses } from './response-requests.js';
import { createTransport, TransportError, type TransportInit } from './transport.js';
import type { SendWireRequest } from './wire.js';

export interface OpenAIProviderOptions {
  /** The API's root, e.g. `https://api.openai.com/v1`; a query in it goes along with every call. */
  readonly baseUrl: string;
  /** Null for servers that want none. */
  readonly apiKey: string | null;
  /** Carries the key as it is; null: `Authorization`, as a bearer token. */
  readonly apiKeyHeader?: string | null;
  /** Go along with every call; one may take the place of the key's. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What of them is to be kept out of every message. */
  readonly secrets?: readonly string[];
  /** Connections open at once; more calls than this wait for one, within their deadline. */
  readonly maxConnections: number;
  /** Absent: as usual. */
  readonly times?: ConnectionTimes;
  /** The largest body that is accepted, after decompression. Default 64 MiB. */
  readonly maxResponseBytes?: number;
  /** Of all providers of a run together; default one of its own. */
  readonly bodyRoom?: BodyRoom;
  readonly clock: Clock;
  /**
   * Where `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` are looked up, in either case; without it no proxy is used.
   * Addresses of this machine are never reached through one.
   */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Default `llm-batch`. */
  readonly userAgent?: string;
}

const DEFAULT_MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
/** The SDK refuses to start without a key; what it would make of it is never sent. */
const NO_KEY = 'none';
/** The longest that Node's timers hold: our own deadline rules, the SDK's must never come first. */
const NEVER_MS = 2 ** 31 - 1;
const JSON_HEADERS = { 'content-type': 'application/json' };
const ABORTED: ProviderAborted = { ok: false, aborted: true };
const ABORTED_UNSENT: ProviderAborted = { ...ABORTED, isUnsent: true };

/**
 * Makes a provider for one address and one key.
 * @throws LlmBatchError when base URL, key or proxy settings cannot be used
 */
export function createOpenAIProvider(options: OpenAIProviderOptions): RemoteProvider & BackgroundProvider {
  const { clock } = options;
  const baseUrl = parseBaseUrl(options.baseUrl);
  const apiKey = checkApiKey(options.apiKey);
  const proxy = proxyFor(baseUrl, options.environment ?? {});
  const transport = createTransport({
    baseUrl,
    proxy,
    maxConnections: options.maxConnections,
    times: options.times ?? USUAL_TIMES,
    maxResponseBytes: options.maxResponseBytes ?? DEFAULT_MAX_RESPONSE_BYTES,
    bodyRoom: options.bodyRoom ?? new BodyRoom(),
  });
  const sdk = new QuietOpenAI({
    baseURL: baseUrl.origin + baseUrl.pathname,
    defaultQuery: Object.fromEntries(baseUrl.searchParams),
    apiKey: NO_KEY,
    // Everything that the SDK would else read from OPENAI_* variables.
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    logLevel: 'off',
    defaultHeaders: mergeHeaders(
      { 'user-agent': options.userAgent ?? 'llm-batch', authorization: null },
      keyHeader(apiKey, options.apiKeyHeader ?? null),
      options.headers ?? {},
    ),
    maxRetries: 0,
    timeout: NEVER_MS,
    fetch: transport.fetch,
  });
  const redact = createRedactor([
    ...(apiKey === null ? [] : [apiKey]),
    ...(options.secrets ?? []),
    ...secretsInQuery(baseUrl),
    ...passwordsOf(proxy),
  ]);
  const root = baseUrl.origin + baseUrl.pathname.replace(/\/$/, '');
  let closed = false;

  const exchange: SendWireRequest = async (wire, { timeoutMs, signal }, read) => {
    const { method, path, bodyJson, upload, sink } = wire;
    if (signal.aborted || closed) return ABORTED_UNSENT;
    // One controller per call: the SDK never takes its listener off the signal it is given.
    const controller = new AbortController();
    let cutBy: 'signal' | 'deadline' | undefined;
    let hasLeft = false;
    const onAbort = (): void => {
      cutBy ??= 'signal';
      controller.abort();
    };
    signal.addEventListener('abort', onAbort, { once: true });
    let heardMs = clock.monotonicMs();
    const onProgress = (): void => {
      heardMs = clock.monotonicMs();
    };
    let cancelDeadline = (): void => undefined;
    const cutAfter = (delayMs: number): void => {
      cancelDeadline = afterLastLook(clock, delayMs, () => {
        const leftMs = heardMs + timeoutMs - clock.monotonicMs();
        if ((upload !== undefined || sink !== undefined) && leftMs > 0) {
          cutAfter(leftMs);
          return;
        }
        cutBy ??= 'deadline';
        controller.abort();
      });
    };
    cutAfter(timeoutMs);
    // The SDK hands its `fetchOptions` on and keeps no word of why its own signal cut a request off.
    const told: Pick<TransportInit, 'onLeaving' | 'onProgress' | 'upload' | 'sink'> = {
      onLeaving() {
        hasLeft = true;
      },
      onProgress,
      ...(upload !== undefined && { upload: upload.open(onProgress) }),
      ...(sink !== undefined && { sink }),
    };
    const request = { signal: controller.signal, fetchOptions: told as object };
    const context = (): FailureContext => ({
      url: root + path,
      method: method.toUpperCase(),
      nowMs: clock.now(),
      redact,
    });
    try {
      const body =
        upload === undefined
          ? bodyJson !== undefined && { body: bodyJson, headers: JSON_HEADERS }
          : { headers: { 'content-type': upload.contentType, 'content-length': String(upload.bytes) } };
      const received: unknown = await sdk[method](path, { ...request, ...body }).asResponse();
      if (!(received instanceof ReceivedResponse)) throw new TypeError('the SDK did not use our transport');
      return read(received, context());
    } catch (error) {
      if (cutBy === 'signal' || closed) return hasLeft ? ABORTED : ABORTED_UNSENT;
      if (cutBy === 'deadline') {
        const seconds = timeoutMs / 1_000;
        if (hasLeft) {
          return rejection(buildFailure('timeout', `No complete answer within ${seconds} s`, context()));
        }
        const message = `No connection became free or could be made within ${seconds} s`;
        return rejection({ ...buildFailure('timeout', message, context()), isUnsent: true });
      }
      return rejectThrown(error, context());
    } finally {
      cancelDeadline();
      signal.removeEventListener('abort', onAbort);
    }
  };

  return {
    send(request, options): Promise<ProviderReply> {
      const path = request.groupPath ?? ENDPOINTS[request.endpoint].path;
      return exchange({ method: 'post', path, bodyJson: request.bodyJson }, options, (received, context) =>
        readAnswer(request, received, context),
      );
    },
    async probe(options): Promise<ProviderProbe> {
      const answer = await exchange({ method: 'get', path: MODELS_PATH }, options, readModels);
      if ('outcome' in answer) return answer;
      if ('aborted' in answer) return { outcome: 'aborted' };
      const { failure, hints } = answer;
      return hasNoList(failure.httpStatus)
        ? { outcome: 'unlisted', hints }
        : { outcome: 'failed', failure, hints };
    },
    remoteResponses: createRemoteResponses(exchange),
    remoteBatches: createRemoteBatches(exchange, () => ({ url: root, nowMs: clock.now(), redact })),
    redact,
    async close() {
      closed = true;
      await transport.close();
    },
  };
}

/**
 * Like `clock.after`, but with a look at the sockets in between. A process that was suspended, or held up by a reader
 * of its output, finds its timers due before it has read the answers that came meanwhile, which are paid for.
 */
function afterLastLook(clock: Clock, delayMs: number, callback: () => void): () => void {
  let isCancelled = false;
  const cancel = clock.after(delayMs, async () => {
    await nextTurn();
    if (!isCancelled) callback();
  });
  return () => {
    isCancelled = true;
    cancel();
  };
}

/** The SDK, deaf to `OPENAI_CUSTOM_HEADERS`, which it reads whatever it is told. */
class QuietOpenAI extends OpenAI {
  constructor(options: ConstructorParameters<typeof OpenAI>[0] & object) {
    super(options);
    this._options.defaultHeaders = options.defaultHeaders;
  }
}

function rejectThrown(error: unknown, context: FailureContext): ProviderRejection {
  const broken = findTransportError(error);
  if (broken !== undefined) return rejection(classifyConnectionFailure(broken, context));
  const headers: unknown = error instanceof APIError ? error.headers : undefined;
  if (error instanceof APIError && error.status !== undefined && headers instanceof ReceivedHeaders) {
    const refused: JsonObject = isJsonObject(error.error) ? error.error : { message: error.message };
    return {
      ...rejection(classifyRefusal({ status: error.status, headers, error: refused }, context)),
      hints: readRateLimitHints(headers, context.nowMs),
    };
  }
  // A fault of our own must not stop a run of a million: it fails the document, and its words tell.
  return rejection(buildFailure('bad_output', `The answer could not be read: ${String(error)}`, context));
}

function rejection(failure: ProviderRejection['failure']): ProviderRejection {
  return { ok: false, failure, usage: null, costMicroUsd: null, hints: NO_HINTS };
}

function findTransportError(error: unknown): TransportError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof TransportError) return cause;
  }
  return undefined;
}

function parseBaseUrl(text: string): URL {
  const hint = 'A base URL looks like https://api.openai.com/v1 or http://localhost:11434/v1.';
  if (!URL.canParse(text)) throw usageError('BASE_URL_INVALID', 'The base URL is not a URL.', hint);
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw usageError('BASE_URL_INVALID', `The base URL ${url.protocol}//… is neither http nor https.`, hint);
  }
  if (url.username !== '' || url.password !== '') {
    throw usageError(
      'BASE_URL_CREDENTIALS',
      `The base URL for ${url.host} holds a user name or password.`,
      'Leave them out of the URL and pass the key as an API key.',
    );
  }
  return url;
}

function keyHeader(apiKey: string | null, name: string | null): Record<string, string> {
  if (apiKey === null) return {};
  return name === null ? { Authorization: `Bearer ${apiKey}` } : { [name]: apiKey };
}

/** Names in lower case, later ones over earlier ones: the SDK would send both. */
function mergeHeaders(
  ...all: readonly Readonly<Record<string, string | null>>[]
): Record<string, string | null> {
  const entries = all.flatMap((headers) => Object.entries(headers));
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value]));
}

/** Some gateways take their key in the address. */
function secretsInQuery(url: URL): string[] {
  return [...url.searchParams]
    .filter(([name]) => /key|token|secret|sig/i.test(name))
    .map(([, value]) => value);
}

/** A key with a stray newline would fail in every call, and the error would quote it. */
function checkApiKey(key: string | null): string | null {
  const trimmed = key?.trim() ?? '';
  if (trimmed === '') return null;
  if (!/^[\x21-\x7e]+$/.test(trimmed)) {
    throw usageError(
      'API_KEY_INVALID',
      'The API key holds spaces or other characters that no header can carry.',
      'Check the variable that holds it: one key, on one line, without quotes.',
    );
  }
  return trimmed;
}
