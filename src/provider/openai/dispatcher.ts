/** The pool of connections to one server, directly or through the environment's proxy. */
import { type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import { usageError } from '../../core/errors.js';
import { isLoopback } from '../../core/loopback.js';

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
  readonly proxy: ProxySettings;
  readonly times: ConnectionTimes;
}

/** Addresses of proxies, empty where there is none, and the hosts that need none. */
export interface ProxySettings {
  readonly httpProxy: string;
  readonly httpsProxy: string;
  readonly noProxy: string;
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

/**
 * Opens the pool, or the way through a proxy.
 * @throws LlmBatchError when the proxy's address cannot be used
 */
export function createDispatcher({ baseUrl, maxConnections, proxy, times }: DispatcherOptions): Dispatcher {
  const options = {
    connections: maxConnections,
    // Undici knows no shorter one.
    keepAliveTimeout: Math.max(1, times.keepAliveMs),
    headersTimeout: times.headersTimeoutMs ?? 0,
    bodyTimeout: times.bodyTimeoutMs ?? 0,
    connect: { timeout: times.connectTimeoutMs, autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS },
  };
  const proxied = baseUrl.protocol === 'https:' ? proxy.httpsProxy || proxy.httpProxy : proxy.httpProxy;
  // One pool rather than an agent of pools: an agent forgets a pool whose connections have all broken and
  // opens another beside it, over the cap.
  if (proxied === '' || isLoopback(baseUrl.hostname)) return new Pool(baseUrl.origin, options);
  try {
    return new EnvHttpProxyAgent({ ...options, ...proxy, clientFactory: proxyPool });
  } catch (error) {
    throw usageError(
      'PROXY_INVALID',
      'The proxy in HTTP_PROXY or HTTPS_PROXY is not a usable address.',
      `Set it to something like http://proxy.example:3128, or unset it (${(error as Error).name}).`,
    );
  }
}

/**
 * The connections to a proxy. Undici takes a proxy that hangs up before the tunnel stands for a passing matter of its
 * own and connects anew at once, without end (1,700 times in four seconds); by another name it is a failure.
 */
function proxyPool(origin: URL, options: object): Dispatcher {
  const pool = new Pool(origin, options);
  const connect = pool.connect.bind(pool) as (options: Dispatcher.ConnectOptions) => Promise<unknown>;
  pool.connect = ((tunnel: Dispatcher.ConnectOptions) =>
    connect(tunnel).catch((error: Error & { code?: unknown }) => {
      throw error.code === 'UND_ERR_SOCKET'
        ? Object.assign(new Error(error.message), { code: 'PROXY_CLOSED' })
        : error;
    })) as typeof pool.connect;
  return pool;
}

/** Reads the customary variables; the lower-case names win, as in curl. */
export function readProxySettings(environment: Readonly<Record<string, string | undefined>>): ProxySettings {
  const read = (name: string): string => environment[name] ?? environment[name.toUpperCase()] ?? '';
  return { httpProxy: read('http_proxy'), httpsProxy: read('https_proxy'), noProxy: read('no_proxy') };
}

/** Passwords in the proxies' addresses, for the redactor. */
export function passwordsOf({ httpProxy, httpsProxy }: ProxySettings): string[] {
  return [httpProxy, httpsProxy].flatMap((address) => {
    const password = URL.canParse(address) ? new URL(address).password : '';
    return password === '' ? [] : [password, decodeURIComponent(password)];
  });
}
