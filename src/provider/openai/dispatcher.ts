/** The pool of connections to one server, directly or through the environment's proxy. */
import { type Dispatcher, Pool } from 'undici';
import type { ProxyRoute } from './proxy.js';
import type { HeaderRecord } from './response.js';
import { connectorThrough, connectorTo, proxyAuthorization, proxyError, proxyRefusalCode } from './tunnel.js';

/** Of the connections, each in milliseconds. */
export interface ConnectionTimes {
  readonly connectTimeoutMs: number;
  /** Null: the deadline of the call alone. */
  readonly headersTimeoutMs: number | null;
  /** Between two parts of a body; null as above. */
  readonly bodyTimeoutMs: number | null;
  readonly keepAliveMs: number;
}

export interface DispatcherOptions {
  readonly baseUrl: URL;
  /** Connections open at once; further calls wait for one. */
  readonly maxConnections: number;
  /** Null: straight to the server. */
  readonly proxy: ProxyRoute | null;
  readonly times: ConnectionTimes;
}

/** What holds where nothing is said. */
export const USUAL_TIMES: ConnectionTimes = {
  connectTimeoutMs: 10_000,
  // One deadline of the caller covers everything; undici's own would cut slow models off at 300 s.
  headersTimeoutMs: null,
  bodyTimeoutMs: null,
  // Shorter than the 5 s after which Node and uvicorn servers hang up, so that no call meets a dying socket.
  keepAliveMs: 4_000,
};
/** Node gives each address of a host 250 ms, too short for a satellite link. */
const ADDRESS_ATTEMPT_MS = 1_000;

/** Opens the pool, to the server or to the proxy before it. */
export function createDispatcher({ baseUrl, maxConnections, proxy, times }: DispatcherOptions): Dispatcher {
  const connect = { timeout: times.connectTimeoutMs, autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS };
  const options = {
    connections: maxConnections,
    // Undici knows no shorter one.
    keepAliveTimeout: Math.max(1, times.keepAliveMs),
    headersTimeout: times.headersTimeoutMs ?? 0,
    bodyTimeout: times.bodyTimeoutMs ?? 0,
  };
  // One pool rather than an agent of pools: an agent forgets a pool whose connections have all broken and
  // opens another beside it, over the cap.
  if (proxy === null) return new Pool(baseUrl.origin, { ...options, connect });
  if (baseUrl.protocol === 'http:' && proxy.url.protocol.startsWith('http')) {
    const pool = new Pool(proxy.url.origin, { ...options, connect: connectorTo(proxy, connect) });
    return pool.compose(namedInFull(baseUrl, proxy));
  }
  return new Pool(baseUrl.origin, {
    ...options,
    connect: connectorThrough(proxy, connect, times.connectTimeoutMs),
  });
}

/** Requests in absolute form (RFC 9112, section 3.2.2), as proxies want them for plain http. */
function namedInFull({ origin, host }: URL, proxy: ProxyRoute): Dispatcher.DispatcherComposeInterceptor {
  const own = Object.entries({ host, ...proxyAuthorization(proxy) }).flat();
  return (dispatch) => (options, handler) =>
    dispatch(
      {
        ...options,
        origin: proxy.url.origin,
        path: `${origin}${options.path}`,
        headers: [...(options.headers as string[]), ...own],
      },
      {
        onRequestStart: (controller, context) => handler.onRequestStart?.(controller, context),
        onResponseStart(controller, status, headers, message) {
          const words = wordsOfProxy(status, headers);
          if (words === null) handler.onResponseStart?.(controller, status, headers, message);
          else controller.abort(proxyError(proxyRefusalCode(status), proxy, words));
        },
        onResponseData: (controller, chunk) => handler.onResponseData?.(controller, chunk),
        onResponseEnd: (controller, trailers) => handler.onResponseEnd?.(controller, trailers),
        onResponseError: (controller, error) => handler.onResponseError?.(controller, error),
      },
    );
}

/** What the proxy itself answers, told by 407, by squid's header and by the names of those that say who they are. */
function wordsOfProxy(status: number, headers: HeaderRecord): string | null {
  if (status < 400) return null;
  const reason = headers['x-squid-error'];
  const isItsOwn =
    status === 407 || reason !== undefined || /\b(?:tinyproxy|privoxy)\b/i.test(String(headers['server']));
  return isItsOwn ? `${status} ${reason ?? ''}`.trim() : null;
}
