/**
 * OpenAI and everything that speaks its protocol, behind the provider port. The SDK says what a request looks like, its
 * address, headers and credentials; our own transport sends it.
 */
import OpenAI from 'openai';
import { type Clock, nextTurn } from '../../core/clock.js';
import { usageError } from '../../core/errors.js';
import { createRedactor } from '../../core/redact.js';
import { ENDPOINTS } from '../../endpoints/endpoints.js';
import type { ProviderAborted, ProviderProbe, ProviderRejection, ProviderReply } from '../provider.js';
import type { RemoteProvider } from '../remote-batches.js';
import type { BackgroundProvider } from '../remote-responses.js';
import { readAnswer } from './answer.js';
import { createRemoteBatches } from './batch-requests.js';
import { BodyRoom } from './body-room.js';
import { buildFailure, classifyRefusal, type FailureContext, rejection } from './classify.js';
import { classifyConnectionFailure } from './connection-failure.js';
import { type ConnectionTimes, USUAL_TIMES } from './dispatcher.js';
import { readErrorObject } from './error-body.js';
import { readRateLimitHints } from './headers.js';
import { MODELS_PATH, NO_LIST_STATUS, readModels } from './models.js';
import { passwordsOf, proxyFor } from './proxy.js';
import { isAnswered, type ReceivedResponse } from './response.js';
import { createRemoteResponses } from './response-requests.js';
import { createTransport, type RequestDraft, TransportError } from './transport.js';
import type { SendWireRequest, WireRequest } from './wire.js';

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
}

const DEFAULT_MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
/** The SDK refuses to start without a key; what it would make of it is never sent. */
const NO_KEY = 'none';
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
      { 'user-agent': 'llm-batch', authorization: null },
      keyHeader(apiKey, options.apiKeyHeader ?? null),
      options.headers ?? {},
    ),
    fetch: () => Promise.reject(new TypeError('the SDK sends nothing itself')),
  });
  const drafts = new Map<string, RequestDraft>();
  /** Asked of the SDK once for each path that documents go to: it takes as long over it as the rest of a call. */
  const draftOf = async (wire: WireRequest): Promise<RequestDraft> => {
    if (wire.bodyJson === undefined) return draftFrom(sdk, wire);
    const draft = drafts.get(wire.path) ?? (await draftFrom(sdk, wire));
    drafts.set(wire.path, draft);
    return draft;
  };
  const redact = createRedactor([
    ...(apiKey === null ? [] : [apiKey]),
    ...(options.secrets ?? []),
    ...secretsInQuery(baseUrl),
    ...passwordsOf(proxy),
  ]);
  const root = baseUrl.origin + baseUrl.pathname.replace(/\/$/, '');
  let closed = false;

  const exchange: SendWireRequest = async (wire, { timeoutMs, signal }, read) => {
    const { path, bodyJson, upload, sink } = wire;
    const draft = await draftOf(wire);
    if (signal.aborted || closed) return ABORTED_UNSENT;
    let heardMs = clock.monotonicMs();
    const onProgress = (): void => {
      heardMs = clock.monotonicMs();
    };
    const context = (): FailureContext => ({
      url: root + path,
      method: draft.method,
      nowMs: clock.now(),
      redact,
    });
    const body = upload?.open(onProgress) ?? bodyJson ?? null;
    const open = transport.send(draft, body, sink === undefined ? null : { stream: sink, onProgress });
    let cutBy: 'signal' | 'deadline' | undefined;
    const onAbort = (): void => {
      cutBy ??= 'signal';
      open.cut();
    };
    signal.addEventListener('abort', onAbort, { once: true });
    let cancelDeadline = (): void => undefined;
    const cutAfter = (delayMs: number): void => {
      cancelDeadline = afterLastLook(clock, delayMs, () => {
        const leftMs = heardMs + timeoutMs - clock.monotonicMs();
        if ((upload !== undefined || sink !== undefined) && leftMs > 0) {
          cutAfter(leftMs);
          return;
        }
        cutBy ??= 'deadline';
        open.cut();
      });
    };
    cutAfter(timeoutMs);
    try {
      const received = await open.response;
      return isAnswered(received.status) ? read(received, context()) : refused(received, context());
    } catch (error) {
      if (cutBy === 'signal' || closed) return open.hasLeft ? ABORTED : ABORTED_UNSENT;
      if (cutBy === 'deadline') {
        const seconds = timeoutMs / 1_000;
        if (open.hasLeft) {
          return rejection(buildFailure('timeout', `No complete answer within ${seconds} s`, context()));
        }
        const message = `No connection became free or could be made within ${seconds} s`;
        return rejection({ ...buildFailure('timeout', message, context()), isUnsent: true });
      }
      if (error instanceof TransportError) return rejection(classifyConnectionFailure(error, context()));
      // A fault of our own must not stop a run of a million: it fails the document, and its words tell.
      return rejection(
        buildFailure('bad_output', `The answer could not be read: ${String(error)}`, context()),
      );
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
      return NO_LIST_STATUS.includes(failure.httpStatus ?? 0)
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

async function draftFrom(
  sdk: OpenAI,
  { method, path, bodyJson, upload }: WireRequest,
): Promise<RequestDraft> {
  const ofUpload = upload && {
    'content-type': upload.contentType,
    'content-length': String(upload.bytes),
  };
  const { req, url } = await sdk.buildRequest({
    method,
    path,
    ...(bodyJson !== undefined
      ? { body: bodyJson, headers: JSON_HEADERS }
      : ofUpload && { headers: ofUpload }),
  });
  const headers: string[] = [];
  for (const [name, value] of new Headers(req.headers)) {
    // The SDK's telemetry: nobody's business, and some firewalls dislike it.
    if (!name.startsWith('x-stainless-')) headers.push(name, value);
  }
  return { method: method.toUpperCase(), url: new URL(url), headers };
}

function refused({ status, headers, content }: ReceivedResponse, context: FailureContext): ProviderRejection {
  const failure = classifyRefusal({ status, headers, error: readErrorObject(content) }, context);
  return rejection(failure, { hints: readRateLimitHints(headers, context.nowMs) });
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
